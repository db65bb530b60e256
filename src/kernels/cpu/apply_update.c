/* A step along a direction, with a trust ratio: 8 bytes read and 4 written per parameter. SPDX-License-Identifier: MIT */
#include <math.h>

#include "kernels/cpu/real.h"

#define BLOCK 16384

struct step {
	size_t n;
	float shrink, rate; /* lr * decay, lr * ratio * scale */
	const float *update;
	mu_real *parameter; /* follows p */
	float *p;
};

MU_CPU_KERNEL(step_blocks)
{
	const struct step s = *(const struct step *)work;
	const size_t last = end * BLOCK < s.n ? end * BLOCK : s.n;
#pragma omp simd
	for (size_t i = begin * BLOCK; i < last; i++) {
		s.p[i] -= s.shrink * s.p[i] + s.rate * s.update[i];
		mu_real_follow(&s.parameter[i], s.p[i]);
	}
}

static double ratio_of(const mu_apply_update *op)
{
	if (!op->weight_square || *op->weight_square == 0 || *op->update_square == 0)
		return 1;
	const double ratio = sqrt(*op->weight_square / *op->update_square);
	return ratio > op->max_ratio ? op->max_ratio : ratio < op->min_ratio ? op->min_ratio : ratio;
}

mural_status mu_cpu_apply_update(mu_ops_context *c, const mu_apply_update *op, mural_error *err)
{
	(void)err;
	if (op->at->skip != 0)
		return MURAL_OK;
	const double lr = op->at->lr * op->lr_scale;
	const struct step s = {.n = op->n,
	                       .shrink = (float)(lr * op->decay),
	                       .rate = (float)(lr * ratio_of(op) * op->scale),
	                       .update = op->update,
	                       .parameter = op->parameter,
	                       .p = op->master ? op->master : op->parameter};
	mu_cpu_run(c, step_blocks, &s, (op->n + BLOCK - 1) / BLOCK);
	return MURAL_OK;
}
