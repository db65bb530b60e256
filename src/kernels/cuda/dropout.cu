/* Dropout in place. Four neighbouring elements share one Philox block when the image's first element is a multiple of
 * four, which the pack of eight sees to; else each element draws its own. SPDX-License-Identifier: MIT */
#include "kernels/cuda/cuda.cuh"

template <typename E, int V> static __global__ void dropout_kernel(const mu_dropout op, size_t packs)
{
	const size_t pack = mu_thread();
	if (pack >= packs)
		return;
	const size_t per_image = op.elements_per_image / V, b = pack / per_image, first = pack % per_image * V;
	mu_pack<E, V> x = mu_read<E, V>(op.x, pack);
#pragma unroll
	for (int i = 0; i < V; i++) {
		const bool keep = mu_keeps(op.rule, b, first + i);
		x.e[i] = mu_round<E>(keep ? mu_load(x.e[i]) * op.rule.scale : 0.0f);
	}
	mu_write<E, V>(op.x, pack, x);
}

mural_status mu_cuda_dropout(mu_ops_context *c, const mu_dropout *op, mural_error *err)
{
	const size_t n = op->images * op->elements_per_image;
	if (n == 0 || op->rule.threshold == 0)
		return MURAL_OK;
	MU_CUDA_BY_TYPE(op->type, MU_CUDA_BY_PACK(op->elements_per_image, {
		                dropout_kernel<E, V>
		                        <<<mu_blocks(n / V, MU_CUDA_BLOCK), MU_CUDA_BLOCK, 0, c->stream>>>(*op, n / V);
	                }));
	return mu_cuda_launched("dropout", err);
}
