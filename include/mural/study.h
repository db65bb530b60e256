/* Scaling studies: the same training at several numbers of ranks, batches or precisions, measured and compared.
 *
 * A study is a list of points; each point is trained by the program itself (`mural train --ranks ...`), several times over, in
 * rounds, so that a machine that becomes slower does so for all points alike. What each run measured is kept, medians are taken, and
 * every point is compared with the first one. A run that fails is recorded and the others go on; a study that is
 * interrupted goes on where it stopped when it is started again.
 *
 *     FOLDER/study.csv        a row per run: point, round, seconds per step and where they went, accuracy, or why it failed
 *     FOLDER/study.json       the same by point: medians, speed-up, efficiency, serial and communication fractions
 *     FOLDER/epochs.csv       what mural/fit.h reads
 *     FOLDER/points/NAME.R/   the run folder of round R, with its log
 *
 *     mural_study_settings settings;
 *     mural_study_defaults(&settings);
 *     settings.kind = MURAL_STUDY_STRONG; ...
 *     mural_study_run(&settings, &summary, &err);
 * SPDX-License-Identifier: MIT */
#ifndef MURAL_STUDY_H
#define MURAL_STUDY_H

#include <stddef.h>
#include <stdint.h>

#include "mural/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MURAL_STUDY_MOST 32 /* values on a list */

/* X(enum, name, what changes from point to point). */
#define MURAL_STUDY_LIST(X)                                                                                      \
	X(MURAL_STUDY_STRONG, "strong", "ranks share one data set: ranks x images per rank grows, steps shrink") \
	X(MURAL_STUDY_WEAK, "weak", "each rank brings its own part of the data set, --fraction of it")           \
	X(MURAL_STUDY_BATCH, "batch", "images per rank and step, for each number of ranks")                      \
	X(MURAL_STUDY_ACCUMULATION, "accumulation", "micro-batches per step, each of the same size")             \
	X(MURAL_STUDY_PRECISION, "precision", "type of parameters and activations, for each number of ranks")    \
	X(MURAL_STUDY_OPTIMIZER, "optimizer", "optimizers, for each number of ranks")

typedef enum mural_study_kind {
#define MURAL_X(name, text, help) name,
	MURAL_STUDY_LIST(MURAL_X)
#undef MURAL_X
	        MURAL_STUDY_KINDS
} mural_study_kind;

typedef struct mural_study_settings {
	mural_study_kind kind;
	const char *program; /* path of `mural` */
	const char *folder;
	size_t n_ranks, n_batches, n_accumulations, n_precisions, n_optimizers;
	uint32_t ranks[MURAL_STUDY_MOST]; /* default 1, 2, 4, ... up to the processor's cores */
	uint32_t batches[MURAL_STUDY_MOST]; /* images per rank; default 16, batch: 16, 32, 64, 128, 256 */
	uint32_t accumulations[MURAL_STUDY_MOST]; /* default 1, accumulation: 1, 2, 4 */
	const char *precisions[MURAL_STUDY_MOST]; /* default fp32, precision: fp32, bf16 */
	const char *optimizers
	        [MURAL_STUDY_MOST]; /* default: what the configuration says; optimizer: AdamW, SGD, Lion, Lamb */
	double fraction; /* of the data set: per rank in a weak study (default 0.1), elsewhere of each run (default 1) */
	uint32_t rounds; /* runs of each point, >= 1; default 3 */
	uint32_t steps; /* measured steps of a run; 0: whole epochs, as configured, with accuracy. Default 10 */
	uint32_t warm_up; /* steps before them that do not count; default 2 */
	int argc; /* configuration of all runs, as `mural train` takes it; borrowed, as all texts here */
	const char *const *argv;
	FILE *progress; /* a line per run; NULL = silence */
	bool (*stop_asked)(void); /* asked before and after each run; may be NULL */
} mural_study_settings;

typedef struct mural_study_summary {
	size_t points, runs; /* planned */
	size_t reused, failed; /* runs measured by an earlier start of this study; runs that ended badly */
	double seconds, own_seconds; /* of this start: in all, and outside its trainings */
} mural_study_summary;

MURAL_API void mural_study_defaults(mural_study_settings *settings);

/* By name; MURAL_USAGE with the nearest one. */
MURAL_API mural_status mural_study_find(mural_study_kind *kind, const char *name, mural_error *err);

/* MURAL_USAGE: settings that make no study. MURAL_FAILED: some runs failed; the files are written all the same. MURAL_STOPPED: asked
 * to stop; the files hold what there is, and the same call goes on. */
MURAL_API mural_status mural_study_run(const mural_study_settings *settings, mural_study_summary *summary,
                                       mural_error *err);

#ifdef __cplusplus
}
#endif
#endif
