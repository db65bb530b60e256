/* Moving average of weights. SPDX-License-Identifier: MIT */
#include "kernels/reference/reference.h"

mural_status mu_reference_ema(mu_ops_context *context, const mu_ema *op, mural_error *err)
{
	(void)context;
	(void)err;
	const mu_dtype stat = mu_stat_type(op->type);
	for (size_t i = 0; i < op->n; i++) {
		const double p = mu_reference_load_weight(op->type, op->parameter, op->master, i);
		const double average = mu_element_load(stat, op->average, i);
		mu_element_store(stat, op->average, i, op->decay * average + (1 - op->decay) * p);
	}
	return MURAL_OK;
}
