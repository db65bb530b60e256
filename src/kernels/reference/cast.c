/* From one floating type to another. SPDX-License-Identifier: MIT */
#include "kernels/reference/element.h"
#include "kernels/reference/reference.h"

mural_status mu_reference_cast(mu_ops_context *context, const mu_cast *op, mural_error *err)
{
	(void)context;
	(void)err;
	for (size_t i = 0; i < op->n; i++)
		mu_element_store(op->to_type, op->to, i, mu_element_load(op->from_type, op->from, i));
	return MURAL_OK;
}
