/* IDX files: good ones are read as they are, broken ones are refused in words. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/dataset.h"
#include "data/reader.h"
#include "support/data_files.h"

#define IMAGES "train-images-idx3-ubyte"
#define LABELS "train-labels-idx1-ubyte"

enum { COUNT = 30, HEIGHT = 4, WIDTH = 3, PIXELS = HEIGHT * WIDTH };

static char *folder;

static int fill_folder(void **state)
{
	(void)state;
	folder = test_folder_create();
	test_idx_write_set(folder, COUNT, HEIGHT, WIDTH);
	return 0;
}

static int empty_folder(void **state)
{
	(void)state;
	test_folder_remove(folder);
	return 0;
}

static void remove_file(const char *name)
{
	char path[1024];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	assert_int_equal(remove(path), 0);
}

static mural_status open_split(mural_data **data, mural_split split, size_t classes, mural_error *err)
{
	mural_data_config config = test_data_config(folder);
	return mural_data_open(data, &config, split, 0, 0, 0, 0, classes, err);
}

static mural_data *open_good(mural_split split)
{
	mural_data *data;
	mural_error err = {0};
	mural_status status = open_split(&data, split, 10, &err);
	assert_string_equal(err.message, "");
	assert_int_equal(status, MURAL_OK);
	return data;
}

static void check_content(const mural_data *data, uint64_t count)
{
	assert_int_equal(data->facts.images, count);
	assert_int_equal(data->facts.height, HEIGHT);
	assert_int_equal(data->facts.width, WIDTH);
	assert_int_equal(data->facts.channels, 1);
	assert_int_equal(data->facts.classes, 10);
	for (uint64_t i = 0; i < count; i++) {
		uint8_t pixels[PIXELS];
		int32_t label;
		assert_int_equal(mu_data_read(data, i, pixels, &label, NULL), MURAL_OK);
		assert_int_equal(label, i % 10);
		for (unsigned p = 0; p < PIXELS; p++)
			assert_int_equal(pixels[p], (uint8_t)(i * 7 + p * 3));
	}
}

static void reads_both_splits(void **state)
{
	(void)state;
	mural_data *train = open_good(MURAL_SPLIT_TRAIN), *test = open_good(MURAL_SPLIT_TEST);
	check_content(train, COUNT);
	check_content(test, COUNT / 2 + 1);
	assert_string_equal(mural_data_get_facts(train)->name, "idx");
	assert_string_equal(mural_data_get_facts(train)->path, folder);
	mural_data_free(train);
	mural_data_free(test);
	mural_data_free(NULL);
}

/* Every way of writing the names, plain and packed. */
static void reads_all_names(void **state)
{
	(void)state;
	static const char *const names[][2] = {
	        {"train-images.idx3-ubyte", "train-labels.idx1-ubyte"},
	        {"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"},
	        {"train-images.idx3-ubyte.gz", "train-labels.idx1-ubyte.gz"},
	};
	size_t n_images, n_labels;
	uint8_t *images = test_file_read(folder, IMAGES, &n_images),
	        *labels = test_file_read(folder, LABELS, &n_labels);
	remove_file(IMAGES);
	remove_file(LABELS);
	for (int packed = 0; packed < 2; packed++)
		for (int i = 0; i < 3; i++) { /* the content decides, not ".gz" */
			if (packed) {
				test_file_write_gzip(folder, names[i][0], images, n_images);
				test_file_write_gzip(folder, names[i][1], labels, n_labels);
			} else {
				test_file_write(folder, names[i][0], images, n_images);
				test_file_write(folder, names[i][1], labels, n_labels);
			}
			mural_data *data = open_good(MURAL_SPLIT_TRAIN);
			check_content(data, COUNT);
			mural_data_free(data);
			remove_file(names[i][0]);
			remove_file(names[i][1]);
		}
	free(images);
	free(labels);
}

/* RFC 1952: members one after another are one file. */
static void reads_several_gzip_members(void **state)
{
	(void)state;
	size_t n, first, second;
	uint8_t *images = test_file_read(folder, IMAGES, &n);
	test_file_write_gzip(folder, "part", images, 100);
	uint8_t *a = test_file_read(folder, "part", &first);
	test_file_write_gzip(folder, "part", images + 100, n - 100);
	uint8_t *b = test_file_read(folder, "part", &second), *both = malloc(first + second);
	memcpy(both, a, first);
	memcpy(both + first, b, second);
	test_file_write(folder, IMAGES, both, first + second);
	mural_data *data = open_good(MURAL_SPLIT_TRAIN);
	check_content(data, COUNT);
	mural_data_free(data);
	free(images);
	free(a);
	free(b);
	free(both);
}

