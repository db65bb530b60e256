/* Sum of squares of each of several tensors. SPDX-License-Identifier: MIT */
#include "kernels/reference/reference.h"

mural_status mu_reference_tensor_norms(mu_ops_context *context, const mu_tensor_norms *op, mural_error *err)
{
	(void)context;
	(void)err;
	for (size_t t = 0; t < op->n_tensors; t++) {
		double sum = 0;
		for (size_t i = 0; i < op->extents[t].elements; i++) {
			const double x = mu_element_load(op->type, op->x, op->extents[t].offset + i);
			sum += x * x;
		}
		op->squares[t] = sum;
	}
	return MURAL_OK;
}
