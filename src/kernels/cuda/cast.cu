/* From one floating type to another. Spans may begin anywhere: packs of four where both sides are aligned for them.
 * SPDX-License-Identifier: MIT */
#include "kernels/cuda/cuda.cuh"

template <typename F, typename E, int V> static __global__ void cast_kernel(const mu_cast op)
{
	const size_t packs = op.n / V, pack = mu_thread();
	if (pack < packs) {
		const mu_pack<F, V> from = mu_read<F, V>(op.from, pack);
		mu_pack<E, V> to;
#pragma unroll
		for (int i = 0; i < V; i++)
			to.e[i] = mu_round<E>(mu_load(from.e[i]));
		mu_write<E, V>(op.to, pack, to);
	} else if (pack - packs < op.n % V) {
		const size_t i = packs * V + pack - packs;
		static_cast<E *>(op.to)[i] = mu_round<E>(mu_load(static_cast<const F *>(op.from)[i]));
	}
}

template <typename F> static void cast_from(mu_ops_context *c, const mu_cast *op)
{
	const bool aligned = mu_aligned(op->from, 16) && mu_aligned(op->to, 16);
	const size_t threads = aligned ? op->n / 4 + op->n % 4 : op->n;
	const unsigned blocks = mu_blocks(threads, MU_CUDA_BLOCK);
	if (aligned) {
		MU_CUDA_BY_TYPE(op->to_type, cast_kernel<F, E, 4><<<blocks, MU_CUDA_BLOCK, 0, c->stream>>>(*op));
	} else {
		MU_CUDA_BY_TYPE(op->to_type, cast_kernel<F, E, 1><<<blocks, MU_CUDA_BLOCK, 0, c->stream>>>(*op));
	}
}

mural_status mu_cuda_cast(mu_ops_context *c, const mu_cast *op, mural_error *err)
{
	if (op->n == 0)
		return MURAL_OK;
	MU_CUDA_BY_TYPE(op->from_type, cast_from<E>(c, op));
	return mu_cuda_launched("cast", err);
}
