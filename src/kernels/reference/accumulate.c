/* Gradients of micro-batches, added up in fp32. SPDX-License-Identifier: MIT */
#include "kernels/reference/reference.h"

mural_status mu_reference_accumulate(mu_ops_context *context, const mu_accumulate *op, mural_error *err)
{
	(void)context;
	(void)err;
	for (size_t i = 0; i < op->n; i++) {
		op->sum[i] = (float)(op->sum[i] + mu_element_load(op->type, op->x, i));
		mu_element_store(op->type, op->x, i, 0);
	}
	return MURAL_OK;
}
