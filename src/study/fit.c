/* Sorting measured rows into pools, and answering for wanted ones. SPDX-License-Identifier: MIT */
#include "study/fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "study/fit_inside.h"

static mu_fit_pool *find_pool(const mu_fit *fit, const char *cluster, const char *gpu)
{
	for (size_t p = 0; p < fit->n_pools; p++) {
		const mu_epoch_row *any = fit->pools[p].rows[0];
		if (strcmp(any->cluster, cluster) == 0 && strcmp(any->gpu, gpu) == 0)
			return &fit->pools[p];
	}
	return NULL;
}

static mural_status count_placement(mu_fit_pool *pool, const mu_epoch_row *row, const char *path, mural_error *err)
{
	size_t p = 0;
	while (p < pool->n_placements && strcmp(pool->placements[p], row->placement) != 0)
		p++;
	if (p == MU_FIT_PLACEMENTS) {
		char where[512];
		snprintf(where, sizeof where, "%.480s:%u", path, row->line);
		return mu_fail(err, MURAL_DATA, where, "one GPU of one cluster has more than %d placements",
		               MU_FIT_PLACEMENTS);
	}
	pool->placements[p] = row->placement;
	pool->n_placements += p == pool->n_placements;
	pool->together[p] += row->gpus > 1;
	return MURAL_OK;
}

/* Puts the placement with most rows of several GPUs first. */
static void best_known_first(mu_fit_pool *pool)
{
	size_t best = 0;
	for (size_t p = 1; p < pool->n_placements; p++)
		if (pool->together[p] > pool->together[best])
			best = p;
	const char *name = pool->placements[best];
	size_t rows = pool->together[best];
	pool->placements[best] = pool->placements[0];
	pool->together[best] = pool->together[0];
	pool->placements[0] = name;
	pool->together[0] = rows;
}

/* A row that its described cluster has no devices for cannot be used. */
static mural_status place(const mu_fit *fit, const mu_epochs *epochs, const mu_epoch_row *row, mural_error *err)
{
	mu_fit_site site;
	mural_status status = mu_fit_site_of(&fit->settings, row, &site, err);
	if (status != MURAL_OK)
		mu_context(err, "for %.400s:%u", epochs->table.path, row->line);
	return status;
}

static mural_status add_row(mu_fit *fit, const mu_epochs *epochs, const mu_epoch_row *row, mural_error *err)
{
	mu_fit_pool *pool = find_pool(fit, row->cluster, row->gpu);
	if (!pool) {
		pool = &fit->pools[fit->n_pools];
		pool->settings = &fit->settings;
		pool->rows = calloc(epochs->table.n_rows, sizeof *pool->rows);
		if (!pool->rows)
			return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for %zu rows", epochs->table.n_rows);
		fit->n_pools++;
	}
	pool->rows[pool->n_rows++] = row;
	pool->has_precision[row->precision] = true;
	fit->n_used++;
	return count_placement(pool, row, epochs->table.path, err);
}

static mural_status sort_rows(mu_fit *fit, const mu_epochs *epochs, mural_error *err)
{
	for (size_t r = 0; r < epochs->table.n_rows; r++) {
		const mu_epoch_row *row = &epochs->rows[r];
		if (*row->why) {
			char where[512];
			snprintf(where, sizeof where, "%.480s:%u", epochs->table.path, row->line);
			return mu_fail(err, MURAL_DATA, where, "%s", row->why);
		}
		if (isnan(row->seconds))
			fit->n_empty++;
		else {
			MU_TRY(place(fit, epochs, row, err));
			MU_TRY(add_row(fit, epochs, row, err));
		}
	}
	if (fit->n_used == 0)
		return mu_fail(err, MURAL_DATA, epochs->table.path,
		               "no row has epoch_seconds_median: there is nothing to fit");
	return MURAL_OK;
}

