/* A whole training run, and a whole evaluation: what `mural train` and `mural eval` do.
 *
 * With validation images (data.validation_*) a run keeps the set of its best weights, may end early, and tests both the last and
 * the best weights at its end. Without, it evaluates on the test set on the way, and that decides nothing.
 *
 * A run writes one folder: config.json (resolved, readable by --config again), steps.csv, metrics.csv, validation.csv, energy.csv,
 * checkpoints/ (mural/checkpoint.h), weights.safetensors and result.json. Only rank 0 writes. Files appear under their final names only when complete.
 * SPDX-License-Identifier: MIT */
#ifndef MURAL_RUN_H
#define MURAL_RUN_H

#include "mural/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mural_run_options {
	FILE *progress; /* rank 0 writes here; NULL = silence; borrowed */
	const char *result_path; /* a copy of result.json, or NULL */
	bool overwrite; /* a folder that holds an earlier run may be reused: its files are replaced */
	FILE *warnings; /* rank 0 tells here of checkpoints that it refuses; NULL = silence; borrowed */
	/* A checkpoint to go on from: "auto" for the newest whole one of config->run.run_dir, or the path of a run or of a set; NULL
	 * begins anew. Finding none is MURAL_USAGE, unless resume_if_any, which then begins (and alone means "auto"). */
	const char *resume;
	bool resume_if_any;
	/* Another attempt at a run that an earlier process had begun with the same options, in this folder: goes on from the newest whole
	 * set there; without one it does as the options say and replaces what the earlier attempt left. NULL: the first attempt. */
	const char *again_in;
	/* Rank 0 tells the run's folder as soon as it is this run's, may be NULL: what another attempt needs for again_in. */
	void (*opened)(const char *run_dir);
	/* Asked before each step on every rank, may be NULL. When it says yes on any rank, the run finishes the step on all, writes
	 * a checkpoint and returns MURAL_STOPPED. */
	bool (*stop_asked)(void);
	/* mural_evaluate_run, when no weights are named: "best", "latest" or "step-00000123" of config->run.run_dir's checkpoints, or
	 * NULL for its weights.safetensors. */
	const char *checkpoint;
} mural_run_options;

/* The best weights by the validation images; equal to the last ones when these are the best. */
typedef struct mural_best_weights {
	uint64_t step, epoch; /* after which they were found, epoch from 1; 0: there are none */
	double validation_loss, validation_accuracy;
	double test_loss, test_accuracy, test_top5;
	char checkpoint[1200]; /* folder of their set */
} mural_best_weights;

typedef struct mural_train_result {
	char run_dir[1024];
	int ranks;
	uint64_t steps, images;
	uint64_t applied_steps, skipped_steps; /* of them: updates; steps whose gradient was not finite */
	double loss_scale; /* of the next step; 1 without loss scaling */
	double train_loss, train_accuracy; /* mean over the last epoch (or what was trained of it) */
	double test_loss, test_accuracy, test_top5; /* of the last weights */
	bool validated; /* there are validation images; the next three are theirs */
	bool stopped_early; /* nothing better came for as long as was asked for */
	double validation_loss, validation_accuracy; /* of the last weights */
	mural_best_weights best;
	size_t n_worst; /* filled on rank 0 */
	mural_class_score worst[MURAL_WORST_CLASSES]; /* of the last weights on the test set, the worst first */
	double seconds; /* wall time of training, evaluation not counted */
	double evaluation_seconds;
	double images_per_second; /* images / seconds */
	double joules; /* of training, on all hosts together; NaN where energy cannot be measured: result.json says why */
	uint64_t peak_memory_bytes; /* of the process, largest of all ranks */
} mural_train_result;

/* All ranks. result is filled on every rank. Ends with weights.safetensors and result.json written, or fails. MURAL_STOPPED, the
 * same on all ranks, is no failure: a checkpoint of the last step was written, because stop_asked said so or
 * config->run.max_hours were over. */
MURAL_API mural_status mural_train_run(const mural_config *config, const mural_config_report *report, mural_comm *comm,
                                       const mural_run_options *options, mural_train_result *result, mural_error *err);

typedef struct mural_evaluate_result {
	mural_evaluation all;
	char weights[1300]; /* the file; rank 0's */
	size_t n_worst; /* filled on rank 0 */
	mural_class_score worst[MURAL_WORST_CLASSES]; /* the worst first */
} mural_evaluate_result;

/* All ranks. weights: a safetensors file, or NULL for those that options->checkpoint and config->run.run_dir name, which are
 * verified. Writes options->result_path if given. */
MURAL_API mural_status mural_evaluate_run(const mural_config *config, const mural_config_report *report,
                                          mural_comm *comm, const char *weights, mural_split split,
                                          const mural_run_options *options, mural_evaluate_result *result,
                                          mural_error *err);

#ifdef __cplusplus
}
#endif
#endif
