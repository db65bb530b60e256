/* What the CUDA kernels share: elements, packs of them, launches, warp sums, dropout.
 *
 * A pack is V neighbouring elements that travel in one access (16 bytes, where V allows). Arrays start at 64 bytes, so a
 * row of D elements may be read in packs iff V divides D; every kernel has V as template parameter and its caller picks.
 * Arithmetic is in float, but for sums that ops.h wants in double.
 * SPDX-License-Identifier: MIT */
#ifndef MU_KERNELS_CUDA_CUDA_CUH
#define MU_KERNELS_CUDA_CUDA_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "kernels/cuda/cuda.h"

typedef __nv_bfloat16 mu_bf16;
typedef __half mu_f16;

#define MU_WARP 32

static __device__ __forceinline__ float mu_load(float x)
{
	return x;
}
static __device__ __forceinline__ float mu_load(mu_bf16 x)
{
	return __bfloat162float(x);
}
static __device__ __forceinline__ float mu_load(mu_f16 x)
{
	return __half2float(x);
}

template <typename E> static __device__ __forceinline__ E mu_round(float x);
template <> __device__ __forceinline__ float mu_round<float>(float x)
{
	return x;
}
template <> __device__ __forceinline__ mu_bf16 mu_round<mu_bf16>(float x)
{
	return __float2bfloat16_rn(x);
}
template <> __device__ __forceinline__ mu_f16 mu_round<mu_f16>(float x)
{
	return __float2half_rn(x);
}

template <typename E, int V> struct alignas(sizeof(E) * V) mu_pack {
	E e[V];
};

template <typename E, int V> static __device__ __forceinline__ mu_pack<E, V> mu_read(const void *p, size_t pack)
{
	return static_cast<const mu_pack<E, V> *>(p)[pack];
}

template <typename E, int V>
static __device__ __forceinline__ void mu_write(void *p, size_t pack, const mu_pack<E, V> &x)
{
	static_cast<mu_pack<E, V> *>(p)[pack] = x;
}

static __device__ __forceinline__ float mu_warp_sum(float x)
{
	for (int lane = MU_WARP / 2; lane > 0; lane /= 2)
		x += __shfl_xor_sync(0xffffffffu, x, lane);
	return x;
}

static __device__ __forceinline__ bool mu_keeps(const mu_dropout_rule &rule, size_t image, size_t element)
{
	return mu_random_u32(rule.key, rule.stream_B[image], element) >= rule.threshold;
}

/* Runs the statement with E as the element type. */
#define MU_CUDA_BY_TYPE(type, ...) \
	switch (type) {            \
	case MU_BF16: {            \
		typedef mu_bf16 E; \
		__VA_ARGS__;       \
		break;             \
	}                          \
	case MU_F16: {             \
		typedef mu_f16 E;  \
		__VA_ARGS__;       \
		break;             \
	}                          \
	default: {                 \
		typedef float E;   \
		__VA_ARGS__;       \
		break;             \
	}                          \
	}

/* Runs the statement with V = 8 where packs of eight divide n, else 1. */
#define MU_CUDA_BY_PACK(n, ...)      \
	if ((n) % 8 == 0) {          \
		constexpr int V = 8; \
		__VA_ARGS__;         \
	} else {                     \
		constexpr int V = 1; \
		__VA_ARGS__;         \
	}

#define MU_CUDA_BLOCK 256 /* threads, where nothing speaks for another number */

static inline unsigned mu_blocks(size_t n, size_t per_block)
{
	return static_cast<unsigned>((n + per_block - 1) / per_block);
}

static inline bool mu_aligned(const void *p, size_t bytes)
{
	return reinterpret_cast<uintptr_t>(p) % bytes == 0;
}

/* One thread per item. */
static __device__ __forceinline__ size_t mu_thread(void)
{
	return static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

#endif
