/* Gradients of micro-batches, added up in fp32: 6 bytes read and 6 written per element in a narrow type.
 * SPDX-License-Identifier: MIT */
#include "kernels/cpu/real.h"

#define BLOCK 16384

struct adding {
	size_t n;
	mu_real *x;
	float *sum;
};

MU_CPU_KERNEL(add_blocks)
{
	const struct adding s = *(const struct adding *)work;
	const size_t last = end * BLOCK < s.n ? end * BLOCK : s.n;
#pragma omp simd
	for (size_t i = begin * BLOCK; i < last; i++) {
		s.sum[i] += mu_wide(s.x[i]);
		s.x[i] = mu_narrow(0);
	}
}

mural_status mu_cpu_accumulate(mu_ops_context *c, const mu_accumulate *op, mural_error *err)
{
	(void)err;
	const struct adding s = {op->n, op->x, op->sum};
	mu_cpu_run(c, add_blocks, &s, (op->n + BLOCK - 1) / BLOCK);
	return MURAL_OK;
}
