/* steps.csv: one row per optimizer step. Numbers read back bit for bit, so two runs can be compared with diff.
 * SPDX-License-Identifier: MIT */
#ifndef MU_MONITOR_STEPS_CSV_H
#define MU_MONITOR_STEPS_CSV_H

#include <stdint.h>

#include "monitor/csv.h"
#include "monitor/timers.h"

typedef struct mu_steps_row {
	uint64_t step; /* from 1, over the whole run */
	uint64_t epoch; /* from 1, as people count */
	double loss; /* mean over the step's images, all ranks */
	double learning_rate;
	double gradient_norm; /* before clipping; NaN when it was not computed: an empty field */
	uint64_t images; /* of all ranks */
	const double *seconds; /* [MU_PHASE_COUNT], of the rank that writes: timers.last */
	double loss_scale; /* that the gradients have had; 1 without loss scaling */
	uint64_t applied, skipped; /* updates so far; steps that an overflow left out; together: step */
} mu_steps_row;

#define MU_STEPS_STEP 0 /* number of the column */

/* Columns: step, epoch, loss, learning_rate, gradient_norm, images, then <phase>_seconds in the order of mu_phase, loss_scale,
 * applied_steps, skipped_steps. */
mural_status mu_steps_open(mu_csv *csv, const char *path, mural_error *err);
mural_status mu_steps_write(mu_csv *csv, const mu_steps_row *row, mural_error *err);

#endif
