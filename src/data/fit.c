/* Centred cutting and padding. SPDX-License-Identifier: MIT */
#include "data/fit.h"

#include <string.h>

/* How one side of the source lies in one side of the target. */
typedef struct span {
	size_t from, to, count;
} span;

static span centred(size_t from, size_t to)
{
	if (from > to)
		return (span){(from - to) / 2, 0, to};
	return (span){0, (to - from) / 2, from};
}

mural_status mu_fit_check(mu_image_shape from, mu_image_shape to, mural_error *err)
{
	if (from.channels != to.channels && from.channels != 1)
		return mu_fail(err, MURAL_DATA, NULL, "the model takes images of %zu channels, the data set has %zu",
		               to.channels, from.channels);
	return MURAL_OK;
}

void mu_fit(mu_image_shape from, const uint8_t *source, mu_image_shape to, uint8_t *target)
{
	span rows = centred(from.height, to.height), columns = centred(from.width, to.width);
	memset(target, 0, mu_image_bytes(to));
	for (size_t c = 0; c < to.channels; c++) {
		const uint8_t *plane = source + (from.channels == 1 ? 0 : c) * from.height * from.width;
		for (size_t y = 0; y < rows.count; y++)
			memcpy(target + (c * to.height + rows.to + y) * to.width + columns.to,
			       plane + (rows.from + y) * from.width + columns.from, columns.count);
	}
}
