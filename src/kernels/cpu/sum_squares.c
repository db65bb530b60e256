/* Sum of squares: blocks are summed in double, eight lanes wide, and the blocks' sums added in their order, so the
 * result does not depend on threads. 4 bytes per element, bound by memory bandwidth. SPDX-License-Identifier: MIT */
#include "kernels/cpu/real.h"

#define BLOCK 16384
#define LANES 32 /* sums side by side: four vectors of eight hide the latency of the additions */

struct squares {
	size_t n;
	const mu_real *x;
	double *sum; /* [blocks] */
};

static size_t blocks_of(const mu_sum_squares *op)
{
	return (op->n + BLOCK - 1) / BLOCK;
}

MU_CPU_KERNEL(square_blocks)
{
	const struct squares *s = work;
	for (size_t block = begin; block < end; block++) {
		const size_t first = block * BLOCK, last = first + BLOCK < s->n ? first + BLOCK : s->n;
		double lane[LANES] = {0};
		size_t i = first;
		for (; i + LANES <= last; i += LANES)
			for (size_t j = 0; j < LANES; j++)
				lane[j] += (double)mu_wide(s->x[i + j]) * (double)mu_wide(s->x[i + j]);
		for (; i < last; i++)
			lane[0] += (double)mu_wide(s->x[i]) * (double)mu_wide(s->x[i]);
		double sum = 0;
		for (size_t j = 0; j < LANES; j++)
			sum += lane[j];
		s->sum[block] = sum;
	}
}

size_t mu_cpu_sum_squares_workspace(mu_ops_context *c, const mu_sum_squares *op)
{
	(void)c;
	return blocks_of(op) * sizeof(double);
}

mural_status mu_cpu_sum_squares(mu_ops_context *c, const mu_sum_squares *op, mural_error *err)
{
	(void)err;
	const struct squares s = {op->n, op->x, op->scratch};
	const size_t blocks = blocks_of(op);
	mu_cpu_run(c, square_blocks, &s, blocks);
	double sum = 0;
	for (size_t block = 0; block < blocks; block++)
		sum += s.sum[block];
	*op->sum += sum;
	return MURAL_OK;
}
