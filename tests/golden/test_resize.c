/* Resizing is Pillow's, bit for bit: hundreds of sizes against resize.txt (make_resize.py). SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "data/resize.h"

/* The formula of make_resize.py. */
static void fill_plane(uint8_t *plane, unsigned seed, size_t height, size_t width)
{
	for (uint64_t p = 0; p < height * width; p++) {
		uint32_t v = (uint32_t)((seed % 4 ? p : p / 37) * 2654435761u + seed * 40503u);
		v ^= v >> 15;
		v *= 2246822519u;
		plane[p] = (uint8_t)(v >> 24);
	}
}

/* Lays out in memory of exactly the planned size, so that the sanitizer sees every step too far. */
static uint32_t resized_crc(mu_image_shape from, mu_image_shape to, mu_resize_wish wish, unsigned seed)
{
	mu_arena arena;
	mu_arena_measure(&arena, "test");
	mu_resize_take(&arena, from, to, wish);
	size_t planned = arena.high, n = mu_image_bytes(to);
	void *block = aligned_alloc(MU_ARENA_ALIGN, planned + MU_ARENA_ALIGN);
	mu_arena_reserve(&arena, "test", block, planned);
	mu_resize resize = mu_resize_take(&arena, from, to, wish);
	assert_int_equal(mu_arena_check(&arena, NULL), MURAL_OK);
	assert_int_equal(arena.high, planned);
	mu_resize_prepare(&resize);
	uint8_t *source = malloc(mu_image_bytes(from)), *target = malloc(n);
	uint8_t *scratch = malloc(mu_resize_scratch_bytes(&resize));
	assert_true(source && target && scratch);
	for (size_t c = 0; c < from.channels; c++)
		fill_plane(source + c * from.height * from.width, seed + (unsigned)c, from.height, from.width);
	memset(target, 0xa5, n);
	mu_resize_run(&resize, source, target, scratch);
	uint32_t crc = (uint32_t)crc32(0, target, (uInt)n);
	/* One grey channel fills three alike. */
	if (from.channels == 1) {
		mu_image_shape three = {3, to.height, to.width};
		resize.to = three;
		uint8_t *colours = malloc(3 * n);
		assert_non_null(colours);
		mu_resize_run(&resize, source, colours, scratch);
		for (size_t c = 0; c < 3; c++)
			assert_memory_equal(colours + c * n, target, n);
		free(colours);
	}
	free(source);
	free(target);
	free(scratch);
	free(block);
	return crc;
}

static void equals_pillow(void **state)
{
	(void)state;
	FILE *in = fopen(MU_TEST_SOURCE_DIR "/golden/resize.txt", "r");
	assert_non_null(in);
	char word[8];
	unsigned seed, cases = 0, cuts = 0, cubic = 0;
	size_t height, width;
	while (fscanf(in, "%7s %u %zu %zu", word, &seed, &height, &width) == 4) {
		bool each = strcmp(word, "each") == 0 || strcmp(word, "cubic") == 0;
		mu_resize_wish wish = {each ? MURAL_RESIZE_SQUASH : MURAL_RESIZE_BILINEAR,
		                       strncmp(word, "cubic", 5) == 0 ? MURAL_FILTER_BICUBIC : MURAL_FILTER_BILINEAR,
		                       0};
		mu_image_shape from = {each ? 1 : 3, height, width}, to = {each ? 1 : 3, 0, 0};
		uint32_t crc;
		assert_true(each || fscanf(in, "%zu", &wish.short_side) == 1);
		assert_int_equal(fscanf(in, "%zu %zu %u", &to.height, &to.width, &crc), 3);
		uint32_t got = resized_crc(from, to, wish, seed);
		if (got != crc)
			print_error("%s %u: %zu x %zu to %zu x %zu\n", word, seed, height, width, to.height, to.width);
		assert_int_equal(got, crc);
		cases += each;
		cuts += !each;
		cubic += wish.filter == MURAL_FILTER_BICUBIC;
	}
	assert_int_equal(cases, 710);
	assert_int_equal(cuts, 73);
	assert_int_equal(cubic, 220);
	fclose(in);
}

/* Without a side of its own the short side just fits. */
static void fits_the_short_side(void **state)
{
	(void)state;
	mu_image_shape wide = {3, 40, 90}, square = {3, 24, 24};
	mu_resize_wish fits = {.how = MURAL_RESIZE_BILINEAR}, same = {.how = MURAL_RESIZE_BILINEAR, .short_side = 24};
	assert_int_equal(resized_crc(wide, square, fits, 5), resized_crc(wide, square, same, 5));
	mu_arena arena;
	mu_arena_measure(&arena, "test");
	mu_resize r = mu_resize_take(&arena, wide, (mu_image_shape){3, 20, 60}, fits);
	assert_int_equal(r.columns.side.whole, 60);
	assert_int_equal(r.rows.side.whole, 26); /* 60 * 40 / 90, rounded down */
	assert_int_equal(r.rows.side.first, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(equals_pillow),
	        cmocka_unit_test(fits_the_short_side),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
