/* Moving average of weights in one pass: 8 bytes read and 4 written per parameter. SPDX-License-Identifier: MIT */
#include "kernels/cpu/real.h"

#define BLOCK 16384

struct average {
	size_t n;
	float decay, rest; /* rest = 1 - decay */
	const float *master; /* or NULL: then the parameter is averaged */
	const mu_real *parameter;
	float *average;
};

/* of_master is a constant. */
MU_CPU_INLINE void average_range(struct average s, size_t first, size_t last, const bool of_master)
{
#pragma omp simd
	for (size_t i = first; i < last; i++)
		s.average[i] = s.decay * s.average[i] + s.rest * (of_master ? s.master[i] : mu_wide(s.parameter[i]));
}

MU_CPU_KERNEL(average_blocks)
{
	const struct average *s = work;
	const size_t last = end * BLOCK < s->n ? end * BLOCK : s->n;
	if (s->master)
		average_range(*s, begin * BLOCK, last, true);
	else
		average_range(*s, begin * BLOCK, last, false);
}

mural_status mu_cpu_ema(mu_ops_context *c, const mu_ema *op, mural_error *err)
{
	(void)err;
	if (op->at->skip != 0)
		return MURAL_OK;
	const struct average s = {.n = op->n,
	                          .decay = (float)op->at->ema_decay,
	                          .rest = (float)(1 - op->at->ema_decay),
	                          .master = op->master,
	                          .parameter = op->parameter,
	                          .average = op->average};
	mu_cpu_run(c, average_blocks, &s, (op->n + BLOCK - 1) / BLOCK);
	return MURAL_OK;
}
