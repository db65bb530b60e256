/* Progress of a training for a person: a bar in place on a terminal, plain lines elsewhere.
 *
 *     epoch 2/10 [=========>          ] 45%  step 211/469  loss 0.4312  accuracy 84.1%  1234 images/s  1:23 left
 *
 * With a loss scale, and once steps were left out, also:  "scale 4096  skipped 3". Where ranks wait for a slow one, who it is.
 *
 * It prints only to the FILE that the command gives, and only on the rank that the command chooses; a NULL FILE is
 * silence. Any thread may call it. Times come from the caller, so what is printed is a pure function of what is passed in.
 *
 *     mu_progress progress;
 *     mu_progress_init(&progress, &settings);
 *     each step:   mu_progress_step(&progress, &point);
 *     in between:  mu_progress_line(&progress, "epoch 1: test accuracy %.4f", accuracy);
 *     at the end:  mu_progress_finish(&progress);
 * SPDX-License-Identifier: MIT */
#ifndef MU_MONITOR_PROGRESS_H
#define MU_MONITOR_PROGRESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/fail.h"

typedef struct mu_progress_settings {
	FILE *out; /* borrowed; NULL prints nothing */
	int columns; /* width of the terminal; 0: not a terminal, plain lines */
	double seconds_per_line; /* plain lines: at most so often; 0 = not by time */
	uint64_t steps_per_print; /* a plain line each so many steps, on a terminal too (above the bar); 0 = never */
	uint64_t epochs;
	uint64_t steps; /* of one epoch */
	uint64_t images; /* of the whole run from `first` on, for the time left */
} mu_progress_settings;

/* Where the training is, after a step. */
typedef struct mu_progress_point {
	uint64_t epoch; /* from 1 */
	uint64_t step; /* of the epoch, from 1 */
	double loss; /* as the caller smooths it */
	double accuracy; /* fraction; NaN: not shown */
	uint64_t images; /* since the training began, all ranks */
	double seconds; /* since the training began */
	double loss_scale; /* 0: not shown */
	uint64_t skipped; /* steps left out so far; 0: not shown */
	const char *waits; /* who waits for whom, in words; NULL or "": not shown. Borrowed for the call */
} mu_progress_point;

typedef struct mu_progress {
	mu_progress_settings settings;
	double images_per_second; /* smoothed over about RATE_SECONDS; 0 = not known yet */
	uint64_t last_images; /* at the last rate measurement */
	double last_seconds;
	double shown_seconds; /* when something was printed last; negative: never */
	bool bar_shown; /* the cursor stands behind a bar */
	pthread_mutex_t lock;
} mu_progress;

void mu_progress_init(mu_progress *progress, const mu_progress_settings *settings);
void mu_progress_step(mu_progress *progress, const mu_progress_point *point);
/* A whole line of its own; a bar moves below it. */
MU_PRINTF(2, 3) void mu_progress_line(mu_progress *progress, const char *format, ...);
/* What is waited for, in the bar's place until the next step draws it again; a line where there is no terminal. */
void mu_progress_wait(mu_progress *progress, const char *text);
/* Leaves the last bar on its own line. */
void mu_progress_finish(mu_progress *progress);

/* Width for settings.columns: MURAL_TTY (which the parent of --ranks sets for rank 0, whose output is a pipe to
 * mpirun) if it is a number, else the width of `out` if that is a terminal that can move its cursor, else 0. */
int mu_progress_columns(FILE *out);

/* "1:23", "2:03:04", "3 d 04:05", "?" if negative or not finite. size >= 24. */
void mu_duration_text(double seconds, char *text, size_t size);

#endif
