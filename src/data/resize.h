/* Bilinear and bicubic resizing exactly as Pillow does it for 8-bit images, bit for bit; so as torchvision's Resize does on PIL
 * images, with CenterCrop behind it.
 *
 * Each side is resampled by itself, rows first: an output pixel is a weighted mean of the inputs under a triangle, or under
 * Keys' cubic with a = -0.5 (1981), which is as wide as output pixels (at least input pixels: so shrinking is antialiased). Weights are computed in double, normalised
 * and rounded to 22-bit fixed point; sums are exact integers, rounded to 8 bits after each direction. A side that keeps
 * its length is left alone.
 *
 * Only a window of the resized image is computed: the centre cut costs nothing. Everything that depends on the sizes is
 * prepared once and then only read, from any number of threads; each brings its own scratch memory.
 * Source: the behaviour of Pillow's Image.resize(..., BILINEAR or BICUBIC), tests/golden/make_resize.py. From version 13 on Pillow
 * takes columns first where that is cheaper, which moves single bytes by one; not where the height grows, as in 32 -> 224.
 * SPDX-License-Identifier: MIT */
#ifndef MU_DATA_RESIZE_H
#define MU_DATA_RESIZE_H

#include <stdint.h>

#include "base/arena.h"
#include "data/fit.h"
#include "mural/data.h"

/* One side: `from` pixels become `whole`, of which [first, first + count) are wanted. */
typedef struct mu_resize_side {
	size_t from, whole, first, count;
} mu_resize_side;

/* What is asked for. how: not MURAL_RESIZE_NONE. short_side: before the cut, at least as large as the target needs, or 0:
 * exactly that. */
typedef struct mu_resize_wish {
	mural_resize how;
	mural_filter filter;
	size_t short_side;
} mu_resize_wish;

/* Weights of a side, one row per wanted pixel. */
typedef struct mu_resize_weights {
	mu_resize_side side;
	mural_filter filter;
	size_t most; /* weights per pixel, at most */
	uint32_t *begin, *n; /* [count] first input pixel and number of them */
	int32_t *weight; /* [count, most], of 2^22; NULL when the side keeps its length */
} mu_resize_weights;

typedef struct mu_resize {
	size_t channels; /* of the source; 1 is repeated to any number */
	mu_image_shape to;
	mu_resize_weights rows, columns; /* vertical, horizontal */
	size_t first_row, n_rows; /* of the source, which the vertical pass reads */
} mu_resize;

/* MURAL_USAGE for a way of resizing that does not exist, or a short side from which `to` cannot be cut. */
mural_status mu_resize_check(const mural_data_config *config, size_t height, size_t width, mural_error *err);

/* By which whole factor both sides grow, when nothing else happens to an image: 1 .. MU_ENLARGE_MOST; 0 when it is not so. */
size_t mu_resize_factor(const mural_data_config *config, mu_image_shape from, mu_image_shape to);

/* Lays out the weights; mu_resize_prepare then fills them. On a measuring arena: only the plan. Sides are 1 to
 * MU_MAX_SIDE. */
mu_resize mu_resize_take(mu_arena *arena, mu_image_shape from, mu_image_shape to, mu_resize_wish wish);
void mu_resize_prepare(mu_resize *resize);

/* Bytes of scratch memory for one image. */
size_t mu_resize_scratch_bytes(const mu_resize *resize);

/* source: [channels, from height, from width] planes; target: [to], every byte written. They may not overlap. */
void mu_resize_run(const mu_resize *resize, const uint8_t *source, uint8_t *target, uint8_t *scratch);

#endif
