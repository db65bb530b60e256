/* Tuning: the micro-batch, the accumulation, and the ranks and threads with which this model trains fastest on this machine, found
 * by short trial runs.
 *
 * A configuration that could be chosen is a point; the global batch is the user's and stays (or comes from a range that the user
 * gives). Each trial is a training of some steps by the program itself. After each of them a cost model is fitted to what was
 * measured so far: a step takes
 *
 *     accumulation x micro-batch x (b + h / micro-batch + r(micro-batch)) / threads + f
 *
 * b: core-seconds of an image, h: cost of a micro-batch whatever its size, in images, r: a smooth deviation (caches), f: optimizer
 * and waiting for other ranks. The model says, with its uncertainty, which point may be the best; that one is tried next. When no
 * other can be better by more than the tolerance, or a fifth of an exhaustive sweep's time is spent, the search ends.
 * Points that would not fit into memory are never tried, trials that fail are told and left out.
 *
 *     FOLDER/tune.json        every point, every trial, the choice and why
 *     FOLDER/tuned.json       the configuration: the user's file with the chosen values in it
 *     FOLDER/trials/NAME.N/   the trials' run folders with their logs; the same call goes on with them where it was stopped
 *
 *     mural_tune_settings settings;
 *     mural_tune_result *result = NULL;
 *     mural_tune_defaults(&settings);
 *     settings.program = "/usr/bin/mural"; settings.config_file = "ds_config.json"; ...
 *     if (mural_tune_run(&settings, &result, &err) == MURAL_OK)
 *             puts(result->why[0]);
 *     mural_tune_result_free(result);
 * SPDX-License-Identifier: MIT */
#ifndef MURAL_TUNE_H
#define MURAL_TUNE_H

#include <stddef.h>
#include <stdint.h>

#include "mural/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MURAL_TUNE_LIST 32 /* values on a list */
#define MURAL_TUNE_TRIALS 64 /* at most */
#define MURAL_TUNE_WHY 8 /* sentences */
#define MURAL_TUNE_TEXT 96 /* bytes for a point in words */

typedef enum mural_tune_state {
	MURAL_TUNE_OPEN, /* not tried: the model did not expect it to be the best */
	MURAL_TUNE_MEASURED,
	MURAL_TUNE_FAILED, /* its trial failed, `why` has its last words */
	MURAL_TUNE_TOO_LARGE /* would not fit, by plan, or because a trial of no more memory ran out of it */
} mural_tune_state;

typedef struct mural_tune_point {
	uint32_t ranks, threads; /* threads: of each rank */
	uint64_t micro_batch, accumulation, train_batch; /* train_batch = ranks x micro_batch x accumulation */
	uint64_t memory_bytes; /* planned per rank; 0: not known */
	mural_tune_state state;
	uint32_t trials;
	double images_per_second; /* measured, or what the model expects; NaN without any trial */
	double low, high; /* its 95 % interval */
	char why[200]; /* FAILED, TOO_LARGE */
} mural_tune_point;

typedef struct mural_tune_trial {
	size_t point;
	uint32_t round; /* of this point, from 1 */
	uint32_t steps; /* measured, warm-up not among them */
	bool measured; /* false: it failed */
	bool reused; /* measured by an earlier start of this search */
	double images_per_second, error; /* error: its standard error, a share of it */
	double step_seconds, fixed_seconds; /* of a step; of that: optimizer and waiting for other ranks */
	double seconds; /* of the trial, its start included */
} mural_tune_trial;

typedef struct mural_tune_settings {
	const char *program; /* path of `mural` */
	const char *folder; /* default "runs/tune" */
	const char *output; /* the configuration file; NULL: FOLDER/tuned.json */
	size_t n_ranks, n_threads;
	uint32_t ranks[MURAL_TUNE_LIST]; /* default 1, 2, 4, ... up to the processor's cores */
	uint32_t threads
	        [MURAL_TUNE_LIST]; /* of each rank; default cores / ranks. More than there are cores are left out */
	uint64_t micro_low,
	        micro_high; /* micro-batches to look at; default 1 to as many as there are images in a batch */
	uint64_t batch_low,
	        batch_high; /* global batches to choose from, by doubling; 0: the configuration's own, which stays */
	uint64_t memory_limit; /* bytes per rank; 0: what is available now / ranks */
	double tolerance; /* a gain that is not worth another trial or a larger micro-batch; default 0.02 */
	double budget; /* trials may take this share of an exhaustive sweep's time; default 0.2 */
	double trial_seconds; /* measured steps of a trial take about this long, 3 steps at least; default 2 */
	uint32_t warm_up; /* steps before them; default 2 */
	const char *config_file; /* DeepSpeed-style; NULL: argv says all */
	int argc; /* further configuration, as `mural train` takes it; borrowed, as all texts here */
	const char *const *argv;
	void (*tell)(void *context, const mural_tune_point *point,
	             const mural_tune_trial *trial); /* after each; may be NULL */
	void *context;
	bool (*stop_asked)(void); /* may be NULL */
} mural_tune_settings;

typedef struct mural_tune_result {
	size_t n_points, n_trials;
	mural_tune_point *points;
	mural_tune_trial trials[MURAL_TUNE_TRIALS];
	/* Index of a point, n_points when none was measured. OPEN: the budget left it untried, and it lies between measured ones */
	size_t chosen;
	bool settled; /* no other point can be better by more than the tolerance; false: the budget ended it */
	double could_gain; /* what the most promising other point might bring, a share */
	double seconds, sweep_seconds; /* of all trials; what one trial of every point would take, by the model */
	char why[MURAL_TUNE_WHY][240]; /* the choice in words; "" after the last */
	char output[1024]; /* the file written; "" when none was */
} mural_tune_result;

MURAL_API void mural_tune_defaults(mural_tune_settings *settings);

/* "2 ranks x 1 thread, micro-batch 64 x 2": the last number is the accumulation. */
MURAL_API const char *mural_tune_point_text(const mural_tune_point *point, char text[MURAL_TUNE_TEXT]);

/* MURAL_USAGE: settings or a configuration that leave nothing to choose from. MURAL_FAILED: no trial could be made.
 * MURAL_STOPPED: asked to stop; what was measured is written, and the same call goes on. *result, the caller's to free, is there
 * whenever trials were begun, else NULL. */
MURAL_API mural_status mural_tune_run(const mural_tune_settings *settings, mural_tune_result **result,
                                      mural_error *err);
MURAL_API void mural_tune_result_free(mural_tune_result *result);

#ifdef __cplusplus
}
#endif
#endif
