/* One factor per image: does its branch count in this step? SPDX-License-Identifier: MIT */
#include "kernels/reference/element.h"
#include "kernels/reference/reference.h"

mural_status mu_reference_drop_path(mu_ops_context *context, const mu_drop_path *op, mural_error *err)
{
	(void)context;
	(void)err;
	for (size_t b = 0; b < op->images; b++)
		mu_element_store(mu_stat_type(op->type), op->keep_B, b, mu_reference_keep(&op->rule, b, 0));
	return MURAL_OK;
}