/* Exact sums of the training images, for the test images too. */
static void normalises_by_the_training_images(void **state)
{
	(void)state;
	double sum = 0, square = 0, n = COUNT * PIXELS;
	for (unsigned i = 0; i < COUNT; i++)
		for (unsigned p = 0; p < PIXELS; p++) {
			double value = (uint8_t)(i * 7 + p * 3) / 255.0;
			sum += value;
			square += value * value;
		}
	double std = sqrt(square / n - sum / n * (sum / n));
	for (int split = 0; split < 2; split++) {
		mural_data *data = open_good(split ? MURAL_SPLIT_TEST : MURAL_SPLIT_TRAIN);
		assert_float_equal(data->mean[0], sum / n, 1e-7);
		assert_float_equal(data->std[0], std, 1e-7);
		assert_float_equal(data->mean[2], sum / n, 1e-7); /* a model with more channels */
		mural_data_free(data);
	}
	mural_data *data;
	mural_data_config config = test_data_config(folder);
	config.normalise_given = true;
	config.mean[0] = 0.25f;
	config.std[0] = 2;
	remove_file(IMAGES); /* not needed then */
	assert_int_equal(mural_data_open(&data, &config, MURAL_SPLIT_TEST, 0, 1, 0, 0, 10, NULL), MURAL_OK);
	assert_float_equal(data->mean[0], 0.25, 0);
	assert_float_equal(data->std[0], 2, 0);
	mural_data_free(data);
	config.std[0] = 0;
	assert_int_equal(mural_data_open(&data, &config, MURAL_SPLIT_TEST, 0, 1, 0, 0, 10, NULL), MURAL_USAGE);
}

static void images_of_one_colour(void **state)
{
	(void)state;
	size_t n;
	uint8_t *images = test_file_read(folder, IMAGES, &n);
	memset(images + 16, 51, n - 16);
	test_file_write(folder, IMAGES, images, n);
	mural_data *data = open_good(MURAL_SPLIT_TRAIN);
	assert_float_equal(data->mean[0], 0.2, 1e-7);
	assert_float_equal(data->std[0], 1, 0);
	mural_data_free(data);
	free(images);
}

static void fraction_keeps_the_normalisation(void **state)
{
	(void)state;
	mural_data *whole = open_good(MURAL_SPLIT_TRAIN), *part;
	mural_data_config config = test_data_config(folder);
	config.fraction = 0.34;
	assert_int_equal(mural_data_open(&part, &config, MURAL_SPLIT_TRAIN, 0, 0, 0, 0, 10, NULL), MURAL_OK);
	assert_int_equal(part->facts.images, 11);
	assert_float_equal(part->mean[0], whole->mean[0], 0);
	assert_float_equal(part->std[0], whole->std[0], 0);
	mural_data_free(whole);
	mural_data_free(part);
}

/* ---- Refusals: status, place and words. ---- */

static void refused(mural_split split, const char *where, const char *words)
{
	mural_data *data = (mural_data *)&folder;
	mural_error err = {0};
	assert_int_equal(open_split(&data, split, 10, &err), MURAL_DATA);
	assert_null(data);
	if (!strstr(err.where, where) || !strstr(err.message, words))
		print_error("message: %s\nwhere: %s\n", err.message, err.where);
	assert_non_null(strstr(err.where, where));
	assert_non_null(strstr(err.message, words));
}

/* Changes bytes of a file, or its length (0: as it is). */
static void spoil(const char *name, size_t at, const char *bytes, size_t n, size_t length)
{
	size_t size;
	uint8_t *content = test_file_read(folder, name, &size);
	content = realloc(content, size + length + n);
	memset(content + size, 0x55, length + n);
	memcpy(content + at, bytes, n);
	test_file_write(folder, name, content, length ? length : size);
	free(content);
}

static void missing_files(void **state)
{
	(void)state;
	remove_file(LABELS);
	refused(MURAL_SPLIT_TRAIN, "/" LABELS, "the file with the training labels is missing");
	remove_file(IMAGES);
	refused(MURAL_SPLIT_TRAIN, "/" IMAGES, "the file with the training images is missing");
	/* The test images are there, what normalises them is not. */
	mural_data *data;
	mural_error err = {0};
	assert_int_equal(open_split(&data, MURAL_SPLIT_TEST, 10, &err), MURAL_DATA);
	assert_non_null(strstr(err.context, "give data.mean and data.std"));
	remove_file("t10k-images-idx3-ubyte");
	refused(MURAL_SPLIT_TEST, "/t10k-images-idx3-ubyte", "the file with the test images is missing");
	remove_file("t10k-labels-idx1-ubyte");
	refused(MURAL_SPLIT_TRAIN, folder, "no known data set in this folder");
}

