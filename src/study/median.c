/* Order statistics. SPDX-License-Identifier: MIT */
#include "study/median.h"

#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

double mu_quantile(double *values, size_t n, double fraction)
{
	qsort(values, n, sizeof *values, by_value);
	double at = fraction * (double)(n - 1);
	size_t low = (size_t)at, high = low + 1 < n ? low + 1 : low;
	return values[low] + (at - (double)low) * (values[high] - values[low]);
}
