/* Dropout in place: masks are made a block at a time in a buffer on the stack, counters side by side in vector lanes,
 * and used at once. About 30 integer operations per element against 8 bytes of traffic: bound by the
 * integer multipliers, not by memory. Parts are (image, block of elements). SPDX-License-Identifier: MIT */
#include "kernels/cpu/real.h"

/* Elements of one part. */
#define BLOCK 1024

struct drop {
	const mu_dropout_rule *rule;
	size_t elements, blocks; /* of one image */
	mu_real *x;
};

MU_CPU_KERNEL(drop_blocks)
{
	const struct drop *d = work;
	float space[MU_SIMD_KEEP_SPACE(BLOCK)];
	for (size_t part = begin; part < end; part++) {
		const size_t image = part / d->blocks, first = part % d->blocks * BLOCK;
		const size_t rest = d->elements - first, n = rest < BLOCK ? rest : BLOCK;
		mu_real *x = d->x + image * d->elements + first;
		const float *keep = mu_simd_keep(d->rule, d->rule->stream_B[image], first, n, space);
#pragma omp simd
		for (size_t i = 0; i < n; i++)
			x[i] = mu_narrow(keep[i] != 0 ? mu_wide(x[i]) * keep[i] : 0);
	}
}

mural_status mu_cpu_dropout(mu_ops_context *c, const mu_dropout *op, mural_error *err)
{
	(void)err;
	if (op->rule.threshold == 0)
		return MURAL_OK;
	const size_t blocks = (op->elements_per_image + BLOCK - 1) / BLOCK;
	const struct drop d = {&op->rule, op->elements_per_image, blocks, op->x};
	mu_cpu_run(c, drop_blocks, &d, op->images * blocks);
	return MURAL_OK;
}