static void missing_folder(void **state)
{
	(void)state;
	mural_data_config config = test_data_config("/nonexistent/set");
	mural_data *data;
	mural_error err = {0};
	assert_int_equal(mural_data_open(&data, &config, MURAL_SPLIT_TRAIN, 0, 0, 0, 0, 10, &err), MURAL_DATA);
	assert_string_equal(err.where, "/nonexistent/set");
	assert_non_null(strstr(err.message, "cannot open the data folder: No such file or directory"));
	snprintf(config.path, sizeof config.path, "%s/%s", folder, IMAGES);
	err = (mural_error){0};
	assert_int_equal(mural_data_open(&data, &config, MURAL_SPLIT_TRAIN, 0, 0, 0, 0, 10, &err), MURAL_DATA);
	assert_non_null(strstr(err.message, "expected a folder with data files"));
}

static void empty_and_short(void **state)
{
	(void)state;
	test_file_write(folder, IMAGES, "", 0);
	refused(MURAL_SPLIT_TRAIN, IMAGES ":0", "the file is empty: expected a header of 16 bytes, found 0");
	test_file_write(folder, IMAGES, "\0\0\x8", 3);
	refused(MURAL_SPLIT_TRAIN, IMAGES ":3", "the file is cut: expected a header of 16 bytes, found 3");
	test_file_write(folder, IMAGES, "\0\0\x8\x3\0\0\0\x1", 8);
	refused(MURAL_SPLIT_TRAIN, IMAGES ":8", "the file is cut: expected a header of 16 bytes, found 8");
	test_file_write_gzip(folder, IMAGES, "", 0);
	refused(MURAL_SPLIT_TRAIN, IMAGES ":0 (decompressed)", "the file is empty");
}

static void wrong_headers(void **state)
{
	(void)state;
	spoil(IMAGES, 0, "\x89PNG", 4, 0);
	refused(MURAL_SPLIT_TRAIN, IMAGES ":0",
	        "not an IDX file: expected it to start with 00 00 08 03 or, as gzip, with "
	        "1f 8b, found 89 50 4e 47");
	spoil(IMAGES, 0, "\0\0\x0d\x03", 4, 0);
	refused(MURAL_SPLIT_TRAIN, IMAGES ":2", "expected elements of type 0x08 (unsigned bytes), found 0x0d");
	spoil(IMAGES, 0, "\0\0\x08\x04", 4, 0);
	refused(MURAL_SPLIT_TRAIN, IMAGES ":3", "expected images, which have rank 3, found rank 4");
	spoil(IMAGES, 0, "\0\0\x08\x03\0\0\0\0", 8, 0);
	refused(MURAL_SPLIT_TRAIN, IMAGES ":4", "expected at least one image, found 0");
	spoil(IMAGES, 4, "\0\0\0\x1e\0\0\x80\0", 8, 0);
	refused(MURAL_SPLIT_TRAIN, IMAGES ":8", "expected an image side of 1 to 32767 pixels, found 32768");
	spoil(IMAGES, 8, "\0\0\0\x4\0\0\0\0", 8, 0);
	refused(MURAL_SPLIT_TRAIN, IMAGES ":12", "expected an image side of 1 to 32767 pixels, found 0");
}

/* Labels where images belong and the other way round. */
static void swapped_files(void **state)
{
	(void)state;
	size_t n_images, n_labels;
	uint8_t *images = test_file_read(folder, IMAGES, &n_images),
	        *labels = test_file_read(folder, LABELS, &n_labels);
	test_file_write(folder, LABELS, images, n_images);
	refused(MURAL_SPLIT_TRAIN, LABELS ":3",
	        "expected labels, which have rank 1, found rank 3: are these the images?");
	test_file_write(folder, IMAGES, labels, n_labels);
	refused(MURAL_SPLIT_TRAIN, IMAGES ":3",
	        "expected images, which have rank 3, found rank 1: are these the labels?");
	free(images);
	free(labels);
}

