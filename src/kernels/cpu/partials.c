/* Adding the partial sums of chunks, a block of columns at a time, whose doubles stay in registers. Few numbers are added by
 * the caller alone: a step of a small model comes here dozens of times, and where another program has a core the team is late
 * by far more than the sums take.
 * SPDX-License-Identifier: MIT */
#include "kernels/cpu/real.h"

#define COLUMNS 64
#define ALONE 16384 /* numbers: 3 us on one core, about what it takes a team to come together and part again */

struct partials {
	mu_real *to;
	const float *partial;
	size_t chunks, width;
};

MU_CPU_KERNEL(add_columns)
{
	const struct partials *p = work;
	for (size_t part = begin; part < end; part++) {
		const size_t first = part * COLUMNS;
		const size_t columns = p->width - first < COLUMNS ? p->width - first : COLUMNS;
		double sum[COLUMNS] = {0};
		for (size_t chunk = 0; chunk < p->chunks; chunk++) {
			const float *row = p->partial + chunk * p->width + first;
#pragma omp simd
			for (size_t j = 0; j < columns; j++)
				sum[j] += row[j];
		}
#pragma omp simd
		for (size_t j = 0; j < columns; j++)
			mu_real_add(&p->to[first + j], (float)sum[j]);
	}
}

void mu_cpu_add_partials(const mu_ops_context *c, void *to, const float *partial, size_t chunks, size_t width)
{
	const struct partials p = {to, partial, chunks, width};
	const size_t parts = (width + COLUMNS - 1) / COLUMNS;
	if (chunks * width <= ALONE)
		add_columns(&p, 0, parts, 0);
	else
		mu_cpu_run(c, add_columns, &p, parts);
}
