/* Order statistics. SPDX-License-Identifier: MIT */
#ifndef MU_STUDY_MEDIAN_H
#define MU_STUDY_MEDIAN_H

#include <stddef.h>

/* Sorts `values`, n >= 1, and returns what lies at `fraction` of the way, between neighbours in proportion. */
double mu_quantile(double *values, size_t n, double fraction);

static inline double mu_median(double *values, size_t n)
{
	return mu_quantile(values, n, 0.5);
}

#endif
