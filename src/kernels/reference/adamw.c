/* One AdamW step over a span. SPDX-License-Identifier: MIT */
#include "kernels/reference/reference.h"

static void adamw_element(const mu_adamw *op, size_t i)
{
	const mu_dtype stat = mu_stat_type(op->type);
	const mu_decision *at = op->at;
	const double lr = at->lr * op->lr_scale;
	double p = mu_reference_load_weight(op->type, op->parameter, op->master, i);
	double g = mu_element_load(op->type, op->gradient, i) * at->gradient_scale;
	if (op->decoupled)
		p -= lr * op->decay * p;
	else
		g += op->decay * p;
	const double m = at->beta1 * mu_element_load(stat, op->m, i) + (1 - at->beta1) * g;
	const double v = at->beta2 * mu_element_load(stat, op->v, i) + (1 - at->beta2) * g * g;
	p -= lr / at->bias1 * m / (sqrt(v) / sqrt(at->bias2) + op->eps);

	mu_element_store(stat, op->m, i, m);
	mu_element_store(stat, op->v, i, v);
	mu_reference_store_weight(op->type, op->parameter, op->master, i, p);
}

mural_status mu_reference_adamw(mu_ops_context *context, const mu_adamw *op, mural_error *err)
{
	(void)context;
	(void)err;
	if (op->at->skip != 0)
		return MURAL_OK;
	for (size_t i = 0; i < op->n; i++)
		adamw_element(op, i);
	return MURAL_OK;
}
