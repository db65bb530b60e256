/* LAMB's moments and direction over a span. SPDX-License-Identifier: MIT */
#include "kernels/reference/reference.h"

static void lamb_element(const mu_lamb *op, size_t i)
{
	const mu_dtype stat = mu_stat_type(op->type);
	const double p = mu_reference_load_weight(op->type, op->parameter, op->master, i);
	const double g = mu_element_load(op->type, op->gradient, i) * op->gradient_scale;
	const double m = op->beta1 * mu_element_load(stat, op->m, i) + (1 - op->beta1) * g;
	const double v = op->beta2 * mu_element_load(stat, op->v, i) + (1 - op->beta2) * g * g;
	const double root = op->eps_inside ? sqrt(v / op->bias2 + op->eps) : sqrt(v / op->bias2) + op->eps;
	mu_element_store(stat, op->m, i, m);
	mu_element_store(stat, op->v, i, v);
	mu_element_store(stat, op->update, i, m / op->bias1 / root + op->decay * p);
}

mural_status mu_reference_lamb(mu_ops_context *context, const mu_lamb *op, mural_error *err)
{
	(void)context;
	(void)err;
	for (size_t i = 0; i < op->n; i++)
		lamb_element(op, i);
	return MURAL_OK;
}
