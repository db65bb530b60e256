/* Sums of partial sums, added to what is there: the second half of every sum over rows. A block has 32 columns; its
 * eight warps each take every eighth chunk, then their sums are added in order. Also the answer to "is there code for
 * this card". SPDX-License-Identifier: MIT */
#include "kernels/cuda/cuda.cuh"

#define SHARES 8

template <typename E>
static __global__ void partials_add_kernel(E *to, const float *partial, size_t chunks, size_t stride, size_t width)
{
	__shared__ float share[SHARES][MU_WARP];
	const size_t j = static_cast<size_t>(blockIdx.x) * MU_WARP + threadIdx.x;
	float sum = 0;
	if (j < width)
#pragma unroll 4
		for (size_t chunk = threadIdx.y; chunk < chunks; chunk += SHARES)
			sum += partial[chunk * stride + j];
	share[threadIdx.y][threadIdx.x] = sum;
	__syncthreads();
	if (threadIdx.y > 0 || j >= width)
		return;
	sum = 0;
	for (int i = 0; i < SHARES; i++)
		sum += share[i][threadIdx.x];
	to[j] = mu_round<E>(mu_load(to[j]) + sum);
}

mural_status mu_cuda_add_partials(mu_ops_context *c, mu_dtype type, void *to, const float *partial, size_t chunks,
                                  size_t stride, size_t width, mural_error *err)
{
	const dim3 block(MU_WARP, SHARES);
	MU_CUDA_BY_TYPE(type, partials_add_kernel<E><<<mu_blocks(width, MU_WARP), block, 0, c->stream>>>(
	                              static_cast<E *>(to), partial, chunks, stride, width));
	return mu_cuda_launched("partial sums", err);
}

bool mu_cuda_has_code(void)
{
	cudaFuncAttributes attributes;
	return cudaFuncGetAttributes(&attributes, partials_add_kernel<float>) == cudaSuccess;
}
