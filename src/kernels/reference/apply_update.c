/* A step along a direction, with a trust ratio. SPDX-License-Identifier: MIT */
#include "kernels/reference/reference.h"

static double ratio_of(const mu_apply_update *op)
{
	if (!op->weight_square || *op->weight_square == 0 || *op->update_square == 0)
		return 1;
	const double ratio = sqrt(*op->weight_square) / sqrt(*op->update_square);
	return ratio > op->max_ratio ? op->max_ratio : ratio < op->min_ratio ? op->min_ratio : ratio;
}

mural_status mu_reference_apply_update(mu_ops_context *context, const mu_apply_update *op, mural_error *err)
{
	(void)context;
	(void)err;
	if (op->at->skip != 0)
		return MURAL_OK;
	const double ratio = ratio_of(op), lr = op->at->lr * op->lr_scale;
	for (size_t i = 0; i < op->n; i++) {
		double p = mu_reference_load_weight(op->type, op->parameter, op->master, i);
		p -= lr * op->decay * p;
		p -= lr * ratio * op->scale * mu_element_load(mu_stat_type(op->type), op->update, i);
		mu_reference_store_weight(op->type, op->parameter, op->master, i, p);
	}
	return MURAL_OK;
}
