/* Robust regularised least squares. SPDX-License-Identifier: MIT */
#include "study/ridge.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define ROUNDS 40 /* of reweighting; differences vanish after about ten */
#define HUBER 1.0 /* in units of sigma: beyond it a row counts linearly */
#define TINY 1e-4 /* seconds: a tie to a coefficient of 0 still leaves this much room */

typedef struct equation {
	size_t n;
	double h[MU_RIDGE_MOST][MU_RIDGE_MOST], q[MU_RIDGE_MOST];
} equation;

/* h theta = q by Cholesky over the coefficients that are free; the others are 0. h is positive definite: every prior
 * has a scale. */
static void solve_free(const equation *e, const bool *free_of, double *theta)
{
	double l[MU_RIDGE_MOST][MU_RIDGE_MOST], y[MU_RIDGE_MOST];
	size_t at[MU_RIDGE_MOST], n = 0;
	for (size_t j = 0; j < e->n; j++) {
		theta[j] = 0;
		if (free_of[j])
			at[n++] = j;
	}
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j <= i; j++) {
			double sum = e->h[at[i]][at[j]];
			for (size_t k = 0; k < j; k++)
				sum -= l[i][k] * l[j][k];
			l[i][j] = i == j ? sqrt(fmax(sum, 1e-300)) : sum / l[j][j];
		}
		double sum = e->q[at[i]];
		for (size_t k = 0; k < i; k++)
			sum -= l[i][k] * y[k];
		y[i] = sum / l[i][i];
	}
	for (size_t i = n; i-- > 0;) {
		double sum = y[i];
		for (size_t k = i + 1; k < n; k++)
			sum -= l[k][i] * theta[at[k]];
		theta[at[i]] = sum / l[i][i];
	}
}

static void solve_nonnegative(const equation *e, double *theta)
{
	bool free_of[MU_RIDGE_MOST], again = true;
	for (size_t j = 0; j < e->n; j++)
		free_of[j] = true;
	while (again) {
		again = false;
		solve_free(e, free_of, theta);
		for (size_t j = 0; j < e->n; j++)
			if (theta[j] < 0) {
				free_of[j] = false;
				again = true;
			}
	}
}

static void set_up(const mu_ridge *r, bool first, equation *e)
{
	memset(e, 0, sizeof *e);
	e->n = r->n;
	for (size_t i = 0; i < r->n_rows; i++) {
		const double *x = r->x + i * r->n, w = r->weight[i] / (r->sigma[i] * r->sigma[i]);
		for (size_t j = 0; j < r->n; j++) {
			e->q[j] += w * x[j];
			for (size_t k = 0; k < r->n; k++)
				e->h[j][k] += w * x[j] * x[k];
		}
	}
	for (size_t j = 0; j < r->n; j++) {
		double p = 1 / (r->scale[j] * r->scale[j]);
		e->h[j][j] += p;
		e->q[j] += p * r->mean[j];
	}
	for (size_t t = 0; t < r->n_ties; t++) {
		size_t a = r->ties[t].from, b = r->ties[t].to;
		double near = r->tie_fraction * fmax(first ? 0 : r->theta[b], TINY), p = 1 / (near * near);
		e->h[a][a] += p;
		e->h[b][b] += p;
		e->h[a][b] -= p;
		e->h[b][a] -= p;
	}
}

static void weigh(mu_ridge *r)
{
	r->loss = 0;
	for (size_t i = 0; i < r->n_rows; i++) {
		double sum = -1;
		for (size_t j = 0; j < r->n; j++)
			sum += r->x[i * r->n + j] * r->theta[j];
		double off = fabs(sum) / r->sigma[i];
		r->weight[i] = off <= HUBER ? 1 : HUBER / off;
		r->loss += off <= HUBER ? off * off / 2 : HUBER * (off - HUBER / 2);
	}
}

void mu_ridge_solve(mu_ridge *r)
{
	for (size_t i = 0; i < r->n_rows; i++)
		r->weight[i] = 1;
	for (int round = 0; round < ROUNDS; round++) {
		equation e;
		set_up(r, round == 0, &e);
		solve_nonnegative(&e, r->theta);
		weigh(r);
	}
}
