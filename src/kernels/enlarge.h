/* Images enlarged by a whole factor, pixel by pixel, exactly as Pillow's bilinear resize of 8-bit images (data/resize.h) has
 * them. Run by every table; valid C, C++ and CUDA C.
 *
 * Output pixel i lies over input position (2i + 1 - f) / 2f, between two neighbours; which share of the second it takes
 * depends on i mod f alone, rounded to 22 bits. It is never halfway between two such roundings (2f / 2^k is odd or 1), so
 * Pillow's weights, computed in double for each i, are these. Beyond the first and the last input pixel there is only that one.
 * SPDX-License-Identifier: MIT */
#ifndef MU_KERNELS_ENLARGE_H
#define MU_KERNELS_ENLARGE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__
#define MU_ENLARGE static __host__ __device__ inline
#else
#define MU_ENLARGE static inline
#endif

#define MU_ENLARGE_BITS 22
#define MU_ENLARGE_MOST 64 /* largest factor: 14 to 896 pixels, and no table of shares is longer */

/* Share of the upper neighbour, of 2^22, for output pixels i with i mod factor == phase. 32 bits hold it all. */
MU_ENLARGE uint32_t mu_enlarge_share(uint32_t phase, uint32_t factor)
{
	const uint32_t whole = 2 * factor, over = (2 * phase + 1 + factor) % whole; /* of an input pixel, times 2f */
	return ((over << MU_ENLARGE_BITS) + factor) / whole;
}

/* Lower neighbour of output pixel `quotient` * factor + `phase`; -1 before the first input pixel. */
MU_ENLARGE ptrdiff_t mu_enlarge_lower(ptrdiff_t quotient, uint32_t phase, uint32_t factor)
{
	return quotient - (2 * phase + 1 < factor);
}

/* lower and upper: two neighbours, or twice the same at a border. */
MU_ENLARGE uint8_t mu_enlarge_mix(uint32_t lower, uint32_t upper, uint32_t share)
{
	const uint32_t one = (uint32_t)1 << MU_ENLARGE_BITS;
	return (uint8_t)((lower * (one - share) + upper * share + one / 2) >> MU_ENLARGE_BITS);
}

/* Pixel (y, x) of a plane of [height, width] pixels enlarged: columns first, each direction rounded to 8 bits. */
MU_ENLARGE uint8_t mu_enlarged_pixel(const uint8_t *plane, uint32_t height, uint32_t width, uint32_t factor, uint32_t y,
                                     uint32_t x)
{
	const uint32_t across = x % factor, down = y % factor;
	const ptrdiff_t left = mu_enlarge_lower(x / factor, across, factor);
	const ptrdiff_t top = mu_enlarge_lower(y / factor, down, factor);
	const size_t x0 = left < 0 ? 0 : (size_t)left,
	             x1 = left + 1 < (ptrdiff_t)width ? (size_t)(left + 1) : width - 1;
	const size_t y0 = top < 0 ? 0 : (size_t)top, y1 = top + 1 < (ptrdiff_t)height ? (size_t)(top + 1) : height - 1;
	const uint8_t *upper = plane + y0 * width, *lower = plane + y1 * width;
	const uint32_t share = mu_enlarge_share(across, factor);
	return mu_enlarge_mix(mu_enlarge_mix(upper[x0], upper[x1], share), mu_enlarge_mix(lower[x0], lower[x1], share),
	                      mu_enlarge_share(down, factor));
}

#endif
