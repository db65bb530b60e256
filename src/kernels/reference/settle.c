/* The decision of a step, for both host tables. SPDX-License-Identifier: MIT */
#include "kernels/per_step.h"

#include "kernels/reference/reference.h"

mural_status mu_reference_settle(mu_ops_context *context, const mu_settle *op, mural_error *err)
{
	(void)context;
	(void)err;
	mu_settle_step(op);
	return MURAL_OK;
}
