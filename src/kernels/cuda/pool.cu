/* One vector per image: the mean of tokens [first, last). One thread per pack. SPDX-License-Identifier: MIT */
#include "kernels/cuda/cuda.cuh"

template <typename E, int V> static __global__ void pool_forward_kernel(const mu_pool op, size_t packs)
{
	const size_t pack = mu_thread(), W = op.width / V;
	if (pack >= packs)
		return;
	const size_t d = pack % W, b = pack / W;
	float sum[V] = {0};
	for (size_t token = op.first; token < op.last; token++) {
		const mu_pack<E, V> x = mu_read<E, V>(op.x, (b * op.tokens + token) * W + d);
#pragma unroll
		for (int i = 0; i < V; i++)
			sum[i] += mu_load(x.e[i]);
	}
	mu_pack<E, V> y;
#pragma unroll
	for (int i = 0; i < V; i++)
		y.e[i] = mu_round<E>(sum[i] / static_cast<float>(op.last - op.first));
	mu_write<E, V>(op.y, pack, y);
}

template <typename E, int V> static __global__ void pool_backward_kernel(const mu_pool op, size_t packs)
{
	const size_t pack = mu_thread(), W = op.width / V;
	if (pack >= packs)
		return;
	const size_t d = pack % W, token = pack / W % op.tokens, b = pack / W / op.tokens;
	const bool inside = token >= op.first && token < op.last;
	mu_pack<E, V> x;
	if (inside)
		x = mu_read<E, V>(op.d_y, b * W + d);
#pragma unroll
	for (int i = 0; i < V; i++)
		x.e[i] = mu_round<E>(inside ? mu_load(x.e[i]) / static_cast<float>(op.last - op.first) : 0.0f);
	mu_write<E, V>(op.d_x, pack, x);
}

mural_status mu_cuda_pool_forward(mu_ops_context *c, const mu_pool *op, mural_error *err)
{
	const size_t n = op->images * op->width;
	const unsigned block = 64;
	if (n == 0)
		return MURAL_OK;
	MU_CUDA_BY_TYPE(op->type, MU_CUDA_BY_PACK(op->width, {
		                pool_forward_kernel<E, V><<<mu_blocks(n / V, block), block, 0, c->stream>>>(*op, n / V);
	                }));
	return mu_cuda_launched("pool", err);
}

mural_status mu_cuda_pool_backward(mu_ops_context *c, const mu_pool *op, mural_error *err)
{
	const size_t n = op->images * op->tokens * op->width;
	if (n == 0)
		return MURAL_OK;
	MU_CUDA_BY_TYPE(op->type, MU_CUDA_BY_PACK(op->width, {
		                pool_backward_kernel<E, V>
		                        <<<mu_blocks(n / V, MU_CUDA_BLOCK), MU_CUDA_BLOCK, 0, c->stream>>>(*op, n / V);
	                }));
	return mu_cuda_launched("pool backward", err);
}
