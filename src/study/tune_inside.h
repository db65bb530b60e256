/* Inside a search for a configuration: from the user's words to points, from points to trainings, from trials to files.
 * SPDX-License-Identifier: MIT */
#ifndef MU_STUDY_TUNE_INSIDE_H
#define MU_STUDY_TUNE_INSIDE_H

#include "mural/config.h"
#include "study/tune_search.h"

typedef struct mu_tune {
	mural_tune_settings settings; /* a copy, with defaults filled in */
	mural_config config; /* the user's, with a batch of 1; a point's values go in where needed */
	mural_config_report *report;
	uint64_t batch; /* that stays; 0: chosen from the range */
	mural_data *train, *test;
	mural_tune_result *result;
} mu_tune;

/* tune_space.c: fills tune->settings' lists and makes the points. MURAL_USAGE when there is none. */
mural_status mu_tune_make_points(mu_tune *tune, mural_error *err);
/* Plans each point's memory and marks those that are too large. MURAL_OUT_OF_MEMORY when all are. */
mural_status mu_tune_limit_memory(mu_tune *tune, mural_error *err);
/* tune->config with a point's values. */
mural_config mu_tune_config_at(const mu_tune *tune, const mural_tune_point *point);

/* tune_trial.c: mu_tune_search.measure; context is the mu_tune. */
mural_status mu_tune_try(void *context, size_t point, uint32_t round, uint32_t steps, mu_tune_measure *measure,
                         mural_error *err);

/* tune_write.c: tune.json; the configuration with the choice. */
mural_status mu_tune_write(const mu_tune *tune, mural_error *err);
mural_status mu_tune_write_config(mu_tune *tune, mural_error *err);
/* Can the configuration be written there? Asked before the first trial. */
mural_status mu_tune_check_output(const mu_tune *tune, mural_error *err);

#endif
