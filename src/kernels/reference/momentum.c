/* Momentum as a moving average, over a span. SPDX-License-Identifier: MIT */
#include "kernels/reference/reference.h"

mural_status mu_reference_momentum(mu_ops_context *context, const mu_momentum *op, mural_error *err)
{
	(void)context;
	(void)err;
	if (op->at->skip != 0)
		return MURAL_OK;
	const mu_dtype stat = mu_stat_type(op->type);
	for (size_t i = 0; i < op->n; i++) {
		const double g = mu_element_load(op->type, op->gradient, i) * op->at->gradient_scale;
		const double m = op->momentum * mu_element_load(stat, op->m, i) + (1 - op->momentum) * g;
		mu_element_store(stat, op->m, i, m);
		mu_element_store(stat, op->update, i, op->nesterov ? op->momentum * m + (1 - op->momentum) * g : m);
	}
	return MURAL_OK;
}
