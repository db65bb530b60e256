/* Made-up images: the same everywhere, learnable, test apart from training. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "data/dataset.h"
#include "support/data_files.h"

enum { SIDE = 16, PIXELS = SIDE * SIDE };

static mural_data *open_set(mural_split split, uint64_t images, size_t channels, uint32_t seed)
{
	mural_data_config config = test_data_config("synthetic");
	config.synthetic_images = images;
	mural_data *data = NULL;
	assert_int_equal(mural_data_open(&data, &config, split, seed, channels, SIDE, SIDE, 10, NULL), MURAL_OK);
	return data;
}

static int32_t read_image(const mural_data *data, uint64_t index, uint8_t *pixels)
{
	int32_t label = -1;
	assert_int_equal(mu_data_read(data, index, pixels, &label, NULL), MURAL_OK);
	return label;
}

static void facts(void **state)
{
	(void)state;
	mural_data *train = open_set(MURAL_SPLIT_TRAIN, 101, 3, 0), *test = open_set(MURAL_SPLIT_TEST, 101, 3, 0);
	const mural_data_facts *f = mural_data_get_facts(train);
	assert_string_equal(f->name, "synthetic");
	assert_string_equal(f->path, "");
	assert_int_equal(f->images, 101);
	assert_int_equal(f->channels, 3);
	assert_int_equal(f->height, SIDE);
	assert_int_equal(f->classes, 10);
	assert_int_equal(mural_data_get_facts(test)->images, 26);
	assert_float_equal(train->mean[2], 0.5, 0);
	assert_float_equal(train->std[2], 0.5, 0);
	mural_data_free(train);
	mural_data_free(test);
}

/* FNV-1a over twenty images: integers only, so the same on every machine for ever. Computed by
 * tests/golden/data_draws.py. */
static void golden(void **state)
{
	(void)state;
	mural_data *data = open_set(MURAL_SPLIT_TRAIN, 20, 3, 42);
	uint8_t pixels[3 * PIXELS];
	uint64_t hash = 14695981039346656037u;
	for (uint64_t i = 0; i < 20; i++) {
		assert_int_equal(read_image(data, i, pixels), i % 10);
		for (size_t p = 0; p < sizeof pixels; p++)
			hash = (hash ^ pixels[p]) * 1099511628211u;
	}
	assert_int_equal(hash, 0x6d087d5ba89a2003u);
	mural_data_free(data);
}

static void seeds_and_splits_differ(void **state)
{
	(void)state;
	mural_data *a = open_set(MURAL_SPLIT_TRAIN, 400, 1, 1), *b = open_set(MURAL_SPLIT_TRAIN, 400, 1, 2);
	mural_data *test = open_set(MURAL_SPLIT_TEST, 400, 1, 1);
	uint8_t first[PIXELS], second[PIXELS];
	read_image(a, 0, first);
	read_image(b, 0, second);
	assert_memory_not_equal(first, second, PIXELS);
	for (uint64_t t = 0; t < 100; t++) {
		read_image(test, t, first);
		for (uint64_t i = 0; i < 400; i++) {
			read_image(a, i, second);
			assert_memory_not_equal(first, second, PIXELS);
		}
	}
	mural_data_free(a);
	mural_data_free(b);
	mural_data_free(test);
}

/* The mean of each class's training images, as a classifier by distance, beats chance (0.1) on the test images by far;
 * it cannot know of moves and contrasts, so it is not perfect either. */
static void learnable(void **state)
{
	(void)state;
	mural_data *train = open_set(MURAL_SPLIT_TRAIN, 2000, 1, 3), *test = open_set(MURAL_SPLIT_TEST, 2000, 1, 3);
	static double mean[10][PIXELS];
	uint8_t pixels[PIXELS];
	for (uint64_t i = 0; i < 2000; i++) {
		int32_t label = read_image(train, i, pixels);
		for (int p = 0; p < PIXELS; p++)
			mean[label][p] += pixels[p] / 200.0;
	}
	unsigned right = 0;
	for (uint64_t i = 0; i < 500; i++) {
		int32_t label = read_image(test, i, pixels), best = -1;
		double least = 1e30;
		for (int c = 0; c < 10; c++) {
			double distance = 0;
			for (int p = 0; p < PIXELS; p++)
				distance += (pixels[p] - mean[c][p]) * (pixels[p] - mean[c][p]);
			if (distance < least) {
				least = distance;
				best = c;
			}
		}
		right += best == label;
	}
	print_message("nearest class mean: %u of 500\n", right);
	assert_in_range(right, 250, 495);
	mural_data_free(train);
	mural_data_free(test);
}

