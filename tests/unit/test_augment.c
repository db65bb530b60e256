/* Crops and flips are what their counters say. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "data/augment.h"
#include "data/fit.h"

static mural_data_config with(unsigned padding, double flip)
{
	return (mural_data_config){.crop_padding = padding, .flip = flip};
}

/* Part of the reproducibility promise. Computed by tests/golden/data_draws.py. */
static void golden_cuts(void **state)
{
	(void)state;
	static const int expected[][3] = {{1, 3, 0},  {2, -3, 0},  {-1, 4, 1}, {-4, -2, 0},
	                                  {-2, 2, 1}, {-3, -3, 0}, {3, 2, 0},  {-4, -3, 0}};
	mural_data_config config = with(4, 0.5);
	for (uint32_t position = 0; position < 8; position++) {
		mu_image_cut cut = mu_augment_cut(&config, 42, mu_stream(7, position));
		assert_int_equal(cut.dx, expected[position][0]);
		assert_int_equal(cut.dy, expected[position][1]);
		assert_int_equal(cut.flip, expected[position][2]);
	}
}

static void off_is_off(void **state)
{
	(void)state;
	mural_data_config config = with(0, 0);
	for (uint32_t position = 0; position < 1000; position++) {
		mu_image_cut cut = mu_augment_cut(&config, 1, mu_stream(0, position)), none = {0};
		assert_memory_equal(&cut, &none, sizeof cut);
	}
	config = with(0, 1);
	for (uint32_t position = 0; position < 1000; position++)
		assert_int_equal(mu_augment_cut(&config, 1, mu_stream(0, position)).flip, 1);
}

/* Every offset of [-2, 2] in both directions with frequency 1/25 and flips with theirs, within five deviations. */
static void frequencies(void **state)
{
	(void)state;
	enum { DRAWS = 50000 };
	unsigned place[5][5] = {{0}}, flips = 0;
	mural_data_config config = with(2, 0.3);
	for (uint32_t position = 0; position < DRAWS; position++) {
		mu_image_cut cut = mu_augment_cut(&config, 8, mu_stream(3, position));
		assert_in_range(cut.dx + 2, 0, 4);
		assert_in_range(cut.dy + 2, 0, 4);
		place[cut.dy + 2][cut.dx + 2]++;
		flips += cut.flip;
	}
	double slack = 5 * sqrt(DRAWS / 25.0);
	for (int i = 0; i < 25; i++)
		assert_true(fabs(place[i / 5][i % 5] - DRAWS / 25.0) < slack);
	assert_true(fabs(flips - DRAWS * 0.3) < 5 * sqrt(DRAWS * 0.21));
}

static void epochs_and_seeds_differ(void **state)
{
	(void)state;
	mural_data_config config = with(100, 0.5);
	unsigned same_epoch = 0, same_seed = 0;
	for (uint32_t position = 0; position < 1000; position++) {
		mu_image_cut a = mu_augment_cut(&config, 1, mu_stream(0, position));
		mu_image_cut b = mu_augment_cut(&config, 1, mu_stream(1, position));
		mu_image_cut c = mu_augment_cut(&config, 2, mu_stream(0, position));
		same_epoch += a.dx == b.dx && a.dy == b.dy;
		same_seed += a.dx == c.dx && a.dy == c.dy;
	}
	assert_true(same_epoch < 5);
	assert_true(same_seed < 5);
}

static void largest_padding(void **state)
{
	(void)state;
	mural_data_config config = with(32767, 0.5);
	assert_int_equal(mu_augment_check(&config, NULL), MURAL_OK);
	int least = 0, most = 0;
	for (uint32_t position = 0; position < 10000; position++) {
		int dx = mu_augment_cut(&config, 1, mu_stream(0, position)).dx;
		least = dx < least ? dx : least;
		most = dx > most ? dx : most;
	}
	assert_true(least < -32000 && most > 32000);
}

static void refuses(void **state)
{
	(void)state;
	static const double wrong[] = {-0.1, 1.1, NAN, INFINITY};
	mural_data_config config = with(32768, 0);
	mural_error err = {0};
	assert_int_equal(mu_augment_check(&config, &err), MURAL_USAGE);
	assert_string_equal(err.message, "expected at most 32767 pixels, found 32768");
	for (int i = 0; i < 4; i++) {
		config = with(0, wrong[i]);
		err = (mural_error){0};
		assert_int_equal(mu_augment_check(&config, &err), MURAL_USAGE);
		assert_string_equal(err.where, "data.flip");
	}
}

static void fits_by_padding_and_cutting(void **state)
{
	(void)state;
	/* 3 high to 5, 4 wide to 2: a row above and below, columns 1 and 2. */
	static const uint8_t source[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
	static const uint8_t expected[10] = {0, 0, 2, 3, 6, 7, 10, 11, 0, 0};
	uint8_t target[20];
	memset(target, 0xee, sizeof target);
	mu_fit((mu_image_shape){1, 3, 4}, source, (mu_image_shape){2, 5, 2}, target);
	assert_memory_equal(target, expected, 10);
	assert_memory_equal(target + 10, expected, 10);
	/* Odd differences: the extra one is behind. */
	static const uint8_t odd[4] = {5, 6, 0, 0};
	mu_fit((mu_image_shape){1, 3, 4}, source, (mu_image_shape){1, 4, 1}, target);
	static const uint8_t column[4] = {2, 6, 10, 0};
	assert_memory_equal(target, column, 4);
	mu_fit((mu_image_shape){1, 1, 2}, odd, (mu_image_shape){1, 1, 5}, target);
	static const uint8_t row[5] = {0, 5, 6, 0, 0};
	assert_memory_equal(target, row, 5);
}

static void fits_channels(void **state)
{
	(void)state;
	static const uint8_t source[6] = {1, 2, 3, 4, 5, 6};
	uint8_t target[6] = {0};
	mu_fit((mu_image_shape){3, 1, 2}, source, (mu_image_shape){3, 1, 2}, target);
	assert_memory_equal(target, source, 6);
	assert_int_equal(mu_fit_check((mu_image_shape){1, 1, 2}, (mu_image_shape){3, 1, 2}, NULL), MURAL_OK);
	mural_error err = {0};
	assert_int_equal(mu_fit_check((mu_image_shape){3, 1, 2}, (mu_image_shape){1, 1, 2}, &err), MURAL_DATA);
	assert_string_equal(err.message, "the model takes images of 1 channels, the data set has 3");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(golden_cuts),
	        cmocka_unit_test(off_is_off),
	        cmocka_unit_test(frequencies),
	        cmocka_unit_test(epochs_and_seeds_differ),
	        cmocka_unit_test(largest_padding),
	        cmocka_unit_test(refuses),
	        cmocka_unit_test(fits_by_padding_and_cutting),
	        cmocka_unit_test(fits_channels),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
