/* One register of floats at a time: loads, sums, exp, GELU, dropout masks, for the bodies of MU_CPU_KERNEL.
 *
 * Vectors are those of GNU C, as wide as a register of the level that is compiled: 16, 8 or 4 lanes. Plain loops
 * left to the vectoriser were tried first: gcc 12 gives up on sums in inlined bodies and turns clamps into
 * branches, clang 14 gives up on maxima.
 *
 * No fast-math: a NaN that enters comes out (every clamp is written so that a comparison with NaN keeps it),
 * because a broken loss must be seen. Coefficients are our own minimax fits in relative error, made by iteratively
 * reweighted least squares with 40 digits.
 * SPDX-License-Identifier: MIT */
#ifndef MU_KERNELS_CPU_SIMD_H
#define MU_KERNELS_CPU_SIMD_H

#include <stdint.h>
#include <string.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "base/philox.h"
#include "kernels/cpu/cpu.h"

#if defined(__AVX512F__)
#define MU_LANES 16
#elif defined(__AVX2__)
#define MU_LANES 8
#else
#define MU_LANES 4
#endif
#define MU_SIMD_BYTES (4 * MU_LANES)

typedef float mu_simd __attribute__((vector_size(MU_SIMD_BYTES)));
typedef uint32_t mu_simd_bits __attribute__((vector_size(MU_SIMD_BYTES)));
typedef float mu_simd_memory __attribute__((vector_size(MU_SIMD_BYTES), aligned(4), may_alias)); /* floats anywhere */

MU_CPU_INLINE mu_simd mu_simd_all(float x)
{
	return (mu_simd){0} + x;
}

MU_CPU_INLINE mu_simd mu_simd_load(const float *p)
{
	return *(const mu_simd_memory *)p;
}

MU_CPU_INLINE void mu_simd_store(float *p, mu_simd x)
{
	*(mu_simd_memory *)p = x;
}

/* The first n floats, zeros behind them. For the ends of rows: n >= MU_LANES takes the short way. */
MU_CPU_INLINE mu_simd mu_simd_load_up_to(const float *p, size_t n)
{
	if (n >= MU_LANES)
		return mu_simd_load(p);
	float edge[MU_LANES];
	for (size_t i = 0; i < MU_LANES; i++)
		edge[i] = i < n ? p[i] : 0;
	return mu_simd_load(edge);
}

MU_CPU_INLINE void mu_simd_store_up_to(float *p, size_t n, mu_simd x)
{
	if (n >= MU_LANES) {
		mu_simd_store(p, x);
		return;
	}
	float edge[MU_LANES];
	mu_simd_store(edge, x);
	memcpy(p, edge, n * sizeof *p);
}

/* Lanes of a and b in turn: of the first or of the last half of each. */
#if MU_LANES == 16
#define MU_ZIP_LOW 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define MU_ZIP_HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define MU_SIMD_COUNT 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
#elif MU_LANES == 8
#define MU_ZIP_LOW 0, 8, 1, 9, 2, 10, 3, 11
#define MU_ZIP_HIGH 4, 12, 5, 13, 6, 14, 7, 15
#define MU_SIMD_COUNT 0, 1, 2, 3, 4, 5, 6, 7
#else
#define MU_ZIP_LOW 0, 4, 1, 5
#define MU_ZIP_HIGH 2, 6, 3, 7
#define MU_SIMD_COUNT 0, 1, 2, 3
#endif

MU_CPU_INLINE mu_simd mu_simd_zip_low(mu_simd a, mu_simd b)
{
	return __builtin_shufflevector(a, b, MU_ZIP_LOW);
}

MU_CPU_INLINE mu_simd mu_simd_zip_high(mu_simd a, mu_simd b)
{
	return __builtin_shufflevector(a, b, MU_ZIP_HIGH);
}

/* Each turn folds the last half onto the first, each lane twice: after log2(lanes) turns all hold the sum. */
MU_CPU_INLINE float mu_simd_sum(mu_simd x)
{
	for (int lanes = MU_LANES; lanes > 1; lanes /= 2)
		x = mu_simd_zip_low(x, x) + mu_simd_zip_high(x, x);
	return x[0];
}

/* where ? a : b; where holds all ones or zeros per lane, as comparisons give them. */
MU_CPU_INLINE mu_simd mu_simd_select(mu_simd_bits where, mu_simd a, mu_simd b)
{
	return (mu_simd)((where & (mu_simd_bits)a) | (~where & (mu_simd_bits)b));
}

/* x with NaN kept, limited from above or below. */
MU_CPU_INLINE mu_simd mu_simd_at_most(mu_simd x, mu_simd limit)
{
	return mu_simd_select((mu_simd_bits)(x > limit), limit, x);
}

MU_CPU_INLINE mu_simd mu_simd_at_least(mu_simd x, mu_simd limit)
{
	return mu_simd_select((mu_simd_bits)(x < limit), limit, x);
}

