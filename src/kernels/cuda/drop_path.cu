/* One factor per image: does its branch count in this step? SPDX-License-Identifier: MIT */
#include "kernels/cuda/cuda.cuh"

static __global__ void drop_path_kernel(const mu_drop_path op)
{
	const size_t b = mu_thread();
	if (b < op.images)
		static_cast<float *>(op.keep_B)[b] = !op.rule.threshold        ? 1.0f
		                                     : mu_keeps(op.rule, b, 0) ? op.rule.scale
		                                                               : 0.0f;
}

mural_status mu_cuda_drop_path(mu_ops_context *c, const mu_drop_path *op, mural_error *err)
{
	if (op->images == 0)
		return MURAL_OK;
	drop_path_kernel<<<mu_blocks(op->images, MU_CUDA_BLOCK), MU_CUDA_BLOCK, 0, c->stream>>>(*op);
	return mu_cuda_launched("drop path", err);
}
