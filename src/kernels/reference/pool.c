/* One vector per image: the mean of tokens [first, last). SPDX-License-Identifier: MIT */
#include "kernels/reference/element.h"
#include "kernels/reference/reference.h"

mural_status mu_reference_pool_forward(mu_ops_context *context, const mu_pool *op, mural_error *err)
{
	(void)context;
	(void)err;
	const size_t D = op->width;
	for (size_t b = 0; b < op->images; b++)
		for (size_t d = 0; d < D; d++) {
			double sum = 0;
			for (size_t token = op->first; token < op->last; token++)
				sum += mu_element_load(op->type, op->x, (b * op->tokens + token) * D + d);
			mu_element_store(op->type, op->y, b * D + d, sum / (double)(op->last - op->first));
		}
	return MURAL_OK;
}

mural_status mu_reference_pool_backward(mu_ops_context *context, const mu_pool *op, mural_error *err)
{
	(void)context;
	(void)err;
	const size_t D = op->width;
	for (size_t b = 0; b < op->images; b++)
		for (size_t token = 0; token < op->tokens; token++)
			for (size_t d = 0; d < D; d++) {
				const bool inside = token >= op->first && token < op->last;
				const double d_y = mu_element_load(op->type, op->d_y, b * D + d);
				mu_element_store(op->type, op->d_x, (b * op->tokens + token) * D + d,
				                 inside ? d_y / (double)(op->last - op->first) : 0);
			}
	return MURAL_OK;
}