/* b where it is larger, else a. */
MU_CPU_INLINE mu_simd mu_simd_larger(mu_simd a, mu_simd b)
{
	return mu_simd_select((mu_simd_bits)(b > a), b, a);
}

/* exp(x) for x in [-87.3, 88.3], within 1.2 units in the last place.
 *
 * x = n ln 2 + r with |r| <= ln 2 / 2; n by adding 1.5 * 2^23, whose low bits are then n itself; ln 2 in two parts so
 * that r is exact; degree 6, 3e-9. */
MU_CPU_INLINE mu_simd mu_simd_exp_inside(mu_simd x)
{
	const float shift = 12582912.0f;
	const mu_simd shifted = x * 1.44269504089f + shift;
	const mu_simd n = shifted - shift;
	const mu_simd r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
	mu_simd p = r * 0.001381460452f + 0.0083687106561f;
	p = p * r + 0.041668387544f;
	p = p * r + 0.16666520681f;
	p = p * r + 0.49999993451f;
	p = p * (r * r) + r + 1.0f;
	return p * (mu_simd)(((mu_simd_bits)shifted + 127) << 23);
}

/* exp(x) for x <= 0: 1.2e-38 below the range. */
MU_CPU_INLINE mu_simd mu_simd_exp_negative(mu_simd x)
{
	return mu_simd_exp_inside(mu_simd_at_least(x, mu_simd_all(-87.3f)));
}

/* exp(x) for any x; 1.2e-38 below the range, 2.3e38 above. */
MU_CPU_INLINE mu_simd mu_simd_exp(mu_simd x)
{
	return mu_simd_exp_negative(mu_simd_at_most(x, mu_simd_all(88.3f)));
}

/* rows becomes its transpose: log2(lanes) rounds, each of which deals the two halves of the deck in turn. */
MU_CPU_INLINE void mu_simd_transpose(mu_simd rows[MU_LANES])
{
	for (int lanes = MU_LANES; lanes > 1; lanes /= 2) {
		mu_simd dealt[MU_LANES];
		for (int i = 0; i < MU_LANES / 2; i++) {
			dealt[2 * i] = mu_simd_zip_low(rows[i], rows[i + MU_LANES / 2]);
			dealt[2 * i + 1] = mu_simd_zip_high(rows[i], rows[i + MU_LANES / 2]);
		}
		for (int i = 0; i < MU_LANES; i++)
			rows[i] = dealt[i];
	}
}

/* The two halves of the erf GELU, of t = |x| limited to 12.9, where both are still normal numbers (an AVX-512 unit
 * takes a hundred times as long for subnormal ones) of about 1e-37:
 *     tail = 1 - Phi(t) = bell * R(t),  bell = exp(-t^2 / 2)
 * R is smooth, so a quotient of degrees 4 and 5 holds it within 5e-9 everywhere and the left tail keeps its digits,
 * which 1 + erf would lose. All coefficients are positive: nothing cancels. */
typedef struct mu_simd_normal {
	mu_simd t, bell, tail;
} mu_simd_normal;

MU_CPU_INLINE mu_simd_normal mu_simd_normal_tail(mu_simd x)
{
	const mu_simd t = mu_simd_at_most((mu_simd)((mu_simd_bits)x & 0x7fffffffu), mu_simd_all(12.9f));
	const mu_simd bell = mu_simd_exp_inside(t * t * -0.5f);
	mu_simd p = t * 0.0039945997783f + 0.039810940802f;
	p = p * t + 0.18079114162f;
	p = p * t + 0.43498697856f;
	p = p * t + 0.50000000232f;
	mu_simd q = t * 0.010012826751f + 0.099798874562f;
	q = q * t + 0.46301939549f;
	q = q * t + 1.1923371615f;
	q = q * t + 1.6678588575f;
	q = q * t + 1.0f;
	return (mu_simd_normal){t, bell, bell * p / q};
}

MU_CPU_INLINE mu_simd mu_simd_gelu_erf(mu_simd x)
{
	const mu_simd_normal normal = mu_simd_normal_tail(x);
	return mu_simd_at_least(x, mu_simd_all(0)) - normal.t * normal.tail;
}

/* Phi(x) + x phi(x) */
MU_CPU_INLINE mu_simd mu_simd_gelu_erf_slope(mu_simd x)
{
	const mu_simd_normal normal = mu_simd_normal_tail(x);
	const mu_simd share = mu_simd_select((mu_simd_bits)(x > 0.0f), 1.0f - normal.tail, normal.tail);
	return share + x * 0.39894228040f * normal.bell;
}

/* 0.5 x (1 + tanh u) = x / (1 + exp(-2u)): no cancellation either. */
MU_CPU_INLINE mu_simd mu_simd_gelu_tanh(mu_simd x)
{
	const mu_simd u = (x + x * x * x * 0.044715f) * 0.79788456080f;
	return x / (mu_simd_exp(u * -2.0f) + 1.0f);
}

