/* Images set aside for validation: who they are, that nobody trains on them, what is refused. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/dataset.h"
#include "data/validation.h"
#include "support/data_files.h"

enum { SIDE = 4, PIXELS = SIDE * SIDE };

static char *folder;

/* A set whose image i has all pixels i (so that an image tells who it is) and the given label. */
static void write_split(const char *images_name, const char *labels_name, uint32_t n, const uint8_t *labels)
{
	size_t image_bytes, label_bytes;
	uint8_t *images = test_idx_images(n, SIDE, SIDE, &image_bytes), *file = test_idx_labels(n, 10, &label_bytes);
	for (uint32_t i = 0; i < n; i++)
		memset(images + image_bytes - (size_t)(n - i) * PIXELS, (int)i, PIXELS);
	memcpy(file + label_bytes - n, labels, n);
	test_file_write(folder, images_name, images, image_bytes);
	test_file_write(folder, labels_name, file, label_bytes);
	free(images);
	free(file);
}

/* counts[c] images of class c, classes one after the other. */
static uint32_t write_set(const unsigned *counts, unsigned classes)
{
	uint8_t labels[256];
	uint32_t n = 0;
	for (unsigned c = 0; c < classes; c++)
		for (unsigned i = 0; i < counts[c]; i++)
			labels[n++] = (uint8_t)c;
	write_split("train-images-idx3-ubyte", "train-labels-idx1-ubyte", n, labels);
	write_split("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte", 3, (const uint8_t[]){0, 1, 0});
	return n;
}

static int enter(void **state)
{
	(void)state;
	folder = test_folder_create();
	return 0;
}

static int leave(void **state)
{
	(void)state;
	test_folder_remove(folder);
	return 0;
}

static mural_data_config shared(double fraction)
{
	mural_data_config config = test_data_config(folder);
	config.validation_fraction = fraction;
	return config;
}

static mural_data *open_split(const mural_data_config *config, mural_split split, uint32_t seed)
{
	mural_data *data;
	mural_error err = {0};
	mural_data_open(&data, config, split, seed, 1, SIDE, SIDE, 10, &err);
	assert_string_equal(err.message, "");
	return data;
}

/* Adds to seen[image] for each image of the set; checks that labels are told without reading. */
static void look(const mural_data *data, unsigned seen[256])
{
	uint8_t pixels[PIXELS];
	int32_t label;
	for (uint64_t i = 0; i < mural_data_get_facts(data)->images; i++) {
		assert_int_equal(mu_data_read(data, i, pixels, &label, NULL), MURAL_OK);
		assert_int_equal(label, mural_data_label(data, i));
		seen[pixels[0]]++;
	}
}

static void every_image_has_one_place(void **state)
{
	(void)state;
	static const unsigned counts[] = {40, 3, 25, 0, 1, 100, 17};
	static const double fractions[] = {0.01, 0.1, 0.25, 1.0 / 3, 0.5, 0.9, 0.999};
	uint32_t n = write_set(counts, 7);
	for (size_t f = 0; f < sizeof fractions / sizeof *fractions; f++) {
		mural_data_config config = shared(fractions[f]);
		mural_data *train = open_split(&config, MURAL_SPLIT_TRAIN, 5), *aside;
		unsigned seen[256] = {0}, alone[256] = {0}, per_class[10] = {0};
		assert_int_equal(mural_data_open_validation(&aside, train, &config, 5, 1, SIDE, SIDE, 10, NULL),
		                 MURAL_OK);
		uint64_t images = mural_data_get_facts(aside)->images;
		for (uint64_t i = 0; i < images; i++)
			per_class[mural_data_label(aside, i)]++;
		look(train, seen);
		look(aside, seen);
		look(aside, alone);
		for (uint32_t i = 0; i < n; i++)
			assert_int_equal(seen[i], 1);
		/* Its share of each class, within one image, but never all of a class. */
		for (unsigned c = 0; c < 7; c++) {
			double due = fractions[f] * counts[c];
			assert_true(per_class[c] < counts[c] || counts[c] == 0);
			if (fractions[f] <= 0.5)
				assert_true(fabs(per_class[c] - due) <= 2 &&
				            (counts[c] < 17 || fabs(per_class[c] - due) <= 1));
		}
		if (fractions[f] <= 0.5)
			assert_true(fabs((double)images - fractions[f] * n) <= 0.5);
		/* The same when asked for by itself, whoever is freed first. */
		mural_data_free(f % 2 ? train : aside);
		mural_data_free(f % 2 ? aside : train);
		mural_data *again = open_split(&config, MURAL_SPLIT_VALIDATION, 5);
		look(again, alone);
		for (uint32_t i = 0; i < n; i++)
			assert_true(alone[i] == 0 || alone[i] == 2);
		mural_data_free(again);
	}
}

/* The draws are part of the reproducibility promise; tests/golden/data_draws.py has the same rule. */
static void draws_stay(void **state)
{
	(void)state;
	static const unsigned counts[] = {12, 8, 20};
	static const uint8_t expected[] = {6, 7, 17, 19, 23, 28, 34, 37};
	unsigned seen[256] = {0}, other[256] = {0}, differ = 0;
	write_set(counts, 3);
	mural_data_config config = shared(0.2);
	mural_data *aside = open_split(&config, MURAL_SPLIT_VALIDATION, 5),
	           *of_another_seed = open_split(&config, MURAL_SPLIT_VALIDATION, 6);
	look(aside, seen);
	look(of_another_seed, other);
	assert_int_equal(mural_data_get_facts(aside)->images, sizeof expected);
	for (size_t i = 0; i < sizeof expected; i++)
		assert_int_equal(seen[expected[i]], 1);
	for (size_t i = 0; i < 40; i++)
		differ += seen[i] != other[i];
	assert_true(differ > 0);
	mural_data_free(aside);
	mural_data_free(of_another_seed);
}

