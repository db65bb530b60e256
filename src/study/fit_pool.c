/* One pool: three hypotheses, fitted and averaged. SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "study/fit_inside.h"

#define SPREAD 0.02 /* relative, of a measured median: epochs of one set-up repeat within about this */
#define LAUNCH 0.05 /* A is of the order of this part of a small batch's compute */
#define SMALL_BATCH 16.0
#define FIXED 3.0 /* K is at most of the order of so many small batches' compute */
#define SLOWEST 10.0 /* seconds per gigabyte: R's order at most, 0.1 GB/s */
#define LINK 0.2 /* a described link's bandwidth is right within about this part */
#define TIE 0.2 /* placements differ by about this part */
#define CARRY 3.0 /* rows that a group needs to carry over half its remainder */

const mu_fit_terms mu_fit_terms_all[MU_FIT_HYPOTHESES] = {
        {"fixed cost of working together", true, false},
        {"ring all-reduce", false, true},
        {"fixed cost and ring all-reduce", true, true},
};

static size_t placement_of(const mu_fit_pool *pool, const char *name)
{
	for (size_t p = 0; p < pool->n_placements; p++)
		if (strcmp(pool->placements[p], name) == 0)
			return p;
	return 0; /* the best-known one stands for an unknown one */
}

void mu_fit_features(const mu_fit_pool *pool, const mu_fit_terms *terms, const mu_epoch_row *row, double *x)
{
	mu_fit_site site;
	(void)mu_fit_site_of(pool->settings, row, &site, NULL); /* rows without a place were refused before */
	memset(x, 0, mu_fit_coefficients(pool) * sizeof *x);
	x[mu_fit_at_a(row->precision)] = site.slowness;
	x[mu_fit_at_a(row->precision) + 1] = site.slowness * row->batch;
	if (row->gpus == 1)
		return;
	size_t k = mu_fit_at_k(placement_of(pool, row->placement));
	double gigabytes = pool->settings->parameters * mu_precision_bytes(row->precision) / 1e9;
	x[k] = terms->fixed ? 1 : 0;
	x[k + 1] = terms->ring ? 2.0 * (row->gpus - 1) / row->gpus * gigabytes * site.seconds_per_gigabyte : 0;
}

static double dot(const double *x, const double *theta, size_t n)
{
	double sum = 0;
	for (size_t j = 0; j < n; j++)
		sum += x[j] * theta[j];
	return sum;
}

/* The fewest seconds per image that a row of this precision shows. */
static double fastest_image(const mu_fit_pool *pool, mu_precision precision)
{
	double fastest = INFINITY;
	for (size_t r = 0; r < pool->n_rows; r++)
		if (pool->rows[r]->precision == precision)
			fastest = fmin(fastest, mu_fit_step_seconds(pool->rows[r]) / pool->rows[r]->batch);
	return fastest;
}

static void set_priors(const mu_fit_pool *pool, mu_ridge *ridge)
{
	mu_fit_site site;
	bool described = mu_fit_site_of(pool->settings, pool->rows[0], &site, NULL) == MURAL_OK && site.described;
	double fastest = INFINITY;
	for (int p = 0; p < MU_PRECISIONS; p++) {
		size_t a = mu_fit_at_a((mu_precision)p);
		double image = pool->has_precision[p] ? fastest_image(pool, (mu_precision)p) : 1;
		ridge->mean[a] = 0;
		ridge->scale[a] = LAUNCH * image * SMALL_BATCH;
		ridge->mean[a + 1] = image;
		ridge->scale[a + 1] = 10 * image;
		if (pool->has_precision[p])
			fastest = fmin(fastest, image);
	}
	for (size_t p = 0; p < pool->n_placements; p++) {
		size_t k = mu_fit_at_k(p);
		ridge->mean[k] = 0;
		ridge->scale[k] = FIXED * fastest * SMALL_BATCH;
		ridge->mean[k + 1] = described ? 1 : 0;
		ridge->scale[k + 1] = described ? LINK : SLOWEST;
		if (p == 0)
			continue;
		ridge->ties[ridge->n_ties++] = (mu_ridge_tie){k, mu_fit_at_k(0)};
		ridge->ties[ridge->n_ties++] = (mu_ridge_tie){k + 1, mu_fit_at_k(0) + 1};
	}
}