mural_status mu_fit_create(mu_fit **fit, const mu_fit_settings *settings, const mu_epochs *epochs, mural_error *err)
{
	mu_fit *made = *fit = calloc(1, sizeof *made);
	if (made)
		made->pools = calloc(epochs->table.n_rows, sizeof *made->pools);
	mural_status status = MURAL_OK;
	if (!made || !made->pools)
		MU_TRY_OUT(mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory to fit %zu rows", epochs->table.n_rows));
	made->settings = *settings;
	MU_TRY_OUT(sort_rows(made, epochs, err));
	for (size_t p = 0; p < made->n_pools; p++) {
		best_known_first(&made->pools[p]);
		MU_TRY_OUT(mu_fit_pool_solve(&made->pools[p], err));
	}
out:
	if (status != MURAL_OK) {
		mu_fit_free(made);
		*fit = NULL;
	}
	return status;
}

void mu_fit_free(mu_fit *fit)
{
	if (!fit)
		return;
	for (size_t p = 0; p < fit->n_pools; p++)
		free(fit->pools[p].rows);
	free(fit->pools);
	free(fit);
}

/* Why the pool cannot tell, in `why`; true if it can. */
static bool can_tell(const mu_fit *fit, const mu_fit_pool *pool, const mu_epoch_row *row, char *why, size_t bytes)
{
	mu_fit_site site;
	mural_error err = {0};
	if (*row->why)
		snprintf(why, bytes, "%s", row->why);
	else if (!pool)
		snprintf(why, bytes, "no measured row has cluster \"%.40s\" and GPU \"%.40s\"", row->cluster, row->gpu);
	else if (!pool->has_precision[row->precision])
		snprintf(why, bytes, "no measured row of this GPU has precision %s", mu_precision_text(row->precision));
	else if (mu_fit_site_of(&fit->settings, row, &site, &err) != MURAL_OK)
		snprintf(why, bytes, "%.250s", err.message);
	else if (row->gpus > 1 && pool->together[0] == 0 && !site.described)
		snprintf(why, bytes,
		         "no measured row of this GPU has more than one GPU: what working together costs is "
		         "not known");
	else
		return true;
	return false;
}

bool mu_fit_predict(const mu_fit *fit, const mu_epoch_row *row, double *seconds, char *why, size_t why_bytes)
{
	const mu_fit_pool *pool = *row->why ? NULL : find_pool(fit, row->cluster, row->gpu);
	if (!can_tell(fit, pool, row, why, why_bytes))
		return false;
	*seconds = row->steps * mu_fit_pool_step(pool, row);
	return true;
}

size_t mu_fit_rows_used(const mu_fit *fit)
{
	return fit->n_used;
}

size_t mu_fit_rows_empty(const mu_fit *fit)
{
	return fit->n_empty;
}

static void describe(const mu_fit_pool *pool, int h, FILE *out)
{
	const double *theta = pool->hypotheses[h].theta;
	mu_fit_site site;
	bool described = mu_fit_site_of(pool->settings, pool->rows[0], &site, NULL) == MURAL_OK && site.described;
	fprintf(out, "  %.0f %% %s:", 100 * pool->hypotheses[h].share, mu_fit_terms_all[h].name);
	for (int p = 0; p < MU_PRECISIONS; p++)
		if (pool->has_precision[p])
			fprintf(out, " %s %.4g s + %.4g s per image;", mu_precision_text((mu_precision)p),
			        theta[mu_fit_at_a((mu_precision)p)], theta[mu_fit_at_a((mu_precision)p) + 1]);
	for (size_t p = 0; p < pool->n_placements; p++)
		if (pool->together[p] > 0)
			fprintf(out, " %s %.4g s + %.4g %s;", pool->placements[p], theta[mu_fit_at_k(p)],
			        theta[mu_fit_at_k(p) + 1], described ? "x the described link" : "s per GB");
	fprintf(out, "\n");
}

void mu_fit_describe(const mu_fit *fit, FILE *out)
{
	for (size_t p = 0; p < fit->n_pools; p++) {
		const mu_fit_pool *pool = &fit->pools[p];
		fprintf(out, "%s, %s (%zu rows):\n", pool->rows[0]->cluster, pool->rows[0]->gpu, pool->n_rows);
		for (int h = 0; h < MU_FIT_HYPOTHESES; h++)
			if (pool->hypotheses[h].share >= 0.005)
				describe(pool, h, out);
	}
}
