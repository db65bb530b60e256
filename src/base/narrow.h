/* bf16 and fp16 numbers as bits, to floats and back: exact to floats, round to nearest even from them.
 *
 * bf16 is the upper half of a float. fp16 has 5 bits of exponent and 10 of fraction, with subnormal numbers down to 2^-24 and
 * infinity from 65520 on. A NaN stays one, made quiet. No branches: loops over these become vectors.
 * SPDX-License-Identifier: MIT */
#ifndef MU_BASE_NARROW_H
#define MU_BASE_NARROW_H

#include <stdint.h>
#include <string.h>

#define MU_NARROW_INLINE static inline __attribute__((always_inline))

MU_NARROW_INLINE uint32_t mu_float_bits(float x)
{
	uint32_t bits;
	memcpy(&bits, &x, sizeof bits);
	return bits;
}

MU_NARROW_INLINE float mu_bits_float(uint32_t bits)
{
	float x;
	memcpy(&x, &bits, sizeof x);
	return x;
}

/* Round to nearest even by adding half a unit, less one when the kept part is even; a NaN is made quiet instead, lest
 * the carry turn it into an infinity. */
MU_NARROW_INLINE uint16_t mu_bf16_bits(float x)
{
	const uint32_t bits = mu_float_bits(x);
	const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
	const uint32_t quiet = (bits >> 16 & 0x8000u) | 0x7fc0u;
	return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

MU_NARROW_INLINE float mu_bf16_float(uint16_t upper)
{
	return mu_bits_float((uint32_t)upper << 16);
}

/* Exponents of the two types are 112 apart. Below 2^-14 the float adder rounds: next to 0.5 its unit is 2^-24, that of fp16's
 * subnormal numbers. */
MU_NARROW_INLINE uint16_t mu_f16_bits(float x)
{
	const uint32_t bits = mu_float_bits(x), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
	const uint32_t normal = (size - (112u << 23) + 0xfffu + (size >> 13 & 1)) >> 13;
	const uint32_t small = mu_float_bits(mu_bits_float(size) + 0.5f) - 0x3f000000u;
	uint32_t half = size < 0x38800000u ? small : normal;
	half = size >= 0x477ff000u ? 0x7c00u : half;
	half = size > 0x7f800000u ? 0x7e00u : half;
	return (uint16_t)(sign | half);
}

MU_NARROW_INLINE float mu_f16_float(uint16_t half)
{
	const uint32_t size = ((uint32_t)half & 0x7fffu) << 13, sign = ((uint32_t)half & 0x8000u) << 16;
	const uint32_t finite = mu_float_bits(mu_bits_float(size) * 0x1p112f);
	return mu_bits_float(sign | finite | (size >= 0x0f800000u ? 0x7f800000u : 0));
}

#endif
