/* Sum of squares of each of several tensors: SHARES blocks each, then one warp per tensor adds them in order. The list of
 * tensors lies in host memory and travels as a kernel's parameter, MOST at a time. SPDX-License-Identifier: MIT */
#include "kernels/cuda/cuda.cuh"

#define SHARES 32
#define MOST 64 /* tensors per launch */

struct extents {
	mu_extent of[MOST];
};

static __device__ double warp_total(double x)
{
	for (int lane = MU_WARP / 2; lane > 0; lane /= 2)
		x += __shfl_xor_sync(0xffffffffu, x, lane);
	return x;
}

template <typename E> static __global__ void tensor_norms_kernel(const void *x, const extents list, double *shares)
{
	__shared__ double warps[MU_CUDA_BLOCK / MU_WARP];
	const mu_extent extent = list.of[blockIdx.y];
	const E *at = static_cast<const E *>(x) + extent.offset;
	double sum = 0;
	for (size_t i = mu_thread(); i < extent.elements; i += SHARES * MU_CUDA_BLOCK) {
		const double element = mu_load(at[i]);
		sum = fma(element, element, sum);
	}
	sum = warp_total(sum);
	if (threadIdx.x % MU_WARP == 0)
		warps[threadIdx.x / MU_WARP] = sum;
	__syncthreads();
	if (threadIdx.x > 0)
		return;
	for (int w = 1; w < MU_CUDA_BLOCK / MU_WARP; w++)
		sum += warps[w];
	shares[blockIdx.y * SHARES + blockIdx.x] = sum;
}

static __global__ void tensor_norms_add_kernel(double *squares, const double *shares)
{
	const double sum = warp_total(shares[blockIdx.x * SHARES + threadIdx.x]);
	if (threadIdx.x == 0)
		squares[blockIdx.x] = sum;
}

size_t mu_cuda_tensor_norms_workspace(mu_ops_context *c, const mu_tensor_norms *op)
{
	(void)c;
	return op->n_tensors * SHARES * sizeof(double);
}

mural_status mu_cuda_tensor_norms(mu_ops_context *c, const mu_tensor_norms *op, mural_error *err)
{
	double *shares = static_cast<double *>(op->scratch);
	if (op->n_tensors == 0)
		return MURAL_OK;
	for (size_t first = 0; first < op->n_tensors; first += MOST) {
		const size_t n = op->n_tensors - first < MOST ? op->n_tensors - first : MOST;
		const dim3 grid(SHARES, static_cast<unsigned>(n));
		extents list = {};
		for (size_t t = 0; t < n; t++)
			list.of[t] = op->extents[first + t];
		MU_CUDA_BY_TYPE(op->type, tensor_norms_kernel<E>
		                <<<grid, MU_CUDA_BLOCK, 0, c->stream>>>(op->x, list, shares + first * SHARES));
	}
	tensor_norms_add_kernel<<<static_cast<unsigned>(op->n_tensors), SHARES, 0, c->stream>>>(op->squares, shares);
	return mu_cuda_launched("tensor norms", err);
}
