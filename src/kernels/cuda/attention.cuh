/* What both attention implementations share: where things lie, and the rule that names elements for dropout.
 *
 * Backward is one kernel in two roles. A role owns rows and walks over columns; X1, X2 are the owner's arrays, Y1, Y2
 * those it walks over:
 *
 *     role      rows      X1  X2   columns   Y1  Y2    sums
 *     queries   queries   q   d_o  keys      k   v     d_q = sum d_s k
 *     keys      keys      k   v    queries   q   d_o   d_k = sum d_s q,  d_v = sum p' d_o
 *
 * with s = X1 Y1^T / sqrt(K), d_p = X2 Y2^T, p = exp(s - lse), p' = keep p, d_s = p (keep d_p - delta),
 * delta = sum d_o o per query. So seven products instead of the five of FlashAttention-2 (Dao 2023, arXiv:2307.08691),
 * but no sums between blocks: nothing is atomic and the result has always the same bits. The queries' role runs first
 * and leaves delta for the keys' role.
 * SPDX-License-Identifier: MIT */
#ifndef MU_KERNELS_CUDA_ATTENTION_CUH
#define MU_KERNELS_CUDA_ATTENTION_CUH

#include "kernels/cuda/cuda.cuh"

#define MU_LOG2_E 1.44269504088896340736f
#define MU_LN_2 0.69314718055994530942f

/* One head's array: row n begins at data + n * stride. */
template <typename E> struct mu_head {
	E *data;
	size_t stride;
};

enum mu_part { MU_Q, MU_K, MU_V };

/* array: [B, N, 3, H, K]; const or not. */
template <typename E>
static __device__ __forceinline__ mu_head<E> mu_part_of(const mu_attention &op, E *array, size_t b, size_t h, int part)
{
	const size_t D = op.heads * op.head_size;
	return {array + (b * op.tokens * 3 + part) * D + h * op.head_size, 3 * D};
}

/* array: [B, N, H, K] */
template <typename E>
static __device__ __forceinline__ mu_head<E> mu_output_of(const mu_attention &op, E *array, size_t b, size_t h)
{
	const size_t D = op.heads * op.head_size;
	return {array + b * op.tokens * D + h * op.head_size, D};
}

/* Not inlined: sixty-four copies of Philox in a kernel cost registers where there is no dropout. */
static __device__ __noinline__ uint32_t mu_attention_random(mu_random_key key, uint64_t stream, uint64_t element)
{
	return mu_random_u32(key, stream, element);
}

/* 0 for a dropped element, the rule's scale for a kept one. Only where there is dropout. */
static __device__ __forceinline__ float mu_attention_keep(const mu_attention &op, size_t b, size_t h, size_t query,
                                                          size_t key)
{
	const uint64_t element = (h * op.tokens + query) * op.tokens + key;
	const uint32_t bits = mu_attention_random(op.dropout.key, op.dropout.stream_B[b], element);
	return bits >= op.dropout.threshold ? op.dropout.scale : 0;
}

/* On tensor cores: 16-bit types, head sizes in multiples of 8 up to 128, capability 8.0 (attention_tensor.cu). delta:
 * [B, H, N]. */
bool mu_attention_tensor_fits(const mu_ops_context *c, const mu_attention *op);
void mu_attention_tensor_forward(mu_ops_context *c, const mu_attention *op);
void mu_attention_tensor_backward(mu_ops_context *c, const mu_attention *op, float *delta);

/* On warp groups of capability 9.0: whole heads of ViT lengths without dropout (attention_hopper.cu). Needs no delta. */
bool mu_attention_hopper_fits(const mu_ops_context *c, const mu_attention *op);
mural_status mu_attention_hopper_forward(mu_ops_context *c, const mu_attention *op, mural_error *err);
mural_status mu_attention_hopper_backward(mu_ops_context *c, const mu_attention *op, mural_error *err);

/* Everything else (attention_tiled.cu): head sizes up to 128. */
void mu_attention_tiled_forward(mu_ops_context *c, const mu_attention *op);
void mu_attention_tiled_backward(mu_ops_context *c, const mu_attention *op, float *delta);

/* Lets a kernel have more than the 48 KiB of shared memory that every kernel may have. */
static inline void mu_allow_shared(const void *kernel, size_t bytes)
{
	if (bytes > 48 * 1024)
		(void)cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
		                           static_cast<int>(bytes));
}

#endif