static bool same_group(const mu_epoch_row *a, const mu_epoch_row *b)
{
	return a->batch == b->batch && a->precision == b->precision && strcmp(a->placement, b->placement) == 0 &&
	       strcmp(a->dataset, b->dataset) == 0;
}

static mu_fit_group *group_of(mu_fit_hypothesis *h, const mu_epoch_row *row)
{
	for (size_t g = 0; g < h->n_groups; g++)
		if (same_group(h->groups[g].like, row))
			return &h->groups[g];
	if (h->n_groups == MU_FIT_GROUPS)
		return NULL;
	h->groups[h->n_groups] = (mu_fit_group){.like = row};
	return &h->groups[h->n_groups++];
}

static void find_remainders(const mu_fit_pool *pool, mu_fit_hypothesis *h, const mu_ridge *ridge)
{
	for (size_t r = 0; r < pool->n_rows; r++) {
		mu_fit_group *group = pool->rows[r]->gpus > 1 ? group_of(h, pool->rows[r]) : NULL;
		if (!group)
			continue;
		double relative = SPREAD / ridge->sigma[r], weight = ridge->weight[r] * relative * relative;
		group->sum -= weight * log(dot(ridge->x + r * ridge->n, ridge->theta, ridge->n));
		group->weight += weight;
	}
}

/* Half Schwarz's criterion: the loss and what each coefficient in use costs. */
static double badness(const mu_fit_pool *pool, const mu_ridge *ridge)
{
	double used = 0;
	for (size_t j = mu_fit_at_k(0); j < ridge->n; j++)
		used += ridge->theta[j] > 0;
	return ridge->loss + used / 2 * log((double)pool->n_rows);
}

static void share_out(mu_fit_pool *pool, const double *bad)
{
	double least = INFINITY, sum = 0;
	for (int h = 0; h < MU_FIT_HYPOTHESES; h++)
		least = fmin(least, bad[h]);
	for (int h = 0; h < MU_FIT_HYPOTHESES; h++)
		sum += pool->hypotheses[h].share = exp(least - bad[h]);
	for (int h = 0; h < MU_FIT_HYPOTHESES; h++)
		pool->hypotheses[h].share /= sum;
}

mural_status mu_fit_pool_solve(mu_fit_pool *pool, mural_error *err)
{
	size_t n = mu_fit_coefficients(pool);
	double *x = calloc(pool->n_rows * (n + 2), sizeof *x), bad[MU_FIT_HYPOTHESES];
	if (!x)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory to fit %zu rows", pool->n_rows);
	double *sigma = x + pool->n_rows * n, *weight = sigma + pool->n_rows;
	for (int h = 0; h < MU_FIT_HYPOTHESES; h++) {
		mu_ridge ridge = {
		        .n_rows = pool->n_rows, .n = n, .x = x, .sigma = sigma, .weight = weight, .tie_fraction = TIE};
		for (size_t r = 0; r < pool->n_rows; r++) {
			mu_fit_features(pool, &mu_fit_terms_all[h], pool->rows[r], x + r * n);
			for (size_t j = 0; j < n; j++)
				x[r * n + j] /= mu_fit_step_seconds(pool->rows[r]);
			sigma[r] = hypot(SPREAD, pool->rows[r]->spread);
		}
		set_priors(pool, &ridge);
		mu_ridge_solve(&ridge);
		memcpy(pool->hypotheses[h].theta, ridge.theta, sizeof ridge.theta);
		find_remainders(pool, &pool->hypotheses[h], &ridge);
		bad[h] = badness(pool, &ridge);
	}
	share_out(pool, bad);
	free(x);
	return MURAL_OK;
}

static double carried(const mu_fit_hypothesis *h, const mu_epoch_row *row)
{
	for (size_t g = 0; row->gpus > 1 && g < h->n_groups; g++)
		if (same_group(h->groups[g].like, row))
			return exp(h->groups[g].sum / (h->groups[g].weight + CARRY));
	return 1;
}

double mu_fit_pool_step(const mu_fit_pool *pool, const mu_epoch_row *row)
{
	double x[MU_RIDGE_MOST], sum = 0;
	for (int h = 0; h < MU_FIT_HYPOTHESES; h++) {
		const mu_fit_hypothesis *hypothesis = &pool->hypotheses[h];
		mu_fit_features(pool, &mu_fit_terms_all[h], row, x);
		sum += hypothesis->share * dot(x, hypothesis->theta, mu_fit_coefficients(pool)) *
		       carried(hypothesis, row);
	}
	return sum;
}
