/* Sum of squares of each of several tensors: sum_squares, one tensor after the other. A pass over a tensor costs what
 * reading it costs, and starting the team some microseconds; a single team over all tensors would save a thousandth.
 * SPDX-License-Identifier: MIT */
#include "kernels/cpu/cpu.h"

size_t mu_cpu_tensor_norms_workspace(mu_ops_context *c, const mu_tensor_norms *op)
{
	size_t most = 0;
	for (size_t t = 0; t < op->n_tensors; t++) {
		const mu_sum_squares call = {.type = op->type, .n = op->extents[t].elements};
		const size_t need = mu_cpu_sum_squares_workspace(c, &call);
		most = need > most ? need : most;
	}
	return most;
}

mural_status mu_cpu_tensor_norms(mu_ops_context *c, const mu_tensor_norms *op, mural_error *err)
{
	for (size_t t = 0; t < op->n_tensors; t++) {
		const mu_extent *extent = &op->extents[t];
		op->squares[t] = 0;
		const mu_sum_squares call = {.type = op->type,
		                             .n = extent->elements,
		                             .x = (const char *)op->x + extent->offset * mu_dtype_bytes(op->type),
		                             .sum = &op->squares[t],
		                             .scratch = op->scratch};
		MU_TRY(mu_cpu_sum_squares(c, &call, err));
	}
	return MURAL_OK;
}
