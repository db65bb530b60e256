/* The run's folder: config.json, steps.csv, metrics.csv, energy.csv, result.json. Rank 0 only. SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_RUN_FILES_H
#define MU_ENGINE_RUN_FILES_H

#include "engine/class_report.h"
#include "engine/observe.h"
#include "engine/run_totals.h"
#include "engine/run_load.h"
#include "engine/run_energy.h"
#include "engine/stall.h"
#include "monitor/balance_csv.h"
#include "monitor/energy_csv.h"
#include "monitor/metrics_csv.h"
#include "monitor/steps_csv.h"
#include "monitor/timers.h"
#include "monitor/validation_csv.h"
#include "mural/run.h"

typedef struct mu_run_files { /* zero-initialise */
	char folder[1024];
	mu_csv steps, metrics;
	mu_csv validation; /* opened when the run has validation images */
	uint64_t device, inode; /* of the folder, to notice that it was removed */
	mu_csv energy; /* opened only where energy can be measured */
	mu_csv balance; /* opened only where shares of a batch move */
} mu_run_files;

typedef struct mu_run_summary {
	const mural_train_result *result;
	const mural_config *config;
	const mural_config_report *report; /* may be NULL */
	const mural_engine *engine;
	mu_stall_watch *stall;
	const mu_run_totals *totals;
	const mural_data *test;
	const mu_class_report *classes,
	        *classes_of_best; /* of the last weights; of the best ones, NULL when they are the same */
	const mu_run_energy *energy;
	const mu_run_load *load;
	const mu_observe *observe;
	const mural_comm *emulated; /* NULL: a real cluster */
} mu_run_summary;

typedef struct mu_run_files_settings {
	const mural_config *config;
	const mural_config_report *report; /* NULL: no config.json */
	const char *folder; /* "" means runs/<date>-<time> */
	const char *result_path; /* --result, or NULL */
	bool validates; /* opens validation.csv */
	bool overwrite; /* an earlier run's files are removed */
	bool energy; /* there shall be an energy.csv */
	bool balance; /* and a balance.csv */
	/* The folder's own run goes on after this step and so many whole epochs: what its tables have beyond is cut off, and the
	 * result of a run that had ended is removed. */
	bool goes_on;
	uint64_t step, epochs;
} mu_run_files_settings;

/* Makes the folder and opens its tables. MURAL_USAGE: a folder that holds an earlier run, unless overwrite or goes_on; a result
 * path that is one of the folder's other files. */
mural_status mu_run_files_create(mu_run_files *files, const mu_run_files_settings *settings, mural_error *err);

/* The tables are on the disk as far as they have been written: before a checkpoint tells of these steps. From any thread. */
mural_status mu_run_files_sync(const mu_run_files *files, mural_error *err);

/* MURAL_FAILED when the folder is not there any more: what is written below it would make it anew, and half of it. */
mural_status mu_run_files_check(const mu_run_files *files, mural_error *err);

/* Writes result.json, and a copy to result_path if that is not NULL and not the same file. */
mural_status mu_run_files_finish(mu_run_files *files, const mu_run_summary *summary, const char *result_path,
                                 mural_error *err);

/* Can result_path (NULL: none is wanted) be written, and is it no file that a run wrote into its folder? Asked before the work that
 * it shall tell of. own_folder: of the run that asks, whose result.json it may be; "" if it has none yet. */
mural_status mu_result_check(const char *result_path, const char *own_folder, mural_error *err);

void mu_run_files_close(mu_run_files *files);

/* A plan of memory, or what was used of one, as an object of bytes. */
void mu_memory_write(mu_json *json, const char *key, const mural_memory_plan *plan);

/* `mural eval --result`. */
mural_status mu_write_evaluation(const char *path, const mural_evaluation *evaluation, const mu_class_report *classes,
                                 const mural_data *data, const char *weights, int ranks, mural_error *err);

#endif
