/* Inside a fit: pools, hypotheses, coefficients. SPDX-License-Identifier: MIT */
#ifndef MU_STUDY_FIT_INSIDE_H
#define MU_STUDY_FIT_INSIDE_H

#include "study/fit.h"
#include "study/ridge.h"

#define MU_FIT_PLACEMENTS 8 /* most in one pool */
#define MU_FIT_GROUPS 64 /* most groups whose common remainder is carried over */

/* Which terms of working together a hypothesis has. */
typedef struct mu_fit_terms {
	const char *name;
	bool fixed, ring; /* K, R */
} mu_fit_terms;

#define MU_FIT_HYPOTHESES 3
extern const mu_fit_terms mu_fit_terms_all[MU_FIT_HYPOTHESES];

/* Rows alike but for the number of GPUs and the part of the data set. */
typedef struct mu_fit_group {
	const mu_epoch_row *like;
	double sum, weight; /* of log(measured / model), weighted */
} mu_fit_group;

typedef struct mu_fit_hypothesis {
	double theta[MU_RIDGE_MOST];
	double share; /* in the average; all shares of a pool sum to 1 */
	size_t n_groups;
	mu_fit_group groups[MU_FIT_GROUPS];
} mu_fit_hypothesis;

typedef struct mu_fit_pool {
	const mu_fit_settings *settings;
	size_t n_rows;
	const mu_epoch_row **rows; /* those with seconds */
	bool has_precision[MU_PRECISIONS];
	size_t n_placements;
	const char *placements[MU_FIT_PLACEMENTS]; /* the best-known one first */
	size_t together[MU_FIT_PLACEMENTS]; /* rows with more than one GPU */
	mu_fit_hypothesis hypotheses[MU_FIT_HYPOTHESES];
} mu_fit_pool;

struct mu_fit {
	mu_fit_settings settings;
	size_t n_pools, n_used, n_empty;
	mu_fit_pool *pools;
};

/* What a described cluster says of a row. */
typedef struct mu_fit_site {
	bool described;
	double slowness; /* of the slowest device in use, over the first one; >= 1 where that is the fastest */
	double seconds_per_gigabyte; /* of the slowest link in use */
} mu_fit_site;

/* described is false without a cluster, or when it has another name. MURAL_DATA: it has too few devices for the row. */
mural_status mu_fit_site_of(const mu_fit_settings *settings, const mu_epoch_row *row, mu_fit_site *site,
                            mural_error *err);

/* Where coefficients lie: A and B of each precision, then K and R of each placement. */
static inline size_t mu_fit_at_a(mu_precision precision)
{
	return 2 * (size_t)precision;
}

static inline size_t mu_fit_at_k(size_t placement)
{
	return 2 * (size_t)MU_PRECISIONS + 2 * placement;
}

static inline size_t mu_fit_coefficients(const mu_fit_pool *pool)
{
	return mu_fit_at_k(pool->n_placements);
}

/* What the coefficients are multiplied with for a row: x[0 .. mu_fit_coefficients). */
void mu_fit_features(const mu_fit_pool *pool, const mu_fit_terms *terms, const mu_epoch_row *row, double *x);

static inline double mu_fit_step_seconds(const mu_epoch_row *row)
{
	return row->seconds / row->steps;
}

/* Fits all hypotheses of a pool whose rows and placements are there. */
mural_status mu_fit_pool_solve(mu_fit_pool *pool, mural_error *err);

/* Seconds of one step by the average of the hypotheses. */
double mu_fit_pool_step(const mu_fit_pool *pool, const mu_epoch_row *row);

#endif
