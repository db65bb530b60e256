/* Scaling studies: the same training at several numbers of ranks, batches, placements or precisions, measured and compared.
 *
 * A study is a list of points; each point is trained by the program itself (`mural train --ranks ...`), several times over, in
 * rounds, so that a machine that becomes slower does so for all points alike. What each run measured is kept, medians are taken, and
 * every point is compared with the first one. A run that fails is recorded and the others go on; a study that is
 * interrupted goes on where it stopped when it is started again.
 *
 *     FOLDER/study.csv        a row per run: point, round, seconds per step and where they went, accuracy, or why it failed
 *     FOLDER/study.json       the same by point: medians, speed-up, efficiency, serial and communication fractions
 *     FOLDER/metrics.csv      the rows of all runs' metrics.csv, with point and round in front
 *     FOLDER/epochs.csv       what mural/fit.h reads
 *     FOLDER/points/NAME.R/   the run folder of round R, with its log
 *
 *     mural_study_settings settings;
 *     mural_study_defaults(&settings);
 *     settings.kind = MURAL_STUDY_STRONG; ...
 *     mural_study_run(&settings, &summary, &err);
 *
 * Points are all combinations of the values on the lists, one list for each axis. A new kind of study is a row in each of the two
 * tables below, if `mural train` has an option for what it varies.
 * SPDX-License-Identifier: MIT */
#ifndef MURAL_STUDY_H
#define MURAL_STUDY_H

#include <stddef.h>
#include <stdint.h>

#include "mural/error.h"
#include "mural/hosts.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MURAL_STUDY_MOST 32 /* values on a list */
#define MURAL_STUDY_WORD 32 /* bytes of one that is a word */
#define MURAL_STUDY_WARM_UP UINT32_MAX /* as the kind needs: 2 steps; heterogeneity 40, by then shares have settled */

/* What points can differ in. X(enum, option of `mural study` with the values, option of `mural train` that a value goes to or ""
 * for numbers, values when nobody gives some, help). Without values: ranks are 1, 2, 4, ... up to the cores or, at most 8, to what
 * the hosts or the emulated cluster have; the others stay as configured. */
#define MURAL_STUDY_AXIS_LIST(X)                                                                                       \
	X(MURAL_AXIS_RANKS, "--ranks", "", "", "numbers of ranks (default 1, 2, 4, ... up to what there is)")          \
	X(MURAL_AXIS_BATCH, "--batches", "", "16", "images per rank and step (default 16)")                            \
	X(MURAL_AXIS_ACCUMULATION, "--accumulations", "", "1", "micro-batches per step (default 1)")                   \
	X(MURAL_AXIS_PRECISION, "--precisions", "--precision", "fp32", "types (default fp32)")                         \
	X(MURAL_AXIS_OPTIMIZER, "--optimizers", "--optimizer", "", "optimizers (default as configured)")               \
	X(MURAL_AXIS_PLACEMENT, "--placements", "--placement", "",                                                     \
	  "pack: fill a node before the next; spread: a rank on each node before any has two (default as configured)") \
	X(MURAL_AXIS_BALANCE, "--balances", "--balance", "",                                                           \
	  "how a batch is shared out: equal, auto (default as configured)")

typedef enum mural_study_axis {
#define MURAL_X(name, option, sets, values, help) name,
	MURAL_STUDY_AXIS_LIST(MURAL_X)
#undef MURAL_X
	        MURAL_STUDY_AXES
} mural_study_axis;

