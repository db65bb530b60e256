/* Made-up images that a model can learn, the same for a seed on every machine: integers only, no files.
 *
 * Each class has a coarse pattern of 8 x 8 random greys per channel, stretched over the image. An image is its class's
 * pattern, moved by up to an eighth of each side, at a contrast and brightness of its own, under noise. So a class is a
 * shape, not a colour or a place, and an accuracy far above chance says that training works. Classes take turns.
 * Training and test images share the patterns and nothing else: their streams differ.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "base/philox.h"
#include "data/dataset.h"

#define GRID 8 /* greys per side of a pattern */
#define ONE 256 /* fixed point: one grid cell, full contrast */
#define NOISE 96 /* largest amplitude of the noise, of 255 */

/* Layers of the purpose SYNTHETIC. */
enum { LAYER_PATTERN, LAYER_IMAGE, LAYER_NOISE };

typedef struct synthetic_data {
	mural_data base;
	uint32_t seed;
	uint64_t stream; /* of image 0; images count on from here */
} synthetic_data;

/* What one image draws for itself. */
typedef struct look {
	int dx, dy; /* in cells / ONE */
	int contrast; /* of ONE */
	int brightness; /* added to every pixel */
	int noise; /* amplitude */
} look;

static mu_random_key layer_key(const synthetic_data *data, uint32_t layer)
{
	return mu_random_key_make(data->seed, MU_PURPOSE_SYNTHETIC, layer);
}

static int draw_between(mu_random_key key, uint64_t stream, uint64_t element, int low, int high)
{
	return low + (int)mu_random_below(key, stream, element, (uint32_t)(high - low + 1));
}

static look draw_look(const synthetic_data *data, uint64_t stream)
{
	mu_random_key key = layer_key(data, LAYER_IMAGE);
	return (look){
	        .dx = draw_between(key, stream, 0, -ONE, ONE),
	        .dy = draw_between(key, stream, 1, -ONE, ONE),
	        .contrast = draw_between(key, stream, 2, ONE / 2, ONE),
	        .brightness = draw_between(key, stream, 3, -32, 32),
	        .noise = draw_between(key, stream, 4, NOISE / 4, NOISE),
	};
}

/* greys[GRID][GRID] of one class and channel, each of 0..255. */
static void draw_pattern(const synthetic_data *data, uint64_t class, size_t channel, uint8_t greys[GRID][GRID])
{
	mu_random_key key = layer_key(data, LAYER_PATTERN);
	for (uint64_t i = 0; i < GRID * GRID; i++)
		greys[i / GRID][i % GRID] = (uint8_t)(mu_random_u32(key, class, channel * GRID * GRID + i) >> 24);
}

/* The pattern at (y, x) in cells / ONE, bilinear between cells; the pattern repeats beyond its edges. */
static int pattern_at(uint8_t greys[GRID][GRID], int y, int x)
{
	const int around = GRID * ONE;
	y = ((y % around) + around) % around;
	x = ((x % around) + around) % around;
	int row = y / ONE, column = x / ONE, below = (row + 1) % GRID, right = (column + 1) % GRID;
	int v = y % ONE, u = x % ONE;
	int top = greys[row][column] * (ONE - u) + greys[row][right] * u;
	int bottom = greys[below][column] * (ONE - u) + greys[below][right] * u;
	return (top * (ONE - v) + bottom * v) / (ONE * ONE);
}

static uint8_t clamped(int value)
{
	return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static int32_t synthetic_label(const mural_data *data, uint64_t index)
{
	return (int32_t)(index % data->facts.classes);
}

static mural_status synthetic_read(const mural_data *data, uint64_t index, uint8_t *pixels, int32_t *label,
                                   mural_error *err)
{
	const synthetic_data *synthetic = (const synthetic_data *)data;
	uint64_t class = (uint64_t)synthetic_label(data, index), stream = synthetic->stream + index, place = 0;
	size_t height = data->facts.height, width = data->facts.width;
	mu_random_key key = layer_key(synthetic, LAYER_NOISE);
	mu_philox_block noise = {{0}};
	look l = draw_look(synthetic, stream);
	uint8_t greys[GRID][GRID];
	(void)err;
	for (size_t c = 0; c < data->facts.channels; c++) {
		draw_pattern(synthetic, class, c, greys);
		for (size_t y = 0; y < height; y++)
			for (size_t x = 0; x < width; x++, place++) {
				if (place % 16 == 0) /* 16 bytes of noise per block */
					noise = mu_philox(key, stream, place / 16);
				int grain = (int)(noise.lane[place % 16 / 4] >> place % 4 * 8 & 255) - 128;
				int grey = pattern_at(greys, (int)(y * GRID * ONE / height) + l.dy,
				                      (int)(x * GRID * ONE / width) + l.dx);
				pixels[place] = clamped(128 + (grey - 128) * l.contrast / ONE + l.brightness +
				                        grain * l.noise / 128);
			}
	}
	*label = (int32_t) class;
	return MURAL_OK;
}

static mural_status check_request(const mu_data_request *r, mural_error *err)
{
	if (r->config->synthetic_images == 0 || r->config->synthetic_images > UINT32_MAX)
		return mu_fail(err, MURAL_USAGE, "data.synthetic_images", "expected 1 to %u images, found %llu",
		               UINT32_MAX, (unsigned long long)r->config->synthetic_images);
	if (!r->channels || !r->height || !r->width || r->height > MU_MAX_SIDE || r->width > MU_MAX_SIDE)
		return mu_fail(
		        err, MURAL_USAGE, NULL,
		        "synthetic images need 1 to %d channels and sides of 1 to %d pixels, found %zu x %zu x %zu",
		        MURAL_MAX_CHANNELS, MU_MAX_SIDE, r->channels, r->height, r->width);
	if (r->classes > INT32_MAX)
		return mu_fail(err, MURAL_USAGE, NULL, "expected at most %d classes, found %zu", INT32_MAX, r->classes);
	return MURAL_OK;
}

static mural_status synthetic_open(mural_data **data, const mu_data_request *request, mural_error *err)
{
	MU_TRY(check_request(request, err));
	synthetic_data *synthetic = calloc(1, sizeof *synthetic);
	if (!synthetic)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for a synthetic data set");
	uint64_t images = request->config->synthetic_images;
	bool train = request->split == MURAL_SPLIT_TRAIN;
	synthetic->seed = request->seed;
	synthetic->stream = (uint64_t)request->split << 32; /* no split is that large */
	synthetic->base.facts = (mural_data_facts){
	        .images = train ? images : (images + 3) / 4,
	        .channels = request->channels,
	        .height = request->height,
	        .width = request->width,
	        .classes = request->classes ? request->classes : 10,
	};
	for (int c = 0; c < MURAL_MAX_CHANNELS; c++)
		synthetic->base.mean[c] = synthetic->base.std[c] = 0.5f;
	*data = &synthetic->base;
	return MURAL_OK;
}

static void synthetic_free(mural_data *data)
{
	free(data);
}

const mu_format mu_format_synthetic = {
        .name = "synthetic",
        .open = synthetic_open,
        .read = synthetic_read,
        .label = synthetic_label,
        .free = synthetic_free,
};
