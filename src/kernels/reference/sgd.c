/* One step of stochastic gradient descent over a span. SPDX-License-Identifier: MIT */
#include "kernels/reference/reference.h"

static void sgd_element(const mu_sgd *op, size_t i)
{
	const mu_dtype stat = mu_stat_type(op->type);
	const double lr = op->at->lr * op->lr_scale;
	double p = mu_reference_load_weight(op->type, op->parameter, op->master, i);
	const double g = mu_element_load(op->type, op->gradient, i) * op->at->gradient_scale + op->decay * p;
	if (op->momentum == 0) {
		p -= lr * g;
	} else {
		const double new_part = op->at->number == 1 ? 1 : 1 - op->dampening;
		const double m = op->momentum * mu_element_load(stat, op->m, i) + new_part * g;
		mu_element_store(stat, op->m, i, m);
		p -= lr * (op->nesterov ? g + op->momentum * m : m);
	}
	mu_reference_store_weight(op->type, op->parameter, op->master, i, p);
}

mural_status mu_reference_sgd(mu_ops_context *context, const mu_sgd *op, mural_error *err)
{
	(void)context;
	(void)err;
	if (op->at->skip != 0)
		return MURAL_OK;
	for (size_t i = 0; i < op->n; i++)
		sgd_element(op, i);
	return MURAL_OK;
}
