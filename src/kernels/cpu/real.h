/* mu_real: one element of activations, parameters and gradients, float, bf16 or fp16, and the way to floats and back.
 *
 * Every file of an operation is compiled once per type (cpu.h says how). It keeps its arrays as mu_real, computes in
 * float, and meets the type only here: mu_wide and mu_narrow for an element, mu_real_load and mu_real_store for a
 * register of them. A narrow number is a struct, so that arithmetic on it by mistake does not compile.
 *
 * Widening is exact; narrowing rounds to nearest even, a NaN stays one, made quiet (base/narrow.h). On the bits, in every
 * level: the instruction of AVX512_BF16 takes subnormal numbers for zero, and results would differ between processors.
 * SPDX-License-Identifier: MIT */
#ifndef MU_KERNELS_CPU_REAL_H
#define MU_KERNELS_CPU_REAL_H

#include "base/narrow.h"
#include "kernels/cpu/simd.h"

#if defined(MU_CPU_BF16) || defined(MU_CPU_F16)
typedef struct mu_real {
	uint16_t bits;
} mu_real;
typedef uint16_t mu_real_half __attribute__((vector_size(MU_SIMD_BYTES / 2)));
typedef uint16_t mu_real_memory __attribute__((vector_size(MU_SIMD_BYTES / 2), aligned(2), may_alias));
#endif

#if defined(MU_CPU_BF16)
#define MU_REAL MU_BF16

MU_CPU_INLINE float mu_wide(mu_real x)
{
	return mu_bf16_float(x.bits);
}

MU_CPU_INLINE mu_real mu_narrow(float x)
{
	return (mu_real){mu_bf16_bits(x)};
}

MU_CPU_INLINE mu_simd mu_real_load(const mu_real *p)
{
	return (mu_simd)(__builtin_convertvector(*(const mu_real_memory *)p, mu_simd_bits) << 16);
}

MU_CPU_INLINE void mu_real_store(mu_real *p, mu_simd x)
{
	const mu_simd_bits bits = (mu_simd_bits)x;
	const mu_simd_bits rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16,
	                   quiet = (bits >> 16 & 0x8000u) | 0x7fc0u;
	const mu_simd_bits is_nan = (mu_simd_bits)(x != x);
	*(mu_real_memory *)p = __builtin_convertvector((rounded & ~is_nan) | (quiet & is_nan), mu_real_half);
}
#elif defined(MU_CPU_F16)
#define MU_REAL MU_F16

MU_CPU_INLINE float mu_wide(mu_real x)
{
	return mu_f16_float(x.bits);
}

MU_CPU_INLINE mu_real mu_narrow(float x)
{
	return (mu_real){mu_f16_bits(x)};
}

/* The same steps as in base/narrow.h, a register at a time. */
MU_CPU_INLINE mu_simd mu_real_load(const mu_real *p)
{
	const mu_simd_bits half = __builtin_convertvector(*(const mu_real_memory *)p, mu_simd_bits);
	const mu_simd_bits size = (half & 0x7fffu) << 13, sign = (half & 0x8000u) << 16;
	const mu_simd_bits finite = (mu_simd_bits)((mu_simd)size * 0x1p112f);
	return (mu_simd)(sign | finite | ((mu_simd_bits)(size >= 0x0f800000u) & 0x7f800000u));
}

MU_CPU_INLINE void mu_real_store(mu_real *p, mu_simd x)
{
	const mu_simd_bits bits = (mu_simd_bits)x, sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
	const mu_simd_bits normal = (size - (112u << 23) + 0xfffu + (size >> 13 & 1)) >> 13;
	const mu_simd_bits small = (mu_simd_bits)((mu_simd)size + 0.5f) - 0x3f000000u;
	const mu_simd_bits is_small = (mu_simd_bits)(size < 0x38800000u),
	                   is_large = (mu_simd_bits)(size >= 0x477ff000u), is_nan = (mu_simd_bits)(size > 0x7f800000u);
	mu_simd_bits half = (small & is_small) | (normal & ~is_small);
	half = (half & ~is_large) | (is_large & 0x7c00u);
	half = (half & ~is_nan) | (is_nan & 0x7e00u);
	*(mu_real_memory *)p = __builtin_convertvector(sign | half, mu_real_half);
}
#else
#define MU_REAL MU_F32
typedef float mu_real;

MU_CPU_INLINE float mu_wide(mu_real x)
{
	return x;
}

MU_CPU_INLINE mu_real mu_narrow(float x)
{
	return x;
}

MU_CPU_INLINE mu_simd mu_real_load(const mu_real *p)
{
	return mu_simd_load(p);
}

MU_CPU_INLINE void mu_real_store(mu_real *p, mu_simd x)
{
	mu_simd_store(p, x);
}
#endif

/* The first n elements, `fill` behind them. For the ends of rows: n >= MU_LANES takes the short way. */
MU_CPU_INLINE mu_simd mu_real_load_filled(const mu_real *p, size_t n, float fill)
{
	if (n >= MU_LANES)
		return mu_real_load(p);
	float edge[MU_LANES];
	for (size_t i = 0; i < MU_LANES; i++)
		edge[i] = i < n ? mu_wide(p[i]) : fill;
	return mu_simd_load(edge);
}

MU_CPU_INLINE mu_simd mu_real_load_up_to(const mu_real *p, size_t n)
{
	return mu_real_load_filled(p, n, 0);
}

MU_CPU_INLINE void mu_real_store_up_to(mu_real *p, size_t n, mu_simd x)
{
	if (n >= MU_LANES) {
		mu_real_store(p, x);
		return;
	}
	mu_real edge[MU_LANES];
	mu_real_store(edge, x);
	memcpy(p, edge, n * sizeof *p);
}

/* How a sum reaches the gradient of a parameter: rounded once. */
MU_CPU_INLINE void mu_real_add(mu_real *to, float sum)
{
	*to = mu_narrow(mu_wide(*to) + sum);
}

/* In a narrow type p is a master, and the parameter its rounded copy; in fp32 the parameter is p itself. */
MU_CPU_INLINE void mu_real_follow(mu_real *parameter, float p)
{
	if (MU_REAL != MU_F32)
		*parameter = mu_narrow(p);
}

/* The largest of n elements as comparisons find it, -inf if there is none: a NaN never wins. */
MU_CPU_INLINE float mu_real_largest(const mu_real *p, size_t n)
{
	mu_simd most = mu_simd_all(-__builtin_inff());
	size_t i = 0;
	for (; i + MU_LANES <= n; i += MU_LANES)
		most = mu_simd_larger(most, mu_real_load(p + i));
	for (int lanes = MU_LANES; lanes > 1; lanes /= 2)
		most = mu_simd_larger(mu_simd_zip_low(most, most), mu_simd_zip_high(most, most));
	float largest = most[0];
	for (; i < n; i++)
		largest = mu_wide(p[i]) > largest ? mu_wide(p[i]) : largest;
	return largest;
}

#endif
