/* Numbers of any floating-point type as fp32. SPDX-License-Identifier: MIT */
#include "weights/convert.h"

#include <math.h>
#include <string.h>

static float from_bits(uint32_t bits)
{
	float value;
	memcpy(&value, &bits, sizeof value);
	return value;
}

/* IEEE 754 binary16: 1 sign, 5 exponent and 10 fraction bits. */
static float from_half(uint16_t half)
{
	uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31, fraction = half & 1023;
	if (exponent == 0) {
		float small = ldexpf((float)fraction, -24);
		return sign ? -small : small;
	}
	return from_bits(sign | (exponent == 31 ? 255 : exponent + 112) << 23 | fraction << 13);
}

void mu_to_floats(mu_dtype type, const void *from, size_t n, float *to)
{
	const char *at = from;
	for (size_t i = 0; i < n; i++) {
		uint16_t half;
		double wide;
		switch (type) {
		case MU_F16:
			memcpy(&half, at + 2 * i, 2);
			to[i] = from_half(half);
			break;
		case MU_BF16:
			memcpy(&half, at + 2 * i, 2);
			to[i] = from_bits((uint32_t)half << 16);
			break;
		case MU_F64:
			memcpy(&wide, at + 8 * i, 8);
			to[i] = (float)wide;
			break;
		default: memcpy(&to[i], at + 4 * i, 4);
		}
	}
}