static void wrong_lengths(void **state)
{
	(void)state;
	spoil(IMAGES, 0, "", 0, 16 + COUNT * PIXELS - 5);
	refused(MURAL_SPLIT_TRAIN, IMAGES ":16",
	        "the file is cut: its header promises 360 bytes of images, it can hold at most 355");
	spoil(IMAGES, 0, "", 0, 16 + COUNT * PIXELS + 2);
	refused(MURAL_SPLIT_TRAIN, IMAGES ":376",
	        "expected the end of the file behind 360 bytes of images, found more");
	spoil(IMAGES, 0, "", 0, 16 + COUNT * PIXELS);
	spoil(LABELS, 0, "", 0, 8 + COUNT + 1);
	refused(MURAL_SPLIT_TRAIN, LABELS ":38", "expected the end of the file behind 30 bytes of labels, found more");
}

static void counts_differ(void **state)
{
	(void)state;
	size_t n;
	uint8_t *labels = test_idx_labels(COUNT - 1, 10, &n);
	test_file_write(folder, LABELS, labels, n);
	refused(MURAL_SPLIT_TRAIN, LABELS ":4", "expected as many labels as images, 30, found 29");
	free(labels);
}

static void label_out_of_range(void **state)
{
	(void)state;
	spoil(LABELS, 8 + 17, "\x0a", 1, 0);
	refused(MURAL_SPLIT_TRAIN, LABELS ":25",
	        "image 17 has label 10; expected 0 to 9, since the model has 10 classes");
	mural_data *data;
	assert_int_equal(open_split(&data, MURAL_SPLIT_TRAIN, 0, NULL), MURAL_OK); /* nobody asked */
	assert_int_equal(data->facts.classes, 11);
	mural_data_free(data);
}

static void not_a_file(void **state)
{
	(void)state;
	char path[1024];
	snprintf(path, sizeof path, "%s/%s", folder, IMAGES);
	remove_file(IMAGES);
	assert_int_equal(mkdir(path, 0700), 0);
	refused(MURAL_SPLIT_TRAIN, IMAGES, "expected a file, found a folder");
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	refused(MURAL_SPLIT_TRAIN, IMAGES, "expected a file, found a device or pipe");
	remove_file(IMAGES);
	assert_int_equal(symlink("nowhere", path), 0);
	refused(MURAL_SPLIT_TRAIN, IMAGES, "is missing");
	mu_reader *reader;
	mural_error err = {0};
	assert_int_equal(mu_reader_create(&reader, path, &err), MURAL_DATA);
	assert_string_equal(err.message, "cannot open the file: No such file or directory");
}

static void broken_gzip(void **state)
{
	(void)state;
	size_t n, packed;
	uint8_t *images = test_file_read(folder, IMAGES, &n);
	packed = test_file_write_gzip(folder, IMAGES, images, n);
	char where[64];
	/* Cut anywhere: in the gzip header, the data, the checksum. Two bytes are enough to tell gzip. */
	for (size_t length = 2; length < packed; length++) {
		test_file_write_gzip(folder, IMAGES, images, n);
		spoil(IMAGES, 0, "", 0, length);
		snprintf(where, sizeof where, IMAGES ":%zu", length);
		mural_data *data;
		mural_error err = {0};
		assert_int_equal(open_split(&data, MURAL_SPLIT_TRAIN, 10, &err), MURAL_DATA);
		bool promise = strstr(err.message, "it can hold at most"),
		     cut = strstr(err.message, "cut; fetch it again");
		assert_true(promise || (cut && strstr(err.where, where)));
	}
	/* Checksum, length. */
	static const char *const faults[] = {"incorrect data check", "incorrect length check"};
	for (size_t i = 0; i < 2; i++) {
		test_file_write_gzip(folder, IMAGES, images, n);
		spoil(IMAGES, packed - 8 + 4 * i, "\x12\x34", 2, 0);
		refused(MURAL_SPLIT_TRAIN, IMAGES, faults[i]);
	}
	test_file_write_gzip(folder, IMAGES, images, n);
	spoil(IMAGES, 0, "", 0, packed + 3);
	snprintf(where, sizeof where, IMAGES ":%zu", packed);
	refused(MURAL_SPLIT_TRAIN, where, "expected the end of the file behind the gzip data, found 3 more bytes");
	/* A content with one byte too few or too many. */
	test_file_write_gzip(folder, IMAGES, images, n - 1);
	refused(MURAL_SPLIT_TRAIN, IMAGES ":375 (decompressed)", "its header promises 360 bytes of images, found 359");
	images = realloc(images, n + 1);
	images[n] = 0;
	test_file_write_gzip(folder, IMAGES, images, n + 1);
	refused(MURAL_SPLIT_TRAIN, IMAGES ":376 (decompressed)", "expected the end of the file behind 360 bytes");
	free(images);
}

