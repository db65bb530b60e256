/* The run's folder: config.json, steps.csv, metrics.csv, result.json. Rank 0 only. SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_RUN_FILES_H
#define MU_ENGINE_RUN_FILES_H

#include "monitor/metrics_csv.h"
#include "monitor/steps_csv.h"
#include "monitor/timers.h"
#include "mural/run.h"

typedef struct mu_run_files { /* zero-initialise */
	char folder[1024];
	mu_csv steps, metrics;
	double phase_seconds[MU_PHASE_COUNT]; /* sums of what went into steps.csv */
} mu_run_files;

/* One line of the history in result.json; NaN where the test set was not evaluated. */
typedef struct mu_epoch_row {
	uint32_t epoch; /* from 1 */
	double train_loss, train_accuracy, test_loss, test_accuracy, seconds;
} mu_epoch_row;

typedef struct mu_run_summary {
	const mural_train_result *result;
	const mural_config *config;
	const mural_config_report *report; /* may be NULL */
	const mural_engine *engine;
	const mu_epoch_row *epochs;
	size_t n_epochs;
} mu_run_summary;

/* Makes the folder and opens its tables. A folder that holds an earlier run is MURAL_USAGE unless overwrite, which
 * removes that run's files. config->run.run_dir "" means runs/<date>-<time>. */
mural_status mu_run_files_create(mu_run_files *files, const mural_config *config, const mural_config_report *report,
                                 bool overwrite, mural_error *err);

/* Writes result.json, and a copy to result_path if that is not NULL and not the same file. */
mural_status mu_run_files_finish(mu_run_files *files, const mu_run_summary *summary, const char *result_path,
                                 mural_error *err);

/* Can result_path (NULL: none is wanted) be written? Asked before the work that it shall tell of. */
mural_status mu_result_check(const char *result_path, mural_error *err);

void mu_run_files_close(mu_run_files *files);

/* `mural eval --result`. */
mural_status mu_write_evaluation(const char *path, const mural_evaluation *evaluation, const mural_data_facts *data,
                                 int ranks, mural_error *err);

#endif