/* X(enum, name, axis along which points are compared, its values when nobody gives some, help). */
#define MURAL_STUDY_LIST(X)                                                                          \
	X(MURAL_STUDY_STRONG, "strong", MURAL_AXIS_RANKS, "",                                        \
	  "ranks share one data set: ranks x images per rank grows, steps shrink")                   \
	X(MURAL_STUDY_WEAK, "weak", MURAL_AXIS_RANKS, "",                                            \
	  "each rank brings its own part of the data set, --fraction of it")                         \
	X(MURAL_STUDY_BATCH, "batch", MURAL_AXIS_BATCH, "16,32,64,128,256",                          \
	  "images per rank and step, for each number of ranks")                                      \
	X(MURAL_STUDY_ACCUMULATION, "accumulation", MURAL_AXIS_ACCUMULATION, "1,2,4",                \
	  "micro-batches per step, each of the same size")                                           \
	X(MURAL_STUDY_PLACEMENT, "placement", MURAL_AXIS_PLACEMENT, "pack,spread",                   \
	  "ranks on one node against one on each of several, with --cluster, --hostfile or --slurm") \
	X(MURAL_STUDY_PRECISION, "precision", MURAL_AXIS_PRECISION, "fp32,bf16",                     \
	  "type of parameters and activations, for each number of ranks")                            \
	X(MURAL_STUDY_OPTIMIZER, "optimizer", MURAL_AXIS_OPTIMIZER, "AdamW,SGD,Lion,Lamb",           \
	  "optimizers, for each number of ranks")                                                    \
	X(MURAL_STUDY_HETEROGENEITY, "heterogeneity", MURAL_AXIS_BALANCE, "equal,auto",              \
	  "equal shares of the batch against balanced ones, for each number of ranks")

typedef enum mural_study_kind {
#define MURAL_X(name, text, axis, values, help) name,
	MURAL_STUDY_LIST(MURAL_X)
#undef MURAL_X
	        MURAL_STUDY_KINDS
} mural_study_kind;

/* Values of one axis; n = 0: its default. */
typedef struct mural_study_values {
	size_t n;
	uint32_t numbers[MURAL_STUDY_MOST]; /* of axes whose values are numbers, >= 1 */
	char words[MURAL_STUDY_MOST][MURAL_STUDY_WORD]; /* of the others */
} mural_study_values;

typedef struct mural_study_settings {
	mural_study_kind kind;
	const char *program; /* path of `mural` */
	const char *folder;
	mural_study_values values[MURAL_STUDY_AXES];
	double fraction; /* of the data set: per rank in a weak study (default 0.1), elsewhere of each run (default 1) */
	uint32_t rounds; /* runs of each point, >= 1; default 3 */
	uint32_t steps; /* measured steps of a run; 0: whole epochs, as configured, with accuracy. Default 10 */
	uint32_t warm_up; /* steps before them that do not count; default MURAL_STUDY_WARM_UP */
	/* Real hosts to run on: each point takes as many of their slots as it has ranks. All zero: this machine. `ranks` stays 0. */
	mural_hosts_choice hosts;
	const char *slurm; /* each run is a Slurm job, started by srun with these options ("" = none); NULL: no Slurm */
	int argc; /* configuration of all runs, as `mural train` takes it; borrowed, as all texts here */
	const char *const *argv;
	FILE *progress; /* a line per run; NULL = silence */
	/* Asked before and after each run, and when a signal interrupts it: the run is then sent SIGINT. May be NULL */
	bool (*stop_asked)(void);
} mural_study_settings;

typedef struct mural_study_summary {
	size_t points, runs; /* planned */
	size_t reused, failed; /* runs measured by an earlier start of this study; runs that ended badly */
	double seconds, own_seconds; /* of this start: in all, and outside its trainings */
} mural_study_summary;

MURAL_API void mural_study_defaults(mural_study_settings *settings);

/* By name; MURAL_USAGE with the nearest one. */
MURAL_API mural_status mural_study_find(mural_study_kind *kind, const char *name, mural_error *err);

/* "1,2,4" or "fp32,bf16", as the axis has it; text NULL or malformed: MURAL_USAGE naming the axis's option. */
MURAL_API mural_status mural_study_values_read(mural_study_values *values, mural_study_axis axis, const char *text,
                                               mural_error *err);

/* MURAL_USAGE: settings that make no study, or a configuration that `mural train` refuses for the first point; nothing was written.
 * MURAL_FAILED: some runs failed; the files are written all the same. MURAL_STOPPED: asked to stop; the files hold what there is,
 * and the same call goes on. */
MURAL_API mural_status mural_study_run(const mural_study_settings *settings, mural_study_summary *summary,
                                       mural_error *err);

#ifdef __cplusplus
}
#endif
#endif
