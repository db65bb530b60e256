/* Resizing in two passes of fixed-point sums. SPDX-License-Identifier: MIT */
#include "data/resize.h"

#include <math.h>
#include <string.h>

#include "data/dataset.h"
#include "kernels/ops.h"

#define BITS 22 /* of a weight's fraction: 8 bits of pixel and 2 of headroom are left of 32 */
#define HALF (1 << (BITS - 1))
#define CHUNK 64 /* pixels of a row that are summed together */

mural_status mu_resize_check(const mural_data_config *config, size_t height, size_t width, mural_error *err)
{
	unsigned side = config->resize_side;
	if (config->filter > MURAL_FILTER_BICUBIC)
		return mu_fail(err, MURAL_USAGE, "data.interpolation", "there is no interpolation number %d",
		               (int)config->filter);
	if (config->resize > MURAL_RESIZE_SQUASH)
		return mu_fail(err, MURAL_USAGE, "data.resize", "there is no way of resizing number %d",
		               (int)config->resize);
	if (side == 0)
		return MURAL_OK;
	if (config->resize != MURAL_RESIZE_BILINEAR)
		return mu_fail(err, MURAL_USAGE, "data.resize_side",
		               "a short side before the cut needs data.resize = bilinear; set it, or leave this out");
	if (side < height || side < width || side > MU_MAX_SIDE)
		return mu_fail(err, MURAL_USAGE, "data.resize_side",
		               "expected 0 or a side from which the model's %zu x %zu pixels can be cut, found %u",
		               height, width, side);
	return MURAL_OK;
}

size_t mu_resize_factor(const mural_data_config *config, mu_image_shape from, mu_image_shape to)
{
	size_t factor = to.height / from.height;
	bool whole = from.height * factor == to.height && from.width * factor == to.width;
	bool plain = factor == 1 || (config->resize != MURAL_RESIZE_NONE && config->resize_side == 0 &&
	                             config->filter == MURAL_FILTER_BILINEAR);
	return whole && plain && factor <= MU_ENLARGE_MOST ? factor : 0;
}

/* How many input pixels are one unit of the filter. */
static double filter_scale(const mu_resize_side *side)
{
	double scale = (double)side->from / (double)side->whole;
	return scale < 1 ? 1 : scale;
}

/* Half the filter's width in input pixels. */
static double reach_of(const mu_resize_side *side, mural_filter filter)
{
	return filter_scale(side) * (filter == MURAL_FILTER_BICUBIC ? 2 : 1);
}

static bool keeps_length(const mu_resize_side *side)
{
	return side->from == side->whole;
}

/* Half of an even or odd rest, as Python's round() has it: half goes to the even one. */
static size_t half_of(size_t rest)
{
	size_t half = rest / 2;
	return half + (rest % 2 && half % 2);
}

static mu_resize_side cut(size_t from, size_t whole, size_t count)
{
	return (mu_resize_side){.from = from, .whole = whole, .first = half_of(whole - count), .count = count};
}

/* Sides of the resized image: the one that needs the larger factor decides, the other follows, rounded down. */
static void plan_sides(mu_image_shape from, mu_image_shape to, mu_resize_wish wish, mu_resize_side *height,
                       mu_resize_side *width)
{
	size_t h = to.height, w = to.width;
	if (wish.how == MURAL_RESIZE_BILINEAR) {
		if (wish.short_side)
			h = w = wish.short_side;
		bool by_width = from.width * h <= from.height * w;
		if (by_width)
			h = w * from.height / from.width;
		else
			w = h * from.width / from.height;
	}
	*height = cut(from.height, h, to.height);
	*width = cut(from.width, w, to.width);
}

static mu_resize_weights take_weights(mu_arena *arena, mu_resize_side side, mural_filter filter)
{
	mu_resize_weights weights = {.side = side, .filter = filter};
	if (keeps_length(&side))
		return weights;
	weights.most = 2 * (size_t)ceil(reach_of(&side, filter)) + 1;
	weights.begin = mu_arena_take(arena, side.count * sizeof *weights.begin);
	weights.n = mu_arena_take(arena, side.count * sizeof *weights.n);
	weights.weight = mu_arena_take(arena, side.count * weights.most * sizeof *weights.weight);
	return weights;
}

/* First input pixel under the filter around the middle of output pixel `i`, and the one behind the last. */
static void find_inputs(const mu_resize_side *side, mural_filter filter, size_t i, size_t *begin, size_t *end)
{
	double scale = (double)side->from / (double)side->whole, reach = reach_of(side, filter);
	double middle = ((double)i + 0.5) * scale;
	long first = (long)(middle - reach + 0.5), behind = (long)(middle + reach + 0.5);
	*begin = first < 0 ? 0 : (size_t)first;
	*end = (size_t)behind > side->from ? side->from : (size_t)behind;
}

