/* Stochastic gradient descent in one pass: 8 to 12 bytes read and 4 to 8 written per parameter, bound by memory
 * bandwidth. Momentum and Nesterov are one kernel: the step is `own` gradients and `along` momenta.
 * SPDX-License-Identifier: MIT */
#include "kernels/cpu/real.h"

#define BLOCK 16384

struct step {
	size_t n;
	float gradient_scale, decay, rate;
	float momentum, rest, own, along; /* rest: share of the gradient that enters m */
	const mu_real *gradient;
	mu_real *parameter; /* follows p */
	float *p, *m;
};

MU_CPU_KERNEL(plain_blocks)
{
	const struct step s = *(const struct step *)work;
	const size_t last = end * BLOCK < s.n ? end * BLOCK : s.n;
#pragma omp simd
	for (size_t i = begin * BLOCK; i < last; i++) {
		s.p[i] -= s.rate * (mu_wide(s.gradient[i]) * s.gradient_scale + s.decay * s.p[i]);
		mu_real_follow(&s.parameter[i], s.p[i]);
	}
}

MU_CPU_KERNEL(momentum_blocks)
{
	const struct step s = *(const struct step *)work;
	const size_t last = end * BLOCK < s.n ? end * BLOCK : s.n;
#pragma omp simd
	for (size_t i = begin * BLOCK; i < last; i++) {
		const float g = mu_wide(s.gradient[i]) * s.gradient_scale + s.decay * s.p[i];
		const float m = s.momentum * s.m[i] + s.rest * g;
		s.m[i] = m;
		s.p[i] -= s.rate * (s.own * g + s.along * m);
		mu_real_follow(&s.parameter[i], s.p[i]);
	}
}

mural_status mu_cpu_sgd(mu_ops_context *c, const mu_sgd *op, mural_error *err)
{
	(void)err;
	if (op->at->skip != 0)
		return MURAL_OK;
	const struct step s = {.n = op->n,
	                       .gradient_scale = (float)op->at->gradient_scale,
	                       .decay = (float)op->decay,
	                       .rate = (float)(op->at->lr * op->lr_scale),
	                       .momentum = (float)op->momentum,
	                       .rest = op->at->number == 1 ? 1 : (float)(1 - op->dampening),
	                       .own = op->nesterov ? 1 : 0,
	                       .along = op->nesterov ? (float)op->momentum : 1,
	                       .gradient = op->gradient,
	                       .parameter = op->parameter,
	                       .p = op->master ? op->master : op->parameter,
	                       .m = op->m};
	mu_cpu_run(c, op->momentum == 0 ? plain_blocks : momentum_blocks, &s, (op->n + BLOCK - 1) / BLOCK);
	return MURAL_OK;
}
