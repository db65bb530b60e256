/* One factor per image: too few to share out. SPDX-License-Identifier: MIT */
#include "kernels/cpu/cpu.h"

mural_status mu_cpu_drop_path(mu_ops_context *c, const mu_drop_path *op, mural_error *err)
{
	(void)c;
	(void)err;
	const mu_dropout_rule *rule = &op->rule;
	float *keep_B = op->keep_B;
	for (size_t b = 0; b < op->images; b++)
		keep_B[b] = rule->threshold == 0                                                ? 1
		            : mu_random_u32(rule->key, rule->stream_B[b], 0) >= rule->threshold ? rule->scale
		                                                                                : 0;
	return MURAL_OK;
}
