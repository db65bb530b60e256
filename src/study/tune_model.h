/* What points cost, from the trials of some of them.
 *
 * Work is counted in core-seconds per image, c: a step of a point takes accumulation x micro-batch x c / threads + f, where f
 * (optimizer, waiting for other ranks) is measured in every trial and belongs to an arm: a number of ranks and of threads; where all
 * points have the same batch f is left in c. For c
 * the model is
 *
 *     log c(arm, m) = level(arm) + log(1 + h x threads / m) + r(arm, log2 m)
 *
 * a straight line of a micro-batch's time over its size, of which h is the part that does not depend on the size, counted in images of
 * one core; what a line cannot say (a cache that overflows) is in the smooth r. Level and r are a Gaussian process with a part common
 * to all arms and one of each arm's own. h is one of a few values, each as likely as the trials make it. So three or
 * four trials tell of all points, and how sure that is; trials far from a point tell less of it.
 *
 * Rasmussen, Williams 2006, Gaussian Processes for Machine Learning, 2.2 and 2.7.
 * SPDX-License-Identifier: MIT */
#ifndef MU_STUDY_TUNE_MODEL_H
#define MU_STUDY_TUNE_MODEL_H

#include "mural/tune.h"

/* One trial as the model sees it. */
typedef struct mu_tune_sample {
	uint32_t ranks, threads;
	double micro; /* images */
	double cost; /* core-seconds per image */
	double fixed; /* seconds per step */
	double error; /* standard error of cost, a share of it */
} mu_tune_sample;

#define MU_TUNE_LINES 9 /* values of h */

/* The process for one h. */
typedef struct mu_tune_line {
	double h;
	double weights[MURAL_TUNE_TRIALS]; /* covariance^-1 (log cost - its mean) */
	double share; /* its probability */
} mu_tune_line;

typedef struct mu_tune_model {
	size_t n;
	double shape; /* standard deviation of r */
	double unit; /* mean of the samples' log cost: where levels are expected */
	mu_tune_sample samples[MURAL_TUNE_TRIALS];
	double factor[MURAL_TUNE_TRIALS * MURAL_TUNE_TRIALS]; /* Cholesky factor of the samples' covariance, lower */
	mu_tune_line lines[MU_TUNE_LINES];
} mu_tune_model;

/* Seconds of a step of a point. */
typedef struct mu_tune_forecast {
	double step, error; /* expected, and its standard error; of the latter h has no part */
	double least; /* what it may be in the best case: by any line that is not ruled out, and SIDE standard errors below it */
} mu_tune_forecast;

#define MU_TUNE_SIDE 1.5 /* a point is faster than that in 7 of 100 cases */

/* Empties the model. */
void mu_tune_model_init(mu_tune_model *model);
/* Adds a sample and fits anew; beyond MURAL_TUNE_TRIALS it is left out. */
void mu_tune_model_add(mu_tune_model *model, const mu_tune_sample *sample);
/* Without samples, in units of a step's image on one core: fit to compare points, not as a time. */
mu_tune_forecast mu_tune_model_ask(const mu_tune_model *model, const mural_tune_point *point);
/* The line of one arm: seconds of a micro-batch whatever its size, and of each image in it. */
void mu_tune_model_line(const mu_tune_model *model, uint32_t ranks, uint32_t threads, double *per_micro_batch,
                        double *per_image);
/* Mean of the arm's samples, of all samples for an arm without one, 0 without any. */
double mu_tune_model_fixed(const mu_tune_model *model, uint32_t ranks, uint32_t threads);

#endif
