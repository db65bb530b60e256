/* Makes an image of one shape into an image of another without resampling.
 *
 * Larger images are cut around their centre, smaller ones padded with zeros around it, each side by itself; an odd
 * difference leaves the extra row or column below or to the right. One channel becomes any number by repetition.
 * SPDX-License-Identifier: MIT */
#ifndef MU_DATA_FIT_H
#define MU_DATA_FIT_H

#include <stdint.h>

#include "base/fail.h"

typedef struct mu_image_shape {
	size_t channels, height, width;
} mu_image_shape;

static inline size_t mu_image_bytes(mu_image_shape shape)
{
	return shape.channels * shape.height * shape.width;
}

static inline bool mu_image_same(mu_image_shape a, mu_image_shape b)
{
	return a.channels == b.channels && a.height == b.height && a.width == b.width;
}

/* MURAL_DATA when `from` has neither one channel nor as many as `to`. */
mural_status mu_fit_check(mu_image_shape from, mu_image_shape to, mural_error *err);

/* source: [from.channels, from.height, from.width]; target: [to.channels, to.height, to.width], every byte written. They
 * may not overlap. */
void mu_fit(mu_image_shape from, const uint8_t *source, mu_image_shape to, uint8_t *target);

#endif
