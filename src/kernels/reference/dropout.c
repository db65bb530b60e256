/* Dropout in place. SPDX-License-Identifier: MIT */
#include "kernels/reference/element.h"
#include "kernels/reference/reference.h"

mural_status mu_reference_dropout(mu_ops_context *context, const mu_dropout *op, mural_error *err)
{
	(void)context;
	(void)err;
	for (size_t b = 0; b < op->images; b++)
		for (size_t element = 0; element < op->elements_per_image; element++) {
			const size_t i = b * op->elements_per_image + element;
			const double keep = mu_reference_keep(&op->rule, b, element);
			mu_element_store(op->type, op->x, i,
			                 keep != 0 ? mu_element_load(op->type, op->x, i) * keep : 0);
		}
	return MURAL_OK;
}
