/* The decision of a step (kernels/per_step.h), on one thread: a few dozen operations, once per step.
 * SPDX-License-Identifier: MIT */
#include "kernels/cuda/cuda.cuh"
#include "kernels/per_step.h"

static __global__ void settle_kernel(const mu_settle op)
{
	mu_settle_step(&op);
}

mural_status mu_cuda_settle(mu_ops_context *c, const mu_settle *op, mural_error *err)
{
	settle_kernel<<<1, 1, 0, c->stream>>>(*op);
	return mu_cuda_launched("settle", err);
}
