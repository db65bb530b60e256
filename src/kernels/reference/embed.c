/* Class token, patches, positions, dropout. SPDX-License-Identifier: MIT */
#include "kernels/reference/element.h"
#include "kernels/reference/reference.h"

mural_status mu_reference_embed_forward(mu_ops_context *context, const mu_embed *op, mural_error *err)
{
	(void)context;
	(void)err;
	const size_t prefix = op->class_token ? 1 : 0, N = prefix + op->patches, D = op->width;
	for (size_t b = 0; b < op->images; b++)
		for (size_t token = 0; token < N; token++)
			for (size_t d = 0; d < D; d++) {
				double x = mu_element_load(op->type, op->position, token * D + d);
				if (token < prefix)
					x += mu_element_load(op->type, op->class_token, d);
				else
					x += mu_element_load(op->type, op->patch,
					                     (b * op->patches + token - prefix) * D + d);
				x *= mu_reference_keep(&op->dropout, b, token * D + d);
				mu_element_store(op->type, op->x, (b * N + token) * D + d, x);
			}
	return MURAL_OK;
}

mural_status mu_reference_embed_backward(mu_ops_context *context, const mu_embed *op, mural_error *err)
{
	(void)context;
	(void)err;
	const size_t prefix = op->d_class_token ? 1 : 0, N = prefix + op->patches, D = op->width;
	for (size_t token = 0; token < N; token++)
		for (size_t d = 0; d < D; d++) {
			double sum = 0;
			for (size_t b = 0; b < op->images; b++) {
				const double d_x = mu_element_load(op->type, op->d_x, (b * N + token) * D + d) *
				                   mu_reference_keep(&op->dropout, b, token * D + d);
				sum += d_x;
				if (token >= prefix)
					mu_element_store(op->type, op->d_patch,
					                 (b * op->patches + token - prefix) * D + d, d_x);
			}
			mu_element_add(op->type, op->d_position, token * D + d, sum);
			if (token < prefix)
				mu_element_add(op->type, op->d_class_token, d, sum);
		}
	return MURAL_OK;
}
