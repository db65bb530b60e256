/* Class token, patches, positions, dropout. One thread per pack of one token.
 *
 * Backward: one thread per pack of one position walks through the images, so the sum over images needs no second pass and
 * has a fixed order. SPDX-License-Identifier: MIT */
#include "kernels/cuda/cuda.cuh"

template <typename E, int V> static __global__ void embed_forward_kernel(const mu_embed op, size_t packs)
{
	const size_t pack = mu_thread();
	if (pack >= packs)
		return;
	const size_t prefix = op.class_token ? 1 : 0, N = prefix + op.patches, W = op.width / V;
	const size_t d = pack % W, token = pack / W % N, b = pack / W / N;
	const mu_pack<E, V> position = mu_read<E, V>(op.position, token * W + d);
	const mu_pack<E, V> in = token < prefix ? mu_read<E, V>(op.class_token, d)
	                                        : mu_read<E, V>(op.patch, (b * op.patches + token - prefix) * W + d);
	mu_pack<E, V> out;
#pragma unroll
	for (int i = 0; i < V; i++) {
		float x = mu_load(position.e[i]) + mu_load(in.e[i]);
		if (op.dropout.threshold)
			x = mu_keeps(op.dropout, b, token * op.width + d * V + i) ? x * op.dropout.scale : 0;
		out.e[i] = mu_round<E>(x);
	}
	mu_write<E, V>(op.x, pack, out);
}

template <typename E, int V> static __device__ void add_to(void *to, size_t pack, const float *sum)
{
	mu_pack<E, V> x = mu_read<E, V>(to, pack);
#pragma unroll
	for (int i = 0; i < V; i++)
		x.e[i] = mu_round<E>(mu_load(x.e[i]) + sum[i]);
	mu_write<E, V>(to, pack, x);
}

template <typename E, int V> static __global__ void embed_backward_kernel(const mu_embed op, size_t packs)
{
	const size_t pack = mu_thread();
	if (pack >= packs)
		return;
	const size_t prefix = op.d_class_token ? 1 : 0, W = op.width / V, d = pack % W, token = pack / W;
	float sum[V] = {0};
#pragma unroll 4
	for (size_t b = 0; b < op.images; b++) {
		mu_pack<E, V> x = mu_read<E, V>(op.d_x, b * packs + pack);
#pragma unroll
		for (int i = 0; i < V; i++) {
			float d_x = mu_load(x.e[i]);
			if (op.dropout.threshold)
				d_x = mu_keeps(op.dropout, b, token * op.width + d * V + i) ? d_x * op.dropout.scale
				                                                            : 0;
			sum[i] += d_x;
			x.e[i] = mu_round<E>(d_x);
		}
		if (token >= prefix)
			mu_write<E, V>(op.d_patch, (b * op.patches + token - prefix) * W + d, x);
	}
	add_to<E, V>(op.d_position, pack, sum);
	if (token < prefix)
		add_to<E, V>(op.d_class_token, d, sum);
}

size_t mu_cuda_embed_workspace(mu_ops_context *c, const mu_embed *op)
{
	(void)c;
	(void)op;
	return 0;
}

mural_status mu_cuda_embed_forward(mu_ops_context *c, const mu_embed *op, mural_error *err)
{
	const size_t n = op->images * ((op->class_token ? 1 : 0) + op->patches) * op->width;
	if (n == 0)
		return MURAL_OK;
	MU_CUDA_BY_TYPE(op->type, MU_CUDA_BY_PACK(op->width, {
		                embed_forward_kernel<E, V>
		                        <<<mu_blocks(n / V, MU_CUDA_BLOCK), MU_CUDA_BLOCK, 0, c->stream>>>(*op, n / V);
	                }));
	return mu_cuda_launched("embed", err);
}

mural_status mu_cuda_embed_backward(mu_ops_context *c, const mu_embed *op, mural_error *err)
{
	const size_t n = ((op->d_class_token ? 1 : 0) + op->patches) * op->width;
	const unsigned block = 64; /* few threads in all: spread them */
	if (n == 0)
		return MURAL_OK;
	MU_CUDA_BY_TYPE(op->type, MU_CUDA_BY_PACK(op->width, {
		                embed_backward_kernel<E, V>
		                        <<<mu_blocks(n / V, block), block, 0, c->stream>>>(*op, n / V);
	                }));
	return mu_cuda_launched("embed backward", err);
}