MU_CPU_INLINE mu_simd mu_simd_gelu_tanh_slope(mu_simd x)
{
	const mu_simd u = (x + x * x * x * 0.044715f) * 0.79788456080f;
	const mu_simd slope_of_u = (x * x * (3 * 0.044715f) + 1.0f) * 0.79788456080f;
	const mu_simd e = mu_simd_exp(u * -2.0f);
	const mu_simd share = 1.0f / (e + 1.0f);
	return share + x * 2.0f * slope_of_u * share * (e * share);
}

/* Products of the low 32 bits of each 64-bit lane; GNU C has no name for it, and gcc 12 multiplies all 64 bits. */
typedef uint64_t mu_simd_wide __attribute__((vector_size(MU_SIMD_BYTES)));

MU_CPU_INLINE mu_simd_wide mu_simd_multiply_low_halves(mu_simd_wide x, mu_simd_wide y)
{
#if defined(__AVX512F__)
	return (mu_simd_wide)_mm512_mul_epu32((__m512i)x, (__m512i)y);
#elif defined(__AVX2__)
	return (mu_simd_wide)_mm256_mul_epu32((__m256i)x, (__m256i)y);
#else
	return (x & 0xffffffffu) * (y & 0xffffffffu);
#endif
}

/* High 32 bits of a 32 x 32 bit product in each lane. Even and odd lanes are the two halves of 64-bit lanes. */
MU_CPU_INLINE mu_simd_bits mu_simd_multiply_high(mu_simd_bits x, uint32_t factor)
{
	const mu_simd_wide factors = (mu_simd_wide){0} + factor;
	const mu_simd_wide low = mu_simd_multiply_low_halves((mu_simd_wide)x, factors);
	const mu_simd_wide high = mu_simd_multiply_low_halves((mu_simd_wide)x >> 32, factors);
	return (mu_simd_bits)((low >> 32) | (high & 0xffffffff00000000u));
}

/* Room for the factors of n elements. */
#define MU_SIMD_KEEP_SPACE(n) ((n) + 68)

/* Factors of elements [first, first + n) of a stream: scale if kept, else 0. Fills `space` with whole turns of
 * MU_LANES Philox counters (four elements each) side by side, and returns where in it the factor of `first` lies.
 * The same numbers as mu_random_u32, which see. */
MU_CPU_INLINE const float *mu_simd_keep(const mu_dropout_rule *rule, uint64_t stream, uint64_t first, size_t n,
                                        float *space)
{
	const size_t skip = (size_t)(first % 4);
	const mu_simd_bits scale = (mu_simd_bits)mu_simd_all(rule->scale), lane = {MU_SIMD_COUNT};
	for (size_t done = 0; done < skip + n; done += 4 * MU_LANES) {
		const uint64_t block = first / 4 + done / 4;
		mu_simd_bits c0 = lane + (uint32_t)block;
		/* Lanes whose low word ran over carry one into the high word. */
		mu_simd_bits c1 = (uint32_t)(block >> 32) - (mu_simd_bits)(c0 < (uint32_t)block);
		mu_simd_bits c2 = (mu_simd_bits){0} + (uint32_t)stream,
		             c3 = (mu_simd_bits){0} + (uint32_t)(stream >> 32);
		uint32_t k0 = rule->key.seed, k1 = rule->key.purpose;
		for (int round = 0; round < 10; round++) {
			const mu_simd_bits n0 = mu_simd_multiply_high(c2, 0xCD9E8D57u) ^ c1 ^ k0;
			const mu_simd_bits n2 = mu_simd_multiply_high(c0, 0xD2511F53u) ^ c3 ^ k1;
			c1 = c2 * 0xCD9E8D57u;
			c3 = c0 * 0xD2511F53u;
			c0 = n0;
			c2 = n2;
			k0 += 0x9E3779B9u;
			k1 += 0xBB67AE85u;
		}
		c0 = (mu_simd_bits)(c0 >= rule->threshold) & scale;
		c1 = (mu_simd_bits)(c1 >= rule->threshold) & scale;
		c2 = (mu_simd_bits)(c2 >= rule->threshold) & scale;
		c3 = (mu_simd_bits)(c3 >= rule->threshold) & scale;
		/* From four words of each counter to the words of one counter after the other: two rounds of dealing. */
		const mu_simd low02 = mu_simd_zip_low((mu_simd)c0, (mu_simd)c2);
		const mu_simd high02 = mu_simd_zip_high((mu_simd)c0, (mu_simd)c2);
		const mu_simd low13 = mu_simd_zip_low((mu_simd)c1, (mu_simd)c3);
		const mu_simd high13 = mu_simd_zip_high((mu_simd)c1, (mu_simd)c3);
		mu_simd_store(space + done, mu_simd_zip_low(low02, low13));
		mu_simd_store(space + done + MU_LANES, mu_simd_zip_high(low02, low13));
		mu_simd_store(space + done + 2 * MU_LANES, mu_simd_zip_low(high02, high13));
		mu_simd_store(space + done + 3 * MU_LANES, mu_simd_zip_high(high02, high13));
	}
	return space + skip;
}

#endif