mu_resize mu_resize_take(mu_arena *arena, mu_image_shape from, mu_image_shape to, mu_resize_wish wish)
{
	mu_resize_side height, width;
	size_t end;
	plan_sides(from, to, wish, &height, &width);
	mu_resize resize = {
	        .channels = from.channels,
	        .to = to,
	        .rows = take_weights(arena, height, wish.filter),
	        .columns = take_weights(arena, width, wish.filter),
	        .first_row = height.first,
	        .n_rows = height.count,
	};
	if (!keeps_length(&height)) {
		find_inputs(&height, wish.filter, height.first, &resize.first_row, &end);
		find_inputs(&height, wish.filter, height.first + height.count - 1, &(size_t){0}, &end);
		resize.n_rows = end - resize.first_row;
	}
	return resize;
}

static double value_at(mural_filter filter, double x)
{
	const double a = -0.5;
	x = fabs(x);
	if (filter == MURAL_FILTER_BILINEAR)
		return x < 1 ? 1 - x : 0;
	if (x < 1)
		return ((a + 2) * x - (a + 3)) * x * x + 1;
	return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

static void prepare(mu_resize_weights *weights)
{
	const mu_resize_side *side = &weights->side;
	double scale = (double)side->from / (double)side->whole, narrow = 1 / filter_scale(side);
	for (size_t i = 0; weights->weight && i < side->count; i++) {
		size_t begin, end;
		double middle = ((double)(side->first + i) + 0.5) * scale, sum = 0;
		find_inputs(side, weights->filter, side->first + i, &begin, &end);
		for (size_t x = begin; x < end; x++)
			sum += value_at(weights->filter, ((double)x - middle + 0.5) * narrow);
		for (size_t x = begin; x < end; x++) {
			double weight = value_at(weights->filter, ((double)x - middle + 0.5) * narrow);
			weight /= sum != 0 ? sum : 1;
			weights->weight[i * weights->most + x - begin] =
			        (int32_t)((weight < 0 ? -0.5 : 0.5) + weight * (1 << BITS));
		}
		weights->begin[i] = (uint32_t)begin;
		weights->n[i] = (uint32_t)(end - begin);
	}
}

void mu_resize_prepare(mu_resize *resize)
{
	prepare(&resize->rows);
	prepare(&resize->columns);
}

size_t mu_resize_scratch_bytes(const mu_resize *resize)
{
	return resize->n_rows * resize->to.width;
}

/* A sum of weighted bytes, rounded: weights may be negative or add up to a little more than 1. */
static uint8_t rounded(int32_t sum)
{
	int32_t value = sum >> BITS;
	return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static void resample_columns(const mu_resize_weights *w, const uint8_t *row, uint8_t *to)
{
	for (size_t i = 0; i < w->side.count; i++) {
		const int32_t *weight = w->weight + i * w->most;
		const uint8_t *pixels = row + w->begin[i];
		int32_t sum = HALF;
		for (uint32_t k = 0; k < w->n[i]; k++)
			sum += weight[k] * pixels[k];
		to[i] = rounded(sum);
	}
}

/* Sums lie side by side, so that the compiler adds many at once. */
static void resample_row(const int32_t *weight, uint32_t n, const uint8_t *pixels, size_t width, uint8_t *to)
{
	for (size_t x = 0; x < width; x += CHUNK) {
		int32_t sums[CHUNK];
		size_t now = width - x < CHUNK ? width - x : CHUNK;
		for (size_t i = 0; i < CHUNK; i++)
			sums[i] = HALF;
		for (uint32_t k = 0; k < n; k++)
			for (size_t i = 0; i < now; i++)
				sums[i] += weight[k] * pixels[k * width + x + i];
		for (size_t i = 0; i < now; i++)
			to[x + i] = rounded(sums[i]);
	}
}

static void resample_rows(const mu_resize_weights *w, size_t first_row, const uint8_t *rows, size_t width, uint8_t *to)
{
	for (size_t i = 0; i < w->side.count; i++)
		resample_row(w->weight + i * w->most, w->n[i], rows + (w->begin[i] - first_row) * width, width,
		             to + i * width);
}

static void resize_plane(const mu_resize *resize, const uint8_t *source, uint8_t *target, uint8_t *scratch)
{
	const mu_resize_weights *rows = &resize->rows, *columns = &resize->columns;
	size_t width = resize->to.width;
	uint8_t *middle = rows->weight ? scratch : target;
	for (size_t y = 0; y < resize->n_rows; y++) {
		const uint8_t *row = source + (resize->first_row + y) * columns->side.from;
		if (columns->weight)
			resample_columns(columns, row, middle + y * width);
		else
			memcpy(middle + y * width, row + columns->side.first, width);
	}
	if (rows->weight)
		resample_rows(rows, resize->first_row, middle, width, target);
}

void mu_resize_run(const mu_resize *resize, const uint8_t *source, uint8_t *target, uint8_t *scratch)
{
	size_t from_plane = resize->rows.side.from * resize->columns.side.from;
	size_t to_plane = resize->to.height * resize->to.width;
	for (size_t c = 0; c < resize->to.channels; c++)
		if (c < resize->channels)
			resize_plane(resize, source + c * from_plane, target + c * to_plane, scratch);
		else
			memcpy(target + c * to_plane, target, to_plane);
}
