/* One vector per image: the mean of tokens [first, last). A part is an image; sums run in double on a block of columns
 * that stays in registers. Bound by reading x once. SPDX-License-Identifier: MIT */
#include <string.h>

#include "kernels/cpu/real.h"

#define COLUMNS 64
#define ALONE \
	16384 /* numbers that the caller reads by itself: 3 us, which a team takes to come together (partials.c) */

struct pool {
	size_t tokens, width, first, last;
	const mu_real *x, *d_y;
	mu_real *y, *d_x;
};

static struct pool view(const mu_pool *op)
{
	return (struct pool){op->tokens, op->width, op->first, op->last, op->x, op->d_y, op->y, op->d_x};
}

MU_CPU_KERNEL(mean_images)
{
	const struct pool *p = work;
	const size_t D = p->width;
	const double share = 1 / (double)(p->last - p->first);
	for (size_t b = begin; b < end; b++)
		for (size_t column = 0; column < D; column += COLUMNS) {
			const size_t n = D - column < COLUMNS ? D - column : COLUMNS;
			double sum[COLUMNS] = {0};
			for (size_t token = p->first; token < p->last; token++) {
				const mu_real *x = p->x + (b * p->tokens + token) * D + column;
#pragma omp simd
				for (size_t i = 0; i < n; i++)
					sum[i] += mu_wide(x[i]);
			}
#pragma omp simd
			for (size_t i = 0; i < n; i++)
				p->y[b * D + column + i] = mu_narrow((float)(sum[i] * share));
		}
}

MU_CPU_KERNEL(spread_images)
{
	const struct pool *p = work;
	const size_t D = p->width;
	const float share = (float)(1 / (double)(p->last - p->first));
	for (size_t b = begin; b < end; b++) {
		const mu_real *d_y = p->d_y + b * D;
		memset(p->d_x + b * p->tokens * D, 0, p->tokens * D * sizeof(mu_real));
		for (size_t token = p->first; token < p->last; token++) {
			mu_real *d_x = p->d_x + (b * p->tokens + token) * D;
#pragma omp simd
			for (size_t i = 0; i < D; i++)
				d_x[i] = mu_narrow(mu_wide(d_y[i]) * share);
		}
	}
}

mural_status mu_cpu_pool_forward(mu_ops_context *c, const mu_pool *op, mural_error *err)
{
	(void)err;
	const struct pool p = view(op);
	if (op->images * (op->last - op->first) * op->width <= ALONE)
		mean_images(&p, 0, op->images, 0);
	else
		mu_cpu_run(c, mean_images, &p, op->images);
	return MURAL_OK;
}

mural_status mu_cpu_pool_backward(mu_ops_context *c, const mu_pool *op, mural_error *err)
{
	(void)err;
	const struct pool p = view(op);
	mu_cpu_run(c, spread_images, &p, op->images);
	return MURAL_OK;
}
