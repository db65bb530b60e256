/* One element of an array of any floating type, as a double: the only place of the reference that knows types.
 *
 * Loading is exact. Storing rounds once, to nearest even, straight from double (through float would round twice).
 * Narrow types are packed from the bits of the double: with f fraction bits, a value in [2^e, 2^(e+1)) has units of
 * 2^(e - f), but never finer than those of the smallest normal number; rounding up carries into the exponent by itself.
 * SPDX-License-Identifier: MIT */
#ifndef MU_KERNELS_REFERENCE_ELEMENT_H
#define MU_KERNELS_REFERENCE_ELEMENT_H

#include <math.h>
#include <string.h>

#include "base/types.h"

#define MU_BF16_EXPONENT_BITS 8
#define MU_BF16_FRACTION_BITS 7
#define MU_F16_EXPONENT_BITS 5
#define MU_F16_FRACTION_BITS 10

/* The nearest 16-bit number with these fields. A NaN stays one, made quiet, its sign kept. */
static inline uint16_t mu_element_pack16(double value, int exponent_bits, int fraction_bits)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof bits);
	const uint32_t sign = (uint32_t)(bits >> 63) << 15;
	const uint32_t infinity = ((1u << exponent_bits) - 1) << fraction_bits;
	const int bias = (1 << (exponent_bits - 1)) - 1;
	const int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
	if (isnan(value))
		return (uint16_t)(sign | infinity | 1u << (fraction_bits - 1));
	if (exponent > bias)
		return (uint16_t)(sign | infinity);

	/* Subnormal doubles (exponent -1023) get a leading bit that is not theirs; they end as 0 anyhow. */
	const uint64_t significand = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
	const int below_normal = exponent < 1 - bias ? 1 - bias - exponent : 0;
	const int shift = 52 - fraction_bits + below_normal;
	if (shift > 53) /* less than half of the smallest subnormal */
		return (uint16_t)sign;
	const uint64_t rest = significand & ((UINT64_C(1) << shift) - 1), half = UINT64_C(1) << (shift - 1);
	uint32_t units = (uint32_t)(significand >> shift);
	if (rest > half || (rest == half && (units & 1)))
		units++;
	/* units of a normal number holds the leading 1, which adds the last 1 to its exponent. */
	const uint32_t steps = below_normal ? 0 : (uint32_t)(exponent + bias - 1);
	return (uint16_t)(sign | ((steps << fraction_bits) + units));
}

static inline double mu_element_unpack16(uint16_t bits, int exponent_bits, int fraction_bits)
{
	const int bias = (1 << (exponent_bits - 1)) - 1;
	const uint64_t field = (uint64_t)bits >> fraction_bits & ((1u << exponent_bits) - 1);
	const uint64_t fraction = bits & ((1u << fraction_bits) - 1);
	const uint64_t sign = (uint64_t)(bits >> 15) << 63;
	if (field == 0) {
		const double magnitude = ldexp((double)fraction, 1 - bias - fraction_bits);
		return sign ? -magnitude : magnitude;
	}
	/* The same number with a wider exponent and fraction; all ones (infinity, NaN) stay all ones. */
	const uint64_t exponent = field == (1u << exponent_bits) - 1 ? 0x7ff : field + 1023 - (uint64_t)bias;
	const uint64_t wide = sign | exponent << 52 | fraction << (52 - fraction_bits);
	double value;
	memcpy(&value, &wide, sizeof value);
	return value;
}

/* Element i of p; NaN for types that are not floating. */
static inline double mu_element_load(mu_dtype type, const void *p, size_t i)
{
	switch (type) {
	case MU_F32: return ((const float *)p)[i];
	case MU_F64: return ((const double *)p)[i];
	case MU_BF16:
		return mu_element_unpack16(((const uint16_t *)p)[i], MU_BF16_EXPONENT_BITS, MU_BF16_FRACTION_BITS);
	case MU_F16: return mu_element_unpack16(((const uint16_t *)p)[i], MU_F16_EXPONENT_BITS, MU_F16_FRACTION_BITS);
	default: return (double)NAN;
	}
}

/* Does nothing for types that are not floating. */
static inline void mu_element_store(mu_dtype type, void *p, size_t i, double value)
{
	switch (type) {
	case MU_F32: ((float *)p)[i] = (float)value; break;
	case MU_F64: ((double *)p)[i] = value; break;
	case MU_BF16:
		((uint16_t *)p)[i] = mu_element_pack16(value, MU_BF16_EXPONENT_BITS, MU_BF16_FRACTION_BITS);
		break;
	case MU_F16: ((uint16_t *)p)[i] = mu_element_pack16(value, MU_F16_EXPONENT_BITS, MU_F16_FRACTION_BITS); break;
	default: break;
	}
}

static inline void mu_element_add(mu_dtype type, void *p, size_t i, double value)
{
	mu_element_store(type, p, i, mu_element_load(type, p, i) + value);
}

/* Type of statistics (mean, rstd, log-sum-exp, keep factors, moments) that go with arrays of `type`. */
static inline mu_dtype mu_stat_type(mu_dtype type)
{
	return type == MU_F64 ? MU_F64 : MU_F32;
}

#endif
