/* Scalar functions that the compiler turns into vector code inside a MU_CPU_KERNEL: exp, GELU, dropout masks.
 *
 * Straight lines without branches or calls. No fast-math: a NaN that enters comes out (every clamp is written so that
 * a comparison with NaN keeps it), because a broken loss must be seen. Coefficients are our own minimax fits in relative
 * error, made by iteratively reweighted least squares with 40 digits.
 * SPDX-License-Identifier: MIT */
#ifndef MU_KERNELS_CPU_SIMD_H
#define MU_KERNELS_CPU_SIMD_H

#include <stdint.h>
#include <string.h>

#include "base/philox.h"
#include "kernels/cpu/cpu.h"

/* exp(x) within 1.2 units in the last place on [-87.3, 88.3]; clamped outside: 1.2e-38 below, 2.3e38 above.
 *
 * x = n ln 2 + r with |r| <= ln 2 / 2; n by adding 1.5 * 2^23, whose low bits are then n itself; ln 2 in two parts so
 * that r is exact; degree 6, 3e-9. */
MU_CPU_INLINE float mu_simd_exp(float x)
{
	const float shift = 12582912.0f, log2_e = 1.44269504089f, ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
	x = x < -87.3f ? -87.3f : x;
	x = x > 88.3f ? 88.3f : x;
	const float shifted = x * log2_e + shift;
	const float n = shifted - shift;
	const float r = (x - n * ln2_high) - n * ln2_low;
	float p = 0.001381460452f;
	p = p * r + 0.0083687106561f;
	p = p * r + 0.041668387544f;
	p = p * r + 0.16666520681f;
	p = p * r + 0.49999993451f;
	p = p * r * r + r + 1;
	uint32_t bits;
	memcpy(&bits, &shifted, sizeof bits);
	bits = (bits + 127) << 23;
	float scale;
	memcpy(&scale, &bits, sizeof scale);
	return p * scale;
}

/* The two halves of the erf GELU, of t = |x| clamped to 14 where both are 0 in float:
 *     tail = 1 - Phi(t) = bell * R(t),  bell = exp(-t^2 / 2)
 * R is smooth, so a quotient of degrees 4 and 5 holds it within 5e-9 everywhere and the left tail keeps its digits,
 * which 1 + erf would lose. All coefficients are positive: nothing cancels. */
typedef struct mu_simd_normal {
	float t, bell, tail;
} mu_simd_normal;

MU_CPU_INLINE mu_simd_normal mu_simd_normal_tail(float x)
{
	float t = x < 0 ? -x : x;
	t = t > 14.0f ? 14.0f : t;
	const float bell = mu_simd_exp(-0.5f * t * t);
	float p = 0.0039945997783f;
	p = p * t + 0.039810940802f;
	p = p * t + 0.18079114162f;
	p = p * t + 0.43498697856f;
	p = p * t + 0.50000000232f;
	float q = 0.010012826751f;
	q = q * t + 0.099798874562f;
	q = q * t + 0.46301939549f;
	q = q * t + 1.1923371615f;
	q = q * t + 1.6678588575f;
	q = q * t + 1.0f;
	return (mu_simd_normal){t, bell, bell * p / q};
}

MU_CPU_INLINE float mu_simd_gelu_erf(float x)
{
	const mu_simd_normal normal = mu_simd_normal_tail(x);
	return (x > 0 ? x : 0) - normal.t * normal.tail;
}

/* Phi(x) + x phi(x) */
MU_CPU_INLINE float mu_simd_gelu_erf_slope(float x)
{
	const mu_simd_normal normal = mu_simd_normal_tail(x);
	const float density = x * 0.39894228040f * normal.bell;
	return (x > 0 ? 1 - normal.tail : normal.tail) + density;
}

/* 0.5 x (1 + tanh u) = x / (1 + exp(-2u)): no cancellation either. */
MU_CPU_INLINE float mu_simd_gelu_tanh(float x)
{
	const float u = 0.79788456080f * (x + 0.044715f * x * x * x);
	return x / (1 + mu_simd_exp(-2 * u));
}

MU_CPU_INLINE float mu_simd_gelu_tanh_slope(float x)
{
	const float u = 0.79788456080f * (x + 0.044715f * x * x * x);
	const float slope_of_u = 0.79788456080f * (1 + 3 * 0.044715f * x * x);
	const float e = mu_simd_exp(-2 * u);
	const float share = 1 / (1 + e);
	return share + 2 * x * slope_of_u * share * (e * share);
}

/* Elements per call of mu_simd_keep: a multiple of 64, so that the counter blocks fill whole vectors. */
#define MU_SIMD_KEEP 256

/* keep[i] = scale if element first + i of the stream is kept, else 0, for i in [0, n). n <= MU_SIMD_KEEP.
 * Philox makes four elements per counter, so the blocks that cover the range are made whole. */
MU_CPU_INLINE void mu_simd_keep(const mu_dropout_rule *rule, uint64_t stream, uint64_t first, size_t n, float *keep)
{
	float lanes[MU_SIMD_KEEP + 8];
	const uint64_t first_block = first / 4;
	const size_t skip = (size_t)(first % 4), blocks = (skip + n + 3) / 4;
	const mu_random_key key = rule->key;
	const uint32_t threshold = rule->threshold;
	const float scale = rule->scale;
#pragma omp simd
	for (size_t i = 0; i < blocks; i++) {
		const mu_philox_block block = mu_philox(key, stream, first_block + i);
		lanes[4 * i + 0] = block.lane[0] >= threshold ? scale : 0;
		lanes[4 * i + 1] = block.lane[1] >= threshold ? scale : 0;
		lanes[4 * i + 2] = block.lane[2] >= threshold ? scale : 0;
		lanes[4 * i + 3] = block.lane[3] >= threshold ? scale : 0;
	}
	memcpy(keep, lanes + skip, n * sizeof *keep);
}

#endif
