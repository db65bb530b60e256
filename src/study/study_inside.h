/* Inside a study: its points, its runs, and what was measured.
 *
 *     study.c          from the first run to the files
 *     study_points.c   kinds, axes and their values; which points there are
 *     study_where.c    what the runs are: configuration, emulated cluster, hosts; where a point's ranks sit
 *     study_command.c  the command line of one run; training.h runs it, study_read.c reads what it measured
 *     study_compare.c  points compared, with intervals
 *     study_write.c    study.csv, metrics.csv, epochs.csv;  study_json.c: study.json
 * SPDX-License-Identifier: MIT */
#ifndef MU_STUDY_STUDY_INSIDE_H
#define MU_STUDY_STUDY_INSIDE_H

#include "mural/cluster.h"
#include "mural/study.h"
#include "study/training.h"

/* What is trained, the same in all rounds. */
typedef struct mu_point {
	char name[128]; /* "strong-r2-b16": its folders begin so */
	uint32_t ranks, batch, accumulation; /* batch: images per rank and micro-batch */
	const char *words[MURAL_STUDY_AXES]; /* values of the axes that have words; NULL: the configuration's own */
	size_t at[MURAL_STUDY_AXES]; /* place of each value on its axis's list */
	double fraction; /* of the data set */
} mu_point;

/* What all runs have in common. */
typedef struct mu_study_where {
	char model[64], data[256]; /* as configured */
	mural_cluster *cluster; /* emulated, NULL: none */
	mural_placement placement; /* configured for it */
	mural_hosts *hosts; /* NULL: this machine, or Slurm's choice */
} mu_study_where;

/* Stays where it is: points borrow words of settings. */
typedef struct mu_study {
	mural_study_settings settings; /* the caller's, what was left open filled in */
	mu_study_where where;
	size_t n_points;
	mu_point *points;
	mu_run_facts *runs; /* [rounds][n_points] */
	double from, training; /* when this start began; seconds of it spent in trainings */
} mu_study;

static inline mu_run_facts *mu_study_facts(const mu_study *study, uint32_t round, size_t point)
{
	return &study->runs[round * study->n_points + point];
}

/* study_points.c */
extern const char *const mu_study_kinds[MURAL_STUDY_KINDS]; /* names */
extern const char *const mu_study_sets[MURAL_STUDY_AXES]; /* options of `mural train`, "" for numbers */
/* Which axis does the study compare along? */
mural_study_axis mu_study_varies(mural_study_kind kind);
/* Checks the settings, copies them and fills in what was left open, but for ranks. */
mural_status mu_study_fill(mu_study *study, const mural_study_settings *settings, mural_error *err);
/* Points of settings and where; the caller frees points and runs. */
mural_status mu_study_plan(mu_study *study, mural_error *err);
/* Point number i; ranks change fastest. */
mu_point mu_study_point(const mural_study_settings *settings, size_t i);

/* study_where.c: asks the program what the configuration says; opens hosts and cluster. Release in any case. */
mural_status mu_study_where_find(mu_study *study, mural_error *err);
void mu_study_where_release(mu_study_where *where);
bool mu_study_names_hosts(const mural_hosts_choice *hosts);
/* Most ranks that a point can have; 0: not known. */
uint32_t mu_study_where_most(const mu_study_where *where);

typedef struct mu_study_seat {
	char cluster[256], device[MURAL_CLUSTER_NAME]; /* device: "cpu", "mixed" */
	bool across; /* the ranks sit on more than one node, or would with more of them */
} mu_study_seat;

mural_status mu_study_seat_of(const mu_study *study, const mu_point *point, mu_study_seat *seat, mural_error *err);
/* --include for a point's slots: "c1:0,2@c2:1". The caller frees *filter. */
mural_status mu_study_slots(const mu_study_where *where, const mu_point *point, char **filter, mural_error *err);

/* study_command.c: trains one point in one round, or finds that it was trained before. A run that fails is told in facts and is no
 * failure here. */
mural_status mu_study_train(const mu_study *study, const mu_point *point, uint32_t round, mu_run_facts *facts,
                            mural_error *err);

typedef struct mu_study_command {
	mu_command words;
	char *slots; /* what --include points to */
	char *slurm; /* srun's options, cut into words */
} mu_study_command;

/* Zero-initialise. shown: the command that only shows the configuration of that point. Release in any case. */
mural_status mu_study_command_make(mu_study_command *command, const mu_study *study, const mu_point *point, bool shown,
                                   mural_error *err);
void mu_study_command_release(mu_study_command *command);

/* "FOLDER/points/NAME.R" */
void mu_study_run_folder(const mu_study *study, const mu_point *point, uint32_t round, char *folder, size_t size);

/* study_write.c: all files, as far as there is something. */
mural_status mu_study_write(const mu_study *study, mural_error *err);
/* study_json.c */
mural_status mu_study_write_json(const mu_study *study, mural_error *err);

/* study_compare.c: a point over its rounds, beside the point it is compared with. */
typedef struct mu_interval {
	double low, high; /* 95 %; NaN with one round */
} mu_interval;

typedef struct mu_comparison {
	size_t rounds; /* that succeeded */
	mu_run_facts median; /* field by field */
	size_t base; /* index of the point it is compared with: the first one alike in all but what the study changes */
	double speed_up; /* images per second over the base's */
	double efficiency; /* speed_up / (ranks / base ranks) */
	double serial; /* Karp and Flatt 1990: (1 / s - 1 / n) / (1 - 1 / n); NaN for n = 1 */
	double communication; /* exposed / step */
	mu_interval speed_up_in, efficiency_in, serial_in, communication_in;
} mu_comparison;

mu_comparison mu_study_compare(const mu_study *study, size_t point);

#endif
