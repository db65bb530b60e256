/* Small least squares with priors, robust against outliers, in which no coefficient is negative.
 *
 *     minimise  sum_i huber((x_i . theta - 1) / sigma_i)  +  sum_j ((theta_j - mean_j) / scale_j)^2 / 2  +  ties
 *
 * for rows already divided by what they should give, so residuals are relative. A tie pulls one coefficient towards
 * another, within a fraction of it. Solved by reweighting (Huber 1964, "Robust estimation of a location parameter"), each
 * round a normal equation whose negative coefficients are set to 0. Tens of rows and coefficients, not more.
 * SPDX-License-Identifier: MIT */
#ifndef MU_STUDY_RIDGE_H
#define MU_STUDY_RIDGE_H

#include <stddef.h>

#define MU_RIDGE_MOST 40 /* coefficients */

typedef struct mu_ridge_tie {
	size_t from, to; /* theta[from] is near theta[to] */
} mu_ridge_tie;

typedef struct mu_ridge {
	size_t n_rows, n;
	const double *x; /* [n_rows, n], relative */
	const double *sigma; /* [n_rows] > 0: relative spread expected of each row */
	double mean[MU_RIDGE_MOST], scale[MU_RIDGE_MOST]; /* scale > 0 */
	size_t n_ties;
	mu_ridge_tie ties[MU_RIDGE_MOST];
	double tie_fraction;
	/* results */
	double theta[MU_RIDGE_MOST];
	double *weight; /* [n_rows], the caller's: 1 for a row that fits, less for an outlier */
	double loss; /* sum of huber terms */
} mu_ridge;

void mu_ridge_solve(mu_ridge *ridge);

#endif