static void fraction_is_a_prefix(void **state)
{
	(void)state;
	mural_data_config config = test_data_config("synthetic");
	mural_data *half, *most, *test, *whole = open_set(MURAL_SPLIT_TRAIN, 100, 1, 7);
	config.fraction = 0.501;
	assert_int_equal(mural_data_open(&half, &config, MURAL_SPLIT_TRAIN, 7, 1, SIDE, SIDE, 10, NULL), MURAL_OK);
	assert_int_equal(mural_data_open(&test, &config, MURAL_SPLIT_TEST, 7, 1, SIDE, SIDE, 10, NULL), MURAL_OK);
	config.fraction = 0.9;
	assert_int_equal(mural_data_open(&most, &config, MURAL_SPLIT_TRAIN, 7, 1, SIDE, SIDE, 10, NULL), MURAL_OK);
	assert_int_equal(mural_data_get_facts(half)->images, 51);
	assert_int_equal(mural_data_get_facts(most)->images, 90);
	assert_int_equal(mural_data_get_facts(test)->images, 25);
	uint8_t a[PIXELS], b[PIXELS];
	unsigned in_order = 0;
	for (uint64_t i = 0; i < 51; i++) {
		assert_int_equal(read_image(half, i, a), read_image(most, i, b));
		assert_memory_equal(a, b, PIXELS);
		assert_true(half->selection[i] < 100);
		read_image(whole, half->selection[i], b);
		assert_memory_equal(a, b, PIXELS);
		in_order += half->selection[i] == i;
	}
	assert_true(in_order < 5);
	mural_data_free(whole);
	mural_data_free(half);
	mural_data_free(most);
	mural_data_free(test);
}

static void refuses(void **state)
{
	(void)state;
	mural_data_config config = test_data_config("synthetic");
	mural_data *data;
	mural_error err = {0};
	config.synthetic_images = 0;
	assert_int_equal(mural_data_open(&data, &config, MURAL_SPLIT_TRAIN, 0, 1, 8, 8, 10, &err), MURAL_USAGE);
	assert_string_equal(err.where, "data.synthetic_images");
	assert_null(data);
	config.synthetic_images = 10;
	assert_int_equal(mural_data_open(&data, &config, MURAL_SPLIT_TRAIN, 0, 0, 8, 8, 10, NULL), MURAL_USAGE);
	assert_int_equal(mural_data_open(&data, &config, MURAL_SPLIT_TRAIN, 0, 1, 8, 40000, 10, NULL), MURAL_USAGE);
	assert_int_equal(mural_data_open(&data, &config, MURAL_SPLIT_TRAIN, 0, 17, 8, 8, 10, NULL), MURAL_USAGE);
	static const double fractions[] = {0, -1, 1.5, 0.0 / 0.0};
	for (int i = 0; i < 4; i++) {
		config.fraction = fractions[i];
		err = (mural_error){0};
		assert_int_equal(mural_data_open(&data, &config, MURAL_SPLIT_TRAIN, 0, 1, 8, 8, 10, &err), MURAL_USAGE);
		assert_string_equal(err.where, "data.fraction");
	}
	config.fraction = 1;
	config.normalise_given = true;
	assert_int_equal(mural_data_open(&data, &config, MURAL_SPLIT_TRAIN, 0, 1, 8, 8, 10, &err), MURAL_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(facts),
	        cmocka_unit_test(golden),
	        cmocka_unit_test(seeds_and_splits_differ),
	        cmocka_unit_test(learnable),
	        cmocka_unit_test(fraction_is_a_prefix),
	        cmocka_unit_test(refuses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
