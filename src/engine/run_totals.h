/* What a run has summed up so far; a checkpoint keeps it, so that tables and results of a run that stopped and went on are
 * those of one that did not. SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_RUN_TOTALS_H
#define MU_ENGINE_RUN_TOTALS_H

#include <stddef.h>
#include <stdint.h>

#include "monitor/timers.h"

/* Energy used; NaN where it is not known. */
typedef struct mu_joules {
	double processor, gpu;
} mu_joules;

/* Sums over the steps of one epoch so far. */
typedef struct mu_epoch_sums {
	uint64_t images;
	double loss, top1, seconds;
	mu_joules joules;
} mu_epoch_sums;

/* One line of the history in result.json; NaN where the set was not evaluated. */
typedef struct mu_epoch_row {
	uint32_t epoch; /* from 1 */
	double train_loss, train_accuracy, validation_loss, validation_accuracy, test_loss, test_accuracy, seconds;
} mu_epoch_row;

/* What an evaluation on the validation images found after a step. */
typedef struct mu_validated {
	uint64_t step; /* 0: none */
	double loss, top1, top5;
} mu_validated;

/* All evaluations on the validation images so far. */
typedef struct mu_validation {
	mu_validated last, best;
	mu_validated reference; /* the one that early stopping waits for a better one than */
	uint64_t waited; /* evaluations since then */
} mu_validation;

typedef struct mu_run_totals { /* all zero: a run that begins */
	mu_epoch_sums epoch; /* of the epoch under way */
	uint64_t images;
	double seconds, evaluation_seconds;
	mu_joules joules;
	double train_loss, train_accuracy, test_loss, test_accuracy, test_top5; /* of the last time they were known */
	double phase_seconds[MU_PHASE_COUNT];
	mu_validation validation;
	mu_epoch_row *epochs; /* owned by whoever owns the struct; malloc'ed */
	size_t n_epochs;
} mu_run_totals;

#endif
