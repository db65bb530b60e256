/* What the attention kernels on tensor cores share: pairs of 16-bit numbers, pieces on their way to shared memory, sums
 * over the four lanes that hold one row of an accumulator.
 * SPDX-License-Identifier: MIT */
#ifndef MU_KERNELS_CUDA_ATTENTION_LANES_CUH
#define MU_KERNELS_CUDA_ATTENTION_LANES_CUH

#include "kernels/cuda/attention.cuh"

template <typename E> static __device__ __forceinline__ uint32_t pack_pair(float low, float high);
template <> __device__ __forceinline__ uint32_t pack_pair<mu_bf16>(float low, float high)
{
	const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
	return reinterpret_cast<const uint32_t &>(pair);
}
template <> __device__ __forceinline__ uint32_t pack_pair<mu_f16>(float low, float high)
{
	const __half2 pair = __floats2half2_rn(low, high);
	return reinterpret_cast<const uint32_t &>(pair);
}

static __device__ __forceinline__ float2 unpack_pair(uint32_t bits, mu_bf16)
{
	return __bfloat1622float2(reinterpret_cast<const __nv_bfloat162 &>(bits));
}
static __device__ __forceinline__ float2 unpack_pair(uint32_t bits, mu_f16)
{
	return __half22float2(reinterpret_cast<const __half2 &>(bits));
}

static __device__ __forceinline__ uint32_t shared_address(const void *p)
{
	return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

/* 16 bytes to shared memory without passing through registers; 0 where !inside. */
static __device__ __forceinline__ void copy_piece(uint32_t to, const void *from, bool inside)
{
#if __CUDA_ARCH__ >= 800
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(inside ? 16 : 0));
#endif
}
static __device__ __forceinline__ void wait_for_pieces(void)
{
#if __CUDA_ARCH__ >= 800
	asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;" ::: "memory");
#endif
}

/* One instruction; results below 2^-126 become 0. exp2f would spend three more on those. */
static __device__ __forceinline__ float power_of_2(float x)
{
	float y;
	asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}

/* Over the four lanes of a row. */
static __device__ __forceinline__ float quad_sum(float x)
{
	x += __shfl_xor_sync(0xffffffffu, x, 1);
	return x + __shfl_xor_sync(0xffffffffu, x, 2);
}
static __device__ __forceinline__ float quad_max(float x)
{
	x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
	return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

#endif
