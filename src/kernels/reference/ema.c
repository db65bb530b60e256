/* Moving average of weights. SPDX-License-Identifier: MIT */
#include "kernels/reference/reference.h"

mural_status mu_reference_ema(mu_ops_context *context, const mu_ema *op, mural_error *err)
{
	(void)context;
	(void)err;
	if (op->at->skip != 0)
		return MURAL_OK;
	const mu_dtype stat = mu_stat_type(op->type);
	for (size_t i = 0; i < op->n; i++) {
		const double p = mu_reference_load_weight(op->type, op->parameter, op->master, i);
		const double average = mu_element_load(stat, op->average, i);
		mu_element_store(stat, op->average, i, op->at->ema_decay * average + (1 - op->at->ema_decay) * p);
	}
	return MURAL_OK;
}
