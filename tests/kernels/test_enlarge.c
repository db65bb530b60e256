/* Enlarging on the device is resizing on the host, bit for bit: pixel by pixel against data/resize.h, which is Pillow's, and through
 * patchify of every host table, with cuts and flips behind it. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "data/resize.h"
#include "kernels/ops.h"

/* The host's way; the caller frees. */
static uint8_t *resized(const uint8_t *source, mu_image_shape from, mu_image_shape to)
{
	mu_arena arena;
	const mu_resize_wish wish = {.how = MURAL_RESIZE_BILINEAR};
	mu_arena_measure(&arena, "test");
	mu_resize_take(&arena, from, to, wish);
	size_t planned = arena.high;
	void *block = aligned_alloc(MU_ARENA_ALIGN, mu_arena_padded(planned + 1));
	mu_arena_reserve(&arena, "test", block, planned);
	mu_resize resize = mu_resize_take(&arena, from, to, wish);
	mu_resize_prepare(&resize);
	uint8_t *target = malloc(mu_image_bytes(to)), *scratch = malloc(mu_resize_scratch_bytes(&resize) + 1);
	assert_true(block && target && scratch);
	mu_resize_run(&resize, source, target, scratch);
	free(scratch);
	free(block);
	return target;
}

static uint8_t *noise(size_t bytes, uint64_t stream)
{
	uint8_t *pixels = malloc(bytes);
	mu_random_key key = mu_random_key_make(9, MU_PURPOSE_TEST, 0);
	assert_non_null(pixels);
	for (size_t i = 0; i < bytes; i++) {
		uint32_t draw = mu_random_u32(key, stream, i);
		pixels[i] = (uint8_t)(draw % 5 == 0   ? 255
		                      : draw % 5 == 1 ? 0
		                                      : draw >> 24); /* many of the largest steps */
	}
	return pixels;
}

static void every_factor_and_border(void **state)
{
	(void)state;
	for (uint32_t factor = 1; factor <= MU_ENLARGE_MOST; factor++)
		for (size_t side = 1; side <= (factor < 9 ? 33 : 4); side++) {
			mu_image_shape from = {1, side, side % 3 + 1}, to = {1, side * factor, (side % 3 + 1) * factor};
			uint8_t *source = noise(mu_image_bytes(from), factor * 100 + side),
			        *expected = resized(source, from, to);
			const uint32_t height = (uint32_t)from.height, width = (uint32_t)from.width;
			for (uint32_t y = 0; y < to.height; y++)
				for (uint32_t x = 0; x < to.width; x++)
					if (mu_enlarged_pixel(source, height, width, factor, y, x) !=
					    expected[y * to.width + x])
						fail_msg("factor %u, %u x %u, pixel (%u, %u)", factor, height, width, y,
						         x);
			free(source);
			free(expected);
		}
}

/* patchify of small images is patchify of their enlarged copies. */
static void compare(const mu_ops *ops, mu_image_shape from, size_t factor, size_t patch, size_t channels)
{
	enum { IMAGES = 4 };
	static const mu_image_cut cut_B[IMAGES] = {
	        {0}, {.dx = 3, .dy = -2, .flip = 1}, {.dx = -5, .dy = 1}, {.dx = 400, .dy = 0, .flip = 1}};
	mu_image_shape small = from, large = {from.channels, from.height * factor, from.width * factor};
	size_t elements = IMAGES * channels * large.height * large.width;
	uint8_t *source = noise(IMAGES * mu_image_bytes(small), factor),
	        *enlarged = malloc(IMAGES * mu_image_bytes(large));
	for (size_t b = 0; b < IMAGES; b++) {
		uint8_t *one = resized(source + b * mu_image_bytes(small), small, large);
		memcpy(enlarged + b * mu_image_bytes(large), one, mu_image_bytes(large));
		free(one);
	}
	float *a = malloc(elements * sizeof *a), *b = malloc(elements * sizeof *b);
	memset(a, 0xff, elements * sizeof *a);
	mu_patchify op = {.type = MU_F32,
	                  .images = IMAGES,
	                  .micro = &(const mu_micro){IMAGES - 1, IMAGES},
	                  .channels = channels,
	                  .image_channels = from.channels,
	                  .height = large.height,
	                  .width = large.width,
	                  .patch = patch,
	                  .mean = {0.4f, 0.5f, 0.1f},
	                  .std = {0.2f, 0.3f, 1},
	                  .cut_B = cut_B};
	mu_ops_context *context;
	assert_int_equal(ops->open(NULL, 1, &context, NULL), MURAL_OK);
	op.factor = factor;
	op.pixels = source;
	op.patches = a;
	assert_int_equal(ops->patchify(context, &op, NULL), MURAL_OK);
	op.factor = 0;
	op.pixels = enlarged;
	op.patches = b;
	assert_int_equal(ops->patchify(context, &op, NULL), MURAL_OK);
	assert_memory_equal(a, b, elements * sizeof *a);
	ops->close(context);
	free(source);
	free(enlarged);
	free(a);
	free(b);
}

static void patches_are_those_of_resized_images(void **state)
{
	(void)state;
	const mu_ops *const tables[] = {&mu_ops_reference, &mu_ops_cpu};
	for (size_t t = 0; t < 2; t++) {
		compare(tables[t], (mu_image_shape){3, 32, 32}, 7, 16, 3); /* CIFAR to 224 */
		compare(tables[t], (mu_image_shape){1, 28, 28}, 8, 32, 3); /* MNIST, grey to three */
		compare(tables[t], (mu_image_shape){1, 1, 2}, 6, 3, 1);
		compare(tables[t], (mu_image_shape){2, 5, 3}, 4, 2, 2);
		compare(tables[t], (mu_image_shape){1, 4, 4}, 1, 2, 3);
		compare(tables[t], (mu_image_shape){1, 1, 1}, MU_ENLARGE_MOST, 8, 1);
	}
}

static void only_a_whole_factor_counts(void **state)
{
	(void)state;
	static const struct {
		size_t h, w, to_h, to_w, factor;
	} cases[] = {{32, 32, 224, 224, 7}, {28, 28, 224, 224, 8}, {32, 32, 32, 32, 1}, {30, 30, 224, 224, 0},
	             {32, 64, 224, 224, 0}, {64, 64, 32, 32, 0},   {1, 1, 64, 64, 64},  {1, 1, 65, 65, 0},
	             {10, 20, 20, 40, 2},   {10, 20, 30, 40, 0}};
	mural_data_config config = {.resize = MURAL_RESIZE_BILINEAR};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(mu_resize_factor(&config, (mu_image_shape){1, cases[i].h, cases[i].w},
		                                  (mu_image_shape){3, cases[i].to_h, cases[i].to_w}),
		                 cases[i].factor);
	mu_image_shape from = {1, 8, 8}, to = {1, 16, 16};
	config.resize_side = 20; /* a cut behind it */
	assert_int_equal(mu_resize_factor(&config, from, to), 0);
	config = (mural_data_config){.resize = MURAL_RESIZE_BILINEAR, .filter = MURAL_FILTER_BICUBIC};
	assert_int_equal(mu_resize_factor(&config, from, to), 0);
	config = (mural_data_config){.resize = MURAL_RESIZE_NONE};
	assert_int_equal(mu_resize_factor(&config, from, to), 0);
	assert_int_equal(mu_resize_factor(&config, to, to), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(every_factor_and_border),
	        cmocka_unit_test(patches_are_those_of_resized_images),
	        cmocka_unit_test(only_a_whole_factor_counts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
