/* One step of Lion over a span. SPDX-License-Identifier: MIT */
#include "kernels/reference/reference.h"

/* Zeros and NaN stay what they are. */
static double sign(double x)
{
	return x > 0 ? 1 : x < 0 ? -1 : x;
}

static void lion_element(const mu_lion *op, size_t i)
{
	const mu_dtype stat = mu_stat_type(op->type);
	const mu_decision *at = op->at;
	const double lr = at->lr * op->lr_scale;
	const double g = mu_element_load(op->type, op->gradient, i) * at->gradient_scale;
	const double m = mu_element_load(stat, op->m, i);
	double p = mu_reference_load_weight(op->type, op->parameter, op->master, i);
	p -= lr * op->decay * p;
	p -= lr * sign(at->beta1 * m + (1 - at->beta1) * g);
	mu_element_store(stat, op->m, i, at->beta2 * m + (1 - at->beta2) * g);
	mu_reference_store_weight(op->type, op->parameter, op->master, i, p);
}

mural_status mu_reference_lion(mu_ops_context *context, const mu_lion *op, mural_error *err)
{
	(void)context;
	(void)err;
	if (op->at->skip != 0)
		return MURAL_OK;
	for (size_t i = 0; i < op->n; i++)
		lion_element(op, i);
	return MURAL_OK;
}
