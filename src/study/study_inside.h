/* Inside a study: its points, its runs, and what was measured. SPDX-License-Identifier: MIT */
#ifndef MU_STUDY_STUDY_INSIDE_H
#define MU_STUDY_STUDY_INSIDE_H

#include "mural/study.h"
#include "study/training.h"

/* What is trained, the same in all rounds. */
typedef struct mu_point {
	char name[96]; /* "strong-r2-b16": its folders begin so */
	uint32_t ranks, batch, accumulation; /* batch: images per rank and micro-batch */
	const char *precision, *optimizer; /* optimizer: NULL for the configuration's own */
	double fraction; /* of the data set */
} mu_point;

typedef struct mu_study {
	const mural_study_settings *settings;
	size_t n_points;
	mu_point *points;
	mu_run_facts *runs; /* [rounds][n_points] */
} mu_study;

static inline mu_run_facts *mu_study_facts(const mu_study *study, uint32_t round, size_t point)
{
	return &study->runs[round * study->n_points + point];
}

/* study_points.c */
mural_status mu_study_check(const mural_study_settings *settings, mural_error *err);
/* Fills study->points; the caller frees them. */
mural_status mu_study_plan(mu_study *study, mural_error *err);

/* study_process.c: trains one point in one round, or finds that it was trained before. A run that fails is told in facts and is no
 * failure here. */
mural_status mu_study_train(const mu_study *study, const mu_point *point, uint32_t round, mu_run_facts *facts,
                            mural_error *err);

/* study_write.c */
mural_status mu_study_write(const mu_study *study, mural_error *err);

/* study_compare.c: a point over its rounds, beside the point it is compared with. */
typedef struct mu_comparison {
	size_t rounds; /* that succeeded */
	mu_run_facts median; /* field by field */
	size_t base; /* index of the point it is compared with: the first one alike in all but what the study changes */
	double speed_up, low, high; /* images per second over the base's; 95 % interval, NaN with one round */
	double efficiency; /* speed_up / (ranks / base ranks) */
	double serial; /* Karp and Flatt 1990: (1 / s - 1 / n) / (1 - 1 / n); NaN for n = 1 */
	double communication; /* exposed / step */
} mu_comparison;

mu_comparison mu_study_compare(const mu_study *study, size_t point);

#endif