static void works_with_a_fraction_and_keeps_the_normalisation(void **state)
{
	(void)state;
	static const unsigned counts[] = {50, 50};
	write_set(counts, 2);
	mural_data_config config = shared(0), part = shared(0.2);
	part.fraction = 0.25;
	mural_data *all = open_split(&config, MURAL_SPLIT_TRAIN, 1), *train = open_split(&part, MURAL_SPLIT_TRAIN, 1),
	           *aside = open_split(&part, MURAL_SPLIT_VALIDATION, 1);
	unsigned seen[256] = {0};
	look(train, seen);
	look(aside, seen);
	assert_int_equal(mural_data_get_facts(train)->images, 20); /* a quarter of the 80 that are left */
	assert_int_equal(mural_data_get_facts(aside)->images, 20);
	for (int i = 0; i < 100; i++)
		assert_true(seen[i] <= 1);
	assert_true(train->mean[0] == all->mean[0] && train->std[0] == all->std[0]);
	assert_true(aside->mean[0] == all->mean[0] && aside->std[0] == all->std[0]);
	mural_data_free(all);
	mural_data_free(train);
	mural_data_free(aside);
}

static void expect_refused(const mural_data_config *config, mural_status status, const char *words)
{
	mural_data *data;
	mural_error err = {0};
	assert_int_equal(mural_data_open(&data, config, MURAL_SPLIT_VALIDATION, 0, 1, SIDE, SIDE, 10, &err), status);
	assert_null(data);
	if (!strstr(err.message, words))
		fail_msg("expected '%s' in '%s'", words, err.message);
}

static void bad_shares_are_refused(void **state)
{
	(void)state;
	static const unsigned counts[] = {4, 4};
	static const double bad[] = {-0.1, 1, 1.5, -INFINITY, INFINITY, NAN};
	write_set(counts, 2);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		mural_data_config config = shared(bad[i]);
		expect_refused(&config, MURAL_USAGE, "expected at least 0 and less than 1");
	}
	mural_data_config none = shared(0), little = shared(0.05), both = shared(0.5);
	expect_refused(&none, MURAL_USAGE, "there are no validation images");
	expect_refused(&little, MURAL_USAGE, "a share of 0.05 of 8 training images is none");
	strcpy(both.validation_path, "synthetic");
	expect_refused(&both, MURAL_USAGE, "found both");
	static const unsigned lonely[] = {1, 1, 1}; /* each class keeps its only image */
	write_set(lonely, 3);
	mural_data_config half = shared(0.5);
	expect_refused(&half, MURAL_USAGE, "is none");
}

static void a_set_of_its_own(void **state)
{
	(void)state;
	static const unsigned counts[] = {5, 5};
	write_set(counts, 2);
	mural_data_config config = shared(0);
	mural_data *train = open_split(&config, MURAL_SPLIT_TRAIN, 3);
	/* The run's own set would be chosen by its test images. */
	strcpy(config.validation_path, folder);
	expect_refused(&config, MURAL_USAGE, "the run's own data set");
	strcpy(config.validation_path, "/nowhere/at-all");
	expect_refused(&config, MURAL_DATA, "cannot open the data folder");
	/* Another one shares the normalisation of what is trained on. */
	strcpy(config.validation_path, "synthetic");
	mural_data *aside = open_split(&config, MURAL_SPLIT_VALIDATION, 3);
	assert_int_equal(mural_data_get_facts(aside)->images, (config.synthetic_images + 3) / 4);
	assert_true(aside->mean[0] == train->mean[0] && aside->std[0] == train->std[0]);
	mural_data_free(aside);
	mural_data_free(train);
}

/* Made-up validation images are neither training nor test images. */
static void synthetic_splits_differ(void **state)
{
	(void)state;
	mural_data_config config = test_data_config("synthetic");
	strcpy(config.validation_path, "synthetic");
	uint8_t pixels[3][PIXELS];
	for (int split = 0; split < 3; split++) {
		int32_t label;
		mural_data *data = open_split(&config, (mural_split)split, 3);
		assert_int_equal(mu_data_read(data, 0, pixels[split], &label, NULL), MURAL_OK);
		mural_data_free(data);
	}
	assert_memory_not_equal(pixels[0], pixels[1], PIXELS);
	assert_memory_not_equal(pixels[0], pixels[2], PIXELS);
	assert_memory_not_equal(pixels[1], pixels[2], PIXELS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(every_image_has_one_place),
	        cmocka_unit_test(draws_stay),
	        cmocka_unit_test(works_with_a_fraction_and_keeps_the_normalisation),
	        cmocka_unit_test(bad_shares_are_refused),
	        cmocka_unit_test(a_set_of_its_own),
	        cmocka_unit_test(synthetic_splits_differ),
	};
	return cmocka_run_group_tests(tests, enter, leave);
}
