/* LAMB's moments and direction in one pass: 16 bytes read and 12 written per parameter. eps stands inside or outside of
 * the root; the other place has 0. SPDX-License-Identifier: MIT */
#include <math.h>

#include "kernels/cpu/real.h"

#define BLOCK 16384

struct moments {
	size_t n;
	float gradient_scale, decay;
	float beta1, rest1, beta2, rest2; /* rest = 1 - beta */
	float grow1, grow2; /* 1 / bias */
	float inside, outside;
	const mu_real *gradient, *parameter;
	const float *master; /* or NULL: then the parameter decays */
	float *m, *v, *update;
};

/* of_master is a constant. */
MU_CPU_INLINE void moment_range(struct moments s, size_t first, size_t last, const bool of_master)
{
#pragma omp simd
	for (size_t i = first; i < last; i++) {
		const float g = mu_wide(s.gradient[i]) * s.gradient_scale;
		const float m = s.beta1 * s.m[i] + s.rest1 * g;
		const float v = s.beta2 * s.v[i] + s.rest2 * g * g;
		s.m[i] = m;
		s.v[i] = v;
		const float p = of_master ? s.master[i] : mu_wide(s.parameter[i]);
		s.update[i] = s.grow1 * m / (sqrtf(v * s.grow2 + s.inside) + s.outside) + s.decay * p;
	}
}

MU_CPU_KERNEL(moment_blocks)
{
	const struct moments *s = work;
	const size_t last = end * BLOCK < s->n ? end * BLOCK : s->n;
	if (s->master)
		moment_range(*s, begin * BLOCK, last, true);
	else
		moment_range(*s, begin * BLOCK, last, false);
}

mural_status mu_cpu_lamb(mu_ops_context *c, const mu_lamb *op, mural_error *err)
{
	(void)err;
	if (op->at->skip != 0)
		return MURAL_OK;
	const mu_decision *at = op->at;
	const struct moments s = {.n = op->n,
	                          .gradient_scale = (float)at->gradient_scale,
	                          .decay = (float)op->decay,
	                          .beta1 = (float)at->beta1,
	                          .rest1 = (float)(1 - at->beta1),
	                          .beta2 = (float)at->beta2,
	                          .rest2 = (float)(1 - at->beta2),
	                          .grow1 = (float)(1 / at->bias1),
	                          .grow2 = (float)(1 / at->bias2),
	                          .inside = op->eps_inside ? (float)op->eps : 0,
	                          .outside = op->eps_inside ? 0 : (float)op->eps,
	                          .gradient = op->gradient,
	                          .parameter = op->parameter,
	                          .master = op->master,
	                          .m = op->m,
	                          .v = op->v,
	                          .update = op->update};
	mu_cpu_run(c, moment_blocks, &s, (op->n + BLOCK - 1) / BLOCK);
	return MURAL_OK;
}
