/* Sum of squares of a span. SPDX-License-Identifier: MIT */
#include "kernels/reference/element.h"
#include "kernels/reference/reference.h"

mural_status mu_reference_sum_squares(mu_ops_context *context, const mu_sum_squares *op, mural_error *err)
{
	(void)context;
	(void)err;
	double sum = 0;
	for (size_t i = 0; i < op->n; i++) {
		const double x = mu_element_load(op->type, op->x, i);
		sum += x * x;
	}
	*op->sum += sum;
	return MURAL_OK;
}
