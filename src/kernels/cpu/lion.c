/* Lion in one pass: 12 bytes read and 8 written per parameter, bound by memory bandwidth. SPDX-License-Identifier: MIT */
#include "kernels/cpu/real.h"

#define BLOCK 16384

struct step {
	size_t n;
	float gradient_scale, shrink, rate; /* shrink = lr * decay, what p loses */
	float beta1, rest1, beta2, rest2; /* rest = 1 - beta */
	const mu_real *gradient;
	mu_real *parameter; /* follows p */
	float *p, *m;
};

MU_CPU_KERNEL(step_blocks)
{
	const struct step s = *(const struct step *)work;
	const size_t last = end * BLOCK < s.n ? end * BLOCK : s.n;
#pragma omp simd
	for (size_t i = begin * BLOCK; i < last; i++) {
		const float g = mu_wide(s.gradient[i]) * s.gradient_scale;
		const float way = s.beta1 * s.m[i] + s.rest1 * g;
		const float sign = way > 0 ? 1 : way < 0 ? -1 : way;
		s.m[i] = s.beta2 * s.m[i] + s.rest2 * g;
		s.p[i] -= s.shrink * s.p[i] + s.rate * sign;
		mu_real_follow(&s.parameter[i], s.p[i]);
	}
}

mural_status mu_cpu_lion(mu_ops_context *c, const mu_lion *op, mural_error *err)
{
	(void)err;
	if (op->at->skip != 0)
		return MURAL_OK;
	const mu_decision *at = op->at;
	const double rate = at->lr * op->lr_scale;
	const struct step s = {.n = op->n,
	                       .gradient_scale = (float)at->gradient_scale,
	                       .shrink = (float)(rate * op->decay),
	                       .rate = (float)rate,
	                       .beta1 = (float)at->beta1,
	                       .rest1 = (float)(1 - at->beta1),
	                       .beta2 = (float)at->beta2,
	                       .rest2 = (float)(1 - at->beta2),
	                       .gradient = op->gradient,
	                       .parameter = op->parameter,
	                       .p = op->master ? op->master : op->parameter,
	                       .m = op->m};
	mu_cpu_run(c, step_blocks, &s, (op->n + BLOCK - 1) / BLOCK);
	return MURAL_OK;
}
