/* Moving average of weights in one pass: 8 bytes read and 4 written per parameter. SPDX-License-Identifier: MIT */
#include "kernels/cpu/cpu.h"

#define BLOCK 16384

struct average {
	size_t n;
	float decay, rest; /* rest = 1 - decay */
	const float *p;
	float *average;
};

MU_CPU_KERNEL(average_blocks)
{
	const struct average s = *(const struct average *)work;
	const size_t last = end * BLOCK < s.n ? end * BLOCK : s.n;
#pragma omp simd
	for (size_t i = begin * BLOCK; i < last; i++)
		s.average[i] = s.decay * s.average[i] + s.rest * s.p[i];
}

mural_status mu_cpu_ema(mu_ops_context *c, const mu_ema *op, mural_error *err)
{
	(void)err;
	const struct average s = {.n = op->n,
	                          .decay = (float)op->decay,
	                          .rest = (float)(1 - op->decay),
	                          .p = op->master ? op->master : op->parameter,
	                          .average = op->average};
	mu_cpu_run(c, average_blocks, &s, (op->n + BLOCK - 1) / BLOCK);
	return MURAL_OK;
}
