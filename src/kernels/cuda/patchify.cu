/* Bytes to normalised patches, one thread per pack of output pixels of one patch row.
 *
 * 1 byte in, 2 (bf16) or 4 out per pixel; the writes are coalesced, the byte reads of a warp lie in a few rows of one
 * plane. SPDX-License-Identifier: MIT */
#include "kernels/cuda/cuda.cuh"

/* Fields as in mu_patchify; means and deviations as a factor and an offset would round differently at 0. */
template <typename E, int V> static __global__ void patchify_kernel(const mu_patchify op, size_t packs)
{
	const size_t P = op.patch, rows = op.height / P, columns = op.width / P;
	size_t rest = mu_thread();
	const size_t pack = rest;
	if (pack >= packs)
		return;
	const size_t x0 = rest % (P / V) * V;
	rest /= P / V;
	const size_t y = rest % P;
	rest /= P;
	const size_t channel = rest % op.channels;
	rest /= op.channels;
	const size_t px = rest % columns;
	rest /= columns;
	const size_t py = rest % rows, b = rest / rows;

	mu_image_cut cut = {0, 0, 0, {0, 0, 0}};
	if (op.cut_B)
		cut = op.cut_B[b];
	const float mean = op.mean[channel], std = op.std[channel];
	const ptrdiff_t row = static_cast<ptrdiff_t>(py * P + y) + cut.dy;
	const bool row_inside = row >= 0 && row < static_cast<ptrdiff_t>(op.height);
	const uint8_t *line = op.pixels + ((b * op.channels + channel) * op.height + (row_inside ? row : 0)) * op.width;
	mu_pack<E, V> out;
#pragma unroll
	for (int i = 0; i < V; i++) {
		const size_t x = px * P + x0 + i;
		const ptrdiff_t column = static_cast<ptrdiff_t>(cut.flip ? op.width - 1 - x : x) + cut.dx;
		const bool inside = row_inside && column >= 0 && column < static_cast<ptrdiff_t>(op.width);
		const float pixel = inside ? line[column] : 0;
		out.e[i] = mu_round<E>(b < op.count ? (pixel / 255 - mean) / std : 0.0f);
	}
	mu_write<E, V>(op.patches, pack, out);
}

mural_status mu_cuda_patchify(mu_ops_context *c, const mu_patchify *op, mural_error *err)
{
	const size_t n = op->images * op->channels * op->height * op->width;
	if (n == 0)
		return MURAL_OK;
	MU_CUDA_BY_TYPE(op->type, MU_CUDA_BY_PACK(op->patch, {
		                const size_t packs = n / V;
		                patchify_kernel<E, V>
		                        <<<mu_blocks(packs, MU_CUDA_BLOCK), MU_CUDA_BLOCK, 0, c->stream>>>(*op, packs);
	                }));
	return mu_cuda_launched("patchify", err);
}
