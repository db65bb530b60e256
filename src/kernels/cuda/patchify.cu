/* Bytes to normalised patches, one thread per pack of output pixels of one patch row.
 *
 * 1 byte in, 2 (bf16) or 4 out per pixel; the writes are coalesced, the byte reads of a warp lie in a few rows of one
 * plane. An enlarged pixel reads four bytes, which neighbours share. SPDX-License-Identifier: MIT */
#include "kernels/cuda/cuda.cuh"

/* As it is, or enlarged. */
static __device__ __forceinline__ uint8_t source_pixel(const uint8_t *plane, uint32_t height, uint32_t width,
                                                       uint32_t growth, uint32_t row, uint32_t column)
{
	if (growth > 1)
		return mu_enlarged_pixel(plane, height, width, growth, row, column);
	return plane[static_cast<size_t>(row) * width + column];
}

template <typename E, int V>
static __global__ void patchify_kernel(const mu_patchify op, uint32_t packs_per_image, uint32_t blocks_per_image)
{
	/* 32-bit numbers within an image: divisions are what this kernel does most. */
	const uint32_t P = static_cast<uint32_t>(op.patch), channels = static_cast<uint32_t>(op.channels);
	const uint32_t columns = static_cast<uint32_t>(op.width) / P;
	const size_t b = blockIdx.x / blocks_per_image;
	uint32_t rest = blockIdx.x % blocks_per_image * blockDim.x + threadIdx.x;
	if (rest >= packs_per_image)
		return;
	const size_t pack = b * packs_per_image + rest;
	const uint32_t x0 = rest % (P / V) * V;
	rest /= P / V;
	const uint32_t y = rest % P;
	rest /= P;
	const uint32_t channel = rest % channels;
	rest /= channels;
	const uint32_t px = rest % columns, py = rest / columns;

	mu_image_cut cut = {0, 0, 0, {0, 0, 0}};
	if (op.cut_B)
		cut = op.cut_B[b];
	const float factor = 1 / (255 * op.std[channel]), offset = -op.mean[channel] / op.std[channel];
	const ptrdiff_t row = static_cast<ptrdiff_t>(py * P + y) + cut.dy;
	const bool row_inside = row >= 0 && row < static_cast<ptrdiff_t>(op.height);
	const uint32_t sources = op.image_channels ? static_cast<uint32_t>(op.image_channels) : channels;
	const uint32_t growth = op.factor ? static_cast<uint32_t>(op.factor) : 1;
	const uint32_t height = static_cast<uint32_t>(op.height) / growth;
	const uint32_t width = static_cast<uint32_t>(op.width) / growth;
	const uint8_t *plane =
	        op.pixels + (b * sources + (sources == 1 ? 0 : channel)) * static_cast<size_t>(height) * width;
	const bool real = b < op.micro->count;
	mu_pack<E, V> out;
#pragma unroll
	for (int i = 0; i < V; i++) {
		const size_t x = px * P + x0 + i;
		const ptrdiff_t column = static_cast<ptrdiff_t>(cut.flip ? op.width - 1 - x : x) + cut.dx;
		const bool inside = row_inside && column >= 0 && column < static_cast<ptrdiff_t>(op.width);
		const float pixel = inside ? source_pixel(plane, height, width, growth, static_cast<uint32_t>(row),
		                                          static_cast<uint32_t>(column))
		                           : 0;
		out.e[i] = mu_round<E>(real ? fmaf(pixel, factor, offset) : 0.0f);
	}
	mu_write<E, V>(op.patches, pack, out);
}

mural_status mu_cuda_patchify(mu_ops_context *c, const mu_patchify *op, mural_error *err)
{
	const size_t n = op->images * op->channels * op->height * op->width;
	if (n == 0)
		return MURAL_OK;
	MU_CUDA_BY_TYPE(op->type, MU_CUDA_BY_PACK(op->patch, {
		                const uint32_t packs = static_cast<uint32_t>(n / op->images / V);
		                const uint32_t blocks = mu_blocks(packs, MU_CUDA_BLOCK);
		                patchify_kernel<E, V>
		                        <<<static_cast<unsigned>(op->images) * blocks, MU_CUDA_BLOCK, 0, c->stream>>>(
		                                *op, packs, blocks);
	                }));
	return mu_cuda_launched("patchify", err);
}
