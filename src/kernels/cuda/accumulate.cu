/* Gradients of a micro-batch onto those of the step, which are fp32, and zero in their place: one pass.
 * SPDX-License-Identifier: MIT */
#include "kernels/cuda/cuda.cuh"

template <typename E, int V> static __global__ void accumulate_kernel(const mu_accumulate op)
{
	const size_t packs = op.n / V, pack = mu_thread();
	if (pack < packs) {
		mu_pack<float, V> sum = mu_read<float, V>(op.sum, pack);
		const mu_pack<E, V> x = mu_read<E, V>(op.x, pack);
#pragma unroll
		for (int i = 0; i < V; i++)
			sum.e[i] += mu_load(x.e[i]);
		mu_write<float, V>(op.sum, pack, sum);
		mu_write<E, V>(op.x, pack, mu_pack<E, V>());
	} else if (pack - packs < op.n % V) {
		const size_t i = packs * V + pack - packs;
		E *x = static_cast<E *>(op.x);
		op.sum[i] += mu_load(x[i]);
		x[i] = mu_round<E>(0);
	}
}

mural_status mu_cuda_accumulate(mu_ops_context *c, const mu_accumulate *op, mural_error *err)
{
	if (op->n == 0)
		return MURAL_OK;
	if (mu_aligned(op->x, 16) && mu_aligned(op->sum, 16)) {
		MU_CUDA_BY_TYPE(
		        op->type, accumulate_kernel<E, 4>
		        <<<mu_blocks(op->n / 4 + op->n % 4, MU_CUDA_BLOCK), MU_CUDA_BLOCK, 0, c->stream>>>(*op));
	} else {
		MU_CUDA_BY_TYPE(op->type, accumulate_kernel<E, 1>
		                <<<mu_blocks(op->n, MU_CUDA_BLOCK), MU_CUDA_BLOCK, 0, c->stream>>>(*op));
	}
	return mu_cuda_launched("accumulate", err);
}
