/* LAMB's moments and direction over a span. SPDX-License-Identifier: MIT */
#include "kernels/reference/reference.h"

static void lamb_element(const mu_lamb *op, size_t i)
{
	const mu_dtype stat = mu_stat_type(op->type);
	const mu_decision *at = op->at;
	const double p = mu_reference_load_weight(op->type, op->parameter, op->master, i);
	const double g = mu_element_load(op->type, op->gradient, i) * at->gradient_scale;
	const double m = at->beta1 * mu_element_load(stat, op->m, i) + (1 - at->beta1) * g;
	const double v = at->beta2 * mu_element_load(stat, op->v, i) + (1 - at->beta2) * g * g;
	const double root = op->eps_inside ? sqrt(v / at->bias2 + op->eps) : sqrt(v / at->bias2) + op->eps;
	mu_element_store(stat, op->m, i, m);
	mu_element_store(stat, op->v, i, v);
	mu_element_store(stat, op->update, i, m / at->bias1 / root + op->decay * p);
}

mural_status mu_reference_lamb(mu_ops_context *context, const mu_lamb *op, mural_error *err)
{
	(void)context;
	(void)err;
	if (op->at->skip != 0)
		return MURAL_OK;
	for (size_t i = 0; i < op->n; i++)
		lamb_element(op, i);
	return MURAL_OK;
}