/* Any single wrong byte of the packed data is noticed, and never worse than that. */
static void flipped_bits(void **state)
{
	(void)state;
	size_t n;
	uint8_t *images = test_file_read(folder, IMAGES, &n);
	size_t packed = test_file_write_gzip(folder, IMAGES, images, n);
	unsigned refusals = 0;
	for (size_t i = 10; i < packed; i++) { /* bytes 4 to 9 are a date and a system */
		uint8_t *bytes = test_file_read(folder, IMAGES, &packed), kept = bytes[i];
		bytes[i] ^= 0x10;
		test_file_write(folder, IMAGES, bytes, packed);
		mural_data *data;
		refusals += open_split(&data, MURAL_SPLIT_TRAIN, 10, NULL) == MURAL_DATA;
		bytes[i] = kept;
		test_file_write(folder, IMAGES, bytes, packed);
		free(bytes);
	}
	assert_int_equal(refusals, packed - 10);
	free(images);
}

/* Headers that promise terabytes cost nothing, packed or not. */
static void false_promises(void **state)
{
	(void)state;
	static const char header[] = "\0\0\x08\x03\xff\xff\xff\xff\0\0\x7f\xff\0\0\x7f\xff";
	test_file_write(folder, IMAGES, header, 16);
	refused(MURAL_SPLIT_TRAIN, IMAGES ":16", "its header promises");
	test_file_write_gzip(folder, IMAGES, header, 16);
	refused(MURAL_SPLIT_TRAIN, IMAGES ":16 (decompressed)", "its header promises");
	/* A bomb: 64 MiB of zeros behind a small header. */
	size_t n = 64 << 20;
	uint8_t *zeros = calloc(1, n);
	memcpy(zeros, "\0\0\x08\x03\0\0\0\x1e\0\0\0\x04\0\0\0\x03", 16);
	test_file_write_gzip(folder, IMAGES, zeros, n);
	refused(MURAL_SPLIT_TRAIN, IMAGES ":376 (decompressed)", "expected the end of the file");
	free(zeros);
}

/* Needs Debian's package; mean and std are those everybody quotes. */
static void fashion_mnist(void **state)
{
	(void)state;
	mural_data_config config = test_data_config("fashion-mnist");
	mural_data *train, *test;
	mural_error err = {0};
	if (mural_data_open(&train, &config, MURAL_SPLIT_TRAIN, 0, 0, 0, 0, 10, &err) != MURAL_OK) {
		assert_int_equal(err.status, MURAL_DATA);
		assert_non_null(strstr(err.message, "install the package dataset-fashion-mnist"));
		skip();
	}
	assert_int_equal(mural_data_open(&test, &config, MURAL_SPLIT_TEST, 0, 0, 0, 0, 10, NULL), MURAL_OK);
	assert_string_equal(train->facts.name, "fashion-mnist");
	assert_int_equal(train->facts.images, 60000);
	assert_int_equal(test->facts.images, 10000);
	assert_int_equal(train->facts.classes, 10);
	assert_int_equal(train->facts.height, 28);
	assert_float_equal(train->mean[0], 0.2860, 5e-5);
	assert_float_equal(train->std[0], 0.3530, 5e-5);
	assert_memory_equal(train->mean, test->mean, sizeof train->mean);
	assert_memory_equal(train->std, test->std, sizeof train->std);
	mural_data_free(train);
	mural_data_free(test);
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, fill_folder, empty_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        WITH_FOLDER(reads_both_splits),
	        WITH_FOLDER(reads_all_names),
	        WITH_FOLDER(reads_several_gzip_members),
	        WITH_FOLDER(normalises_by_the_training_images),
	        WITH_FOLDER(images_of_one_colour),
	        WITH_FOLDER(fraction_keeps_the_normalisation),
	        WITH_FOLDER(missing_files),
	        WITH_FOLDER(missing_folder),
	        WITH_FOLDER(empty_and_short),
	        WITH_FOLDER(wrong_headers),
	        WITH_FOLDER(swapped_files),
	        WITH_FOLDER(wrong_lengths),
	        WITH_FOLDER(counts_differ),
	        WITH_FOLDER(label_out_of_range),
	        WITH_FOLDER(not_a_file),
	        WITH_FOLDER(broken_gzip),
	        WITH_FOLDER(flipped_bits),
	        WITH_FOLDER(false_promises),
	        cmocka_unit_test(fashion_mnist),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
