/* Sums of partial sums, added to what is there: the second half of every sum over rows. A block has 32 columns; its
 * warps each take every 32nd chunk, then their sums are added in order. Also the answer to "is there code for this
 * card". SPDX-License-Identifier: MIT */
#include "kernels/cuda/cuda.cuh"

#define SHARES 32

template <typename E> static __global__ void partials_add_kernel(const mu_cuda_partials op)
{
	__shared__ float share[SHARES][MU_WARP + 1];
	const size_t j = static_cast<size_t>(blockIdx.x) * MU_WARP + threadIdx.x;
	const float *partial = op.partial + blockIdx.y * op.width + j;
	E *to = static_cast<E *>(op.to[blockIdx.y]);
	float sum = 0;
	if (!to)
		return;
	if (j < op.width)
#pragma unroll 4
		for (size_t chunk = threadIdx.y; chunk < op.chunks; chunk += SHARES)
			sum += partial[chunk * op.stride];
	share[threadIdx.y][threadIdx.x] = sum;
	__syncthreads();
	if (threadIdx.y > 0 || j >= op.width)
		return;
	sum = 0;
	for (int i = 0; i < SHARES; i++)
		sum += share[i][threadIdx.x];
	to[j] = mu_round<E>(mu_load(to[j]) + sum);
}

mural_status mu_cuda_add_partials(mu_ops_context *c, const mu_cuda_partials *sums, mural_error *err)
{
	const dim3 block(MU_WARP, SHARES), grid(mu_blocks(sums->width, MU_WARP), 3);
	MU_CUDA_BY_TYPE(sums->type, partials_add_kernel<E><<<grid, block, 0, c->stream>>>(*sums));
	return mu_cuda_launched("partial sums", err);
}

bool mu_cuda_has_code(void)
{
	cudaFuncAttributes attributes;
	return cudaFuncGetAttributes(&attributes, partials_add_kernel<float>) == cudaSuccess;
}
