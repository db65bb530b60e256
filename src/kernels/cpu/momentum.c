/* Momentum as a moving average, in one pass: 8 bytes read and 8 written per parameter. SPDX-License-Identifier: MIT */
#include "kernels/cpu/real.h"

#define BLOCK 16384

struct average {
	size_t n;
	float gradient_scale, momentum, rest; /* rest = 1 - momentum */
	float own, along; /* of gradient and average in the update */
	const mu_real *gradient;
	float *m, *update;
};

MU_CPU_KERNEL(average_blocks)
{
	const struct average s = *(const struct average *)work;
	const size_t last = end * BLOCK < s.n ? end * BLOCK : s.n;
#pragma omp simd
	for (size_t i = begin * BLOCK; i < last; i++) {
		const float g = mu_wide(s.gradient[i]) * s.gradient_scale;
		const float m = s.momentum * s.m[i] + s.rest * g;
		s.m[i] = m;
		s.update[i] = s.own * g + s.along * m;
	}
}

mural_status mu_cpu_momentum(mu_ops_context *c, const mu_momentum *op, mural_error *err)
{
	(void)err;
	if (op->at->skip != 0)
		return MURAL_OK;
	const struct average s = {.n = op->n,
	                          .gradient_scale = (float)op->at->gradient_scale,
	                          .momentum = (float)op->momentum,
	                          .rest = (float)(1 - op->momentum),
	                          .own = op->nesterov ? (float)(1 - op->momentum) : 0,
	                          .along = op->nesterov ? (float)op->momentum : 1,
	                          .gradient = op->gradient,
	                          .m = op->m,
	                          .update = op->update};
	mu_cpu_run(c, average_blocks, &s, (op->n + BLOCK - 1) / BLOCK);
	return MURAL_OK;
}
