/* CIFAR in both official versions: the same samples, and everything else is refused in words.
 *
 * The python version is tests/golden/cifar (make_cifar.py), the binary one is written here from the same formulas.
 * SPDX-License-Identifier: MIT */
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
#include "support/data_files.h"

#define GOLDEN MU_TEST_SOURCE_DIR "/golden/cifar"
#define PY10 GOLDEN "/cifar-10-batches-py"
#define PY100 GOLDEN "/cifar-100-python"

enum { PIXELS = 3072, PLANE = 1024, TRAIN10 = 11, TEST10 = 2, TRAIN100 = 3, TEST100 = 2 };

static char *folder;

static int make_folder(void **state)
{
	(void)state;
	folder = test_folder_create();
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	test_folder_remove(folder);
	return 0;
}

/* ---- The formulas of make_cifar.py. ---- */

static uint8_t pixel(unsigned image, unsigned p)
{
	return (uint8_t)(image * 7 + p * 3 + p / PLANE * 50);
}

static uint8_t fine_label(unsigned image)
{
	return (uint8_t)(image * 20 % 100 + 19);
}

/* `count` records from image `first` on. */
static void write_binary(const char *name, unsigned first, unsigned count, bool hundred)
{
	size_t record = PIXELS + (hundred ? 2 : 1);
	uint8_t *bytes = malloc(count * record), *to = bytes;
	assert_non_null(bytes);
	for (unsigned i = first; i < first + count; i++) {
		*to++ = (uint8_t)(hundred ? i % 20 : i % 10);
		if (hundred)
			*to++ = fine_label(i);
		for (unsigned p = 0; p < PIXELS; p++)
			*to++ = pixel(i, p);
	}
	test_file_write(folder, name, bytes, count * record);
	free(bytes);
}

static void write_cifar10(void)
{
	static const unsigned counts[] = {4, 1, 2, 1, 3};
	char name[32];
	unsigned first = 0;
	for (unsigned b = 0; b < 5; first += counts[b++]) {
		snprintf(name, sizeof name, "data_batch_%u.bin", b + 1);
		write_binary(name, first, counts[b], false);
	}
	write_binary("test_batch.bin", TRAIN10, TEST10, false);
	static const char names[] = "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n";
	test_file_write(folder, "batches.meta.txt", names, sizeof names - 1);
}

static void write_cifar100(void)
{
	char names[2000] = "";
	for (unsigned c = 0; c < 100; c++)
		snprintf(names + strlen(names), 16, "fine_%u\r\n", c);
	write_binary("train.bin", 0, TRAIN100, true);
	write_binary("test.bin", TRAIN100, TEST100, true);
	test_file_write(folder, "fine_label_names.txt", names, strlen(names));
}

/* ---- Good sets. ---- */

static mural_status open_as(mural_data **data, const char *path, mural_data_format format, mural_split split,
                            mural_error *err)
{
	mural_data_config config = test_data_config(path);
	config.format = format;
	return mural_data_open(data, &config, split, 0, 0, 0, 0, 0, err);
}

static mural_data *open_good(const char *path, mural_data_format format, mural_split split)
{
	mural_data *data;
	mural_error err = {0};
	mural_status status = open_as(&data, path, format, split, &err);
	assert_string_equal(err.message, "");
	assert_int_equal(status, MURAL_OK);
	return data;
}

static void check_images(const mural_data *data, unsigned first, unsigned count, bool hundred)
{
	const mural_data_facts *facts = mural_data_get_facts(data);
	assert_string_equal(facts->name, hundred ? "cifar100" : "cifar10");
	assert_int_equal(facts->images, count);
	assert_int_equal(facts->channels, 3);
	assert_int_equal(facts->height, 32);
	assert_int_equal(facts->width, 32);
	assert_int_equal(facts->classes, hundred ? 100 : 10);
	for (unsigned i = 0; i < count; i++) {
		uint8_t pixels[PIXELS];
		int32_t label;
		assert_int_equal(mu_data_read(data, i, pixels, &label, NULL), MURAL_OK);
		assert_int_equal(label, hundred ? fine_label(first + i) : (first + i) % 10);
		for (unsigned p = 0; p < PIXELS; p++)
			assert_int_equal(pixels[p], pixel(first + i, p));
	}
}

static void check_set(const char *path, bool hundred)
{
	mural_data *train = open_good(path, MURAL_DATA_AUTO, MURAL_SPLIT_TRAIN);
	mural_data *test = open_good(path, MURAL_DATA_AUTO, MURAL_SPLIT_TEST);
	unsigned images = hundred ? TRAIN100 : TRAIN10;
	check_images(train, 0, images, hundred);
	check_images(test, images, hundred ? TEST100 : TEST10, hundred);
	assert_string_equal(mural_data_class_name(test, 3), hundred ? "fine_3" : "cat");
	assert_string_equal(mural_data_class_name(train, 9), hundred ? "fine_9" : "truck");
	assert_null(mural_data_class_name(train, hundred ? 100 : 10));
	for (size_t c = 0; c < 3; c++) {
		double sum = 0, square = 0, n = images * PLANE;
		for (unsigned i = 0; i < images; i++)
			for (unsigned p = 0; p < PLANE; p++) {
				double value = pixel(i, (unsigned)c * PLANE + p) / 255.0;
				sum += value;
				square += value * value;
			}
		assert_float_equal(train->mean[c], sum / n, 1e-6);
		assert_float_equal(train->std[c], sqrt(square / n - sum / n * (sum / n)), 1e-6);
	}
	assert_memory_equal(train->mean, test->mean, sizeof train->mean);
	assert_memory_equal(train->std, test->std, sizeof train->std);
	mural_data_free(train);
	mural_data_free(test);
}

static void both_versions_are_the_same(void **state)
{
	(void)state;
	check_set(PY10, false);
	check_set(PY100, true);
	write_cifar10();
	check_set(folder, false);
}

static void binary_hundred(void **state)
{
	(void)state;
	write_cifar100();
	check_set(folder, true);
	/* Without the list of names there are none. */
	char path[1024];
	snprintf(path, sizeof path, "%s/fine_label_names.txt", folder);
	assert_int_equal(remove(path), 0);
	mural_data *data = open_good(folder, MURAL_DATA_CIFAR100, MURAL_SPLIT_TRAIN);
	assert_null(mural_data_class_name(data, 0));
	mural_data_free(data);
}

static void finds_the_folder_below(void **state)
{
	(void)state;
	mural_data *data = open_good(GOLDEN, MURAL_DATA_CIFAR10, MURAL_SPLIT_TRAIN);
	check_images(data, 0, TRAIN10, false);
	mural_data_free(data);
	data = open_good(GOLDEN, MURAL_DATA_CIFAR100, MURAL_SPLIT_TRAIN);
	check_images(data, 0, TRAIN100, true);
	mural_data_free(data);
	/* Both lie there: which one is meant? */
	mural_error err = {0};
	assert_int_equal(open_as(&data, GOLDEN, MURAL_DATA_AUTO, MURAL_SPLIT_TRAIN, &err), MURAL_DATA);
	assert_string_equal(err.where, GOLDEN);
	assert_non_null(strstr(err.message, "more than one data set: cifar10 and cifar100"));
}

static void too_few_classes(void **state)
{
	(void)state;
	mural_data *data;
	mural_error err = {0};
	mural_data_config config = test_data_config(PY10);
	assert_int_equal(mural_data_open(&data, &config, MURAL_SPLIT_TRAIN, 0, 0, 0, 0, 9, &err), MURAL_DATA);
	assert_non_null(strstr(err.message, "image 9 has label 9, but the model has only 9 classes"));
	assert_int_equal(mural_data_open(&data, &config, MURAL_SPLIT_TRAIN, 0, 0, 0, 0, 10, NULL), MURAL_OK);
	mural_data_free(data);
}

static void count_broken(void *user, uint64_t image, const mural_error *err)
{
	assert_int_equal(image, 4);
	assert_string_equal(err->where, "made-up:4");
	++*(unsigned *)user;
}

static mural_status break_fifth(const mural_data *data, uint64_t index, uint8_t *pixels, int32_t *label,
                                mural_error *err)
{
	if (index == 4)
		return mu_fail(err, MURAL_DATA, "made-up:4", "the image is broken");
	return mu_format_cifar10.read(data, index, pixels, label, err);
}

static void surveys(void **state)
{
	(void)state;
	mural_data *data = open_good(PY10, MURAL_DATA_AUTO, MURAL_SPLIT_TRAIN);
	mural_data_survey survey;
	assert_int_equal(mural_data_survey_take(&survey, data, NULL, NULL, NULL), MURAL_OK);
	assert_int_equal(survey.readable, TRAIN10);
	assert_int_equal(survey.broken, 0);
	assert_int_equal(survey.images_per_class[0], 2); /* 0 and 10 */
	assert_int_equal(survey.images_per_class[9], 1);
	assert_memory_equal(survey.mean, data->mean, 3 * sizeof(float));
	assert_memory_equal(survey.std, data->std, 3 * sizeof(float));
	mural_data_survey_release(&survey);
	mu_format broken = mu_format_cifar10;
	unsigned calls = 0;
	broken.read = break_fifth;
	data->format = &broken;
	assert_int_equal(mural_data_survey_take(&survey, data, count_broken, &calls, NULL), MURAL_OK);
	assert_int_equal(calls, 1);
	assert_int_equal(survey.broken, 1);
	assert_int_equal(survey.readable, TRAIN10 - 1);
	assert_int_equal(survey.images_per_class[4], 0);
	mural_data_survey_release(&survey);
	mural_data_free(data);
}

static void names_of_fashion_mnist(void **state)
{
	(void)state;
	mural_data *data;
	mural_data_config config = test_data_config("fashion-mnist");
	if (mural_data_open(&data, &config, MURAL_SPLIT_TEST, 0, 0, 0, 0, 0, NULL) != MURAL_OK)
		skip();
	assert_string_equal(mural_data_class_name(data, 9), "Ankle boot");
	assert_null(mural_data_class_name(data, 10));
	mural_data_free(data);
}

/* ---- Refusals: status, place and words. ---- */

static void refused(mural_data_format format, const char *where, const char *words)
{
	mural_data *data = (mural_data *)&folder;
	mural_error err = {0};
	mural_status status = open_as(&data, folder, format, MURAL_SPLIT_TRAIN, &err);
	if (status != MURAL_DATA || !strstr(err.where, where) || !strstr(err.message, words))
		print_error("message: %s\nwhere: %s\n", err.message, err.where);
	assert_int_equal(status, MURAL_DATA);
	assert_null(data);
	assert_non_null(strstr(err.where, where));
	assert_non_null(strstr(err.message, words));
}

static void broken_binaries(void **state)
{
	(void)state;
	refused(MURAL_DATA_CIFAR10, folder, "no CIFAR-10 in this folder; expected cifar-10-batches-bin");
	write_cifar10();
	size_t n;
	uint8_t *bytes = test_file_read(folder, "data_batch_3.bin", &n);
	test_file_write(folder, "data_batch_3.bin", bytes, n - 1);
	refused(MURAL_DATA_AUTO, "/data_batch_3.bin",
	        "expected whole records of 3073 bytes (1 of labels, 3072 of pixels), found 6145 bytes");
	test_file_write(folder, "data_batch_3.bin", bytes, 0);
	refused(MURAL_DATA_AUTO, "/data_batch_3.bin", "found 0 bytes");
	bytes[3073] = 10;
	test_file_write(folder, "data_batch_3.bin", bytes, n);
	refused(MURAL_DATA_AUTO, "/data_batch_3.bin:3073", "image 1 has label 10; expected 0 to 9");
	bytes[3073] = 9;
	test_file_write(folder, "data_batch_3.bin", bytes, n);
	test_file_write(folder, "batches.meta.txt", "a\nb\n", 4);
	refused(MURAL_DATA_AUTO, "/batches.meta.txt", "expected the names of 10 classes, found 2");
	char path[1024];
	snprintf(path, sizeof path, "%s/data_batch_5.bin", folder);
	assert_int_equal(remove(path), 0);
	refused(MURAL_DATA_AUTO, "/data_batch_5.bin", "cannot open the CIFAR file: No such file");
	free(bytes);
}

/* Copies the python version of CIFAR-100 with bytes [at, at + cut) of `train` replaced. */
static void spoil(size_t at, size_t cut, const void *bytes, size_t n)
{
	size_t size;
	uint8_t *file = test_file_read(PY100, "train", &size);
	uint8_t *spoiled = malloc(size + n);
	assert_non_null(spoiled);
	memcpy(spoiled, file, at);
	memcpy(spoiled + at, bytes, n);
	memcpy(spoiled + at + n, file + at + cut, size - at - cut);
	test_file_write(folder, "train", spoiled, size - cut + n);
	free(file);
	free(spoiled);
}

/* Byte of a text in the pickle, its opcode in front of it. */
static size_t find(const char *text)
{
	size_t size;
	uint8_t *file = test_file_read(PY100, "train", &size);
	const uint8_t *found = memmem(file, size, text, strlen(text));
	assert_non_null(found);
	size_t at = (size_t)(found - file);
	free(file);
	return at;
}

static void refused_at(size_t at, const char *words)
{
	char where[64];
	snprintf(where, sizeof where, "/train:%zu", at);
	refused(MURAL_DATA_CIFAR100, where, words);
}

#define SPOIL(at, cut, text) spoil(at, cut, text, sizeof text - 1)

static void hostile_pickles(void **state)
{
	(void)state;
	SPOIL(0, 0, "");
	mural_data *data = open_good(folder, MURAL_DATA_AUTO, MURAL_SPLIT_TRAIN);
	check_images(data, 0, TRAIN100, true);
	mural_data_free(data);

	size_t reconstruct = find("cnumpy.core.multiarray\n_reconstruct"), keys = find("U\tfilenames");
	SPOIL(reconstruct, 35, "cposix\nsystem\n");
	refused_at(reconstruct, "the pickle names 'posix.system', which does not belong into this data: refused, "
	                        "nothing was executed");
	SPOIL(keys, 0,
	      "cbuiltins\neval\nU\x01"
	      "1\x85R");
	refused_at(keys, "'builtins.eval'");
	SPOIL(keys, 0, "\x8c\x01x");
	refused_at(keys, "the opcode SHORT_BINUNICODE (0x8c) does not belong into this data");
	SPOIL(keys, 0, "\x93");
	refused_at(keys, "the opcode STACK_GLOBAL (0x93)");
	SPOIL(keys, 0, "ios\nsystem\n");
	refused_at(keys, "the opcode INST (0x69)");
	SPOIL(keys, 0, "\xff");
	refused_at(keys, "the opcode of no known name (0xff)");
	SPOIL(keys + 2, 9, "filenamez");
	refused_at(keys, "expected one of the keys of a CIFAR batch, each once, found 'filenamez'");
	SPOIL(keys, 0, "j\x01\x02\x03\x04");
	refused_at(keys, "the pickle refers to its value number 67305985, which it does not have");
	SPOIL(keys, 0, "h\x00");
	refused_at(keys, "the pickle refers to a dictionary again");
	SPOIL(keys, 0, "(((");
	refused_at(keys, "expected a key of the dictionary, found the begin of a sequence (MARK)");
	SPOIL(0, 2, "\x80\x04");
	refused_at(0, "expected a pickle of protocol 2, which starts with 80 02, found 80 04");
	SPOIL(0, 2, "PK");
	refused_at(0, "expected a pickle of protocol 2");
}

static void wrong_shapes(void **state)
{
	(void)state;
	size_t count = find("\xff\xff\xff\xffK"), size; /* near the end of the type's state */
	size_t fine = find("U\x0b"
	                   "fine_labels"),
	       data = find("U\x04"
	                   "data"),
	       values, n;
	uint8_t *file = test_file_read(PY100, "train", &size);
	const uint8_t *text = memmem(file, size, "\x89T\x00\x24\x00\x00", 6); /* not Fortran's, 9216 bytes */
	assert_non_null(text);
	values = (size_t)(text - file) + 1;
	free(file);
	assert_true(count < values);

	SPOIL(data + 2, 4, "datb");
	refused_at(data, "each once, found 'datb'");
	SPOIL(values - 1, 1, "K\x02");
	refused_at(values - 1, "expected True or False for the order of the array, found the number 2");
	SPOIL(values, 0, "N");
	refused_at(values, "expected the bytes of the array, found None");
	SPOIL(find("U\x02u1") + 2, 2, "f4");
	refused_at(find("U\x02u1"), "expected u1, found 'f4'");
	/* Another number of images, another size of an image. */
	SPOIL(find("M\x00\x0c") - 2, 2, "K\x04");
	refused_at(values, "expected 12288 bytes for 4 images of 3072, found 9216");
	SPOIL(find("M\x00\x0c") - 2, 2, "J\xff\xff\xff\x7f");
	refused_at(values + 3, "bytes for 2147483647 images of 3072, found 9216");
	SPOIL(find("M\x00\x0c") - 2, 2, "K\x00");
	refused_at(find("M\x00\x0c") - 2, "expected the number of images, found the number 0");
	SPOIL(find("M\x00\x0c"), 3, "M\x01\x0c");
	refused_at(find("M\x00\x0c"), "expected 3072 values per image, found the number 3073");
	/* Labels: too large, negative, too few, none. */
	size_t label = fine + 13 + 2 + 3 + 1; /* text, PUT, list with PUT, MARK */
	SPOIL(label, 2, "Kd");
	refused_at(label, "image 0 has label 100; expected 0 to 99");
	SPOIL(label, 2, "J\xff\xff\xff\xff");
	refused_at(label, "image 0 has label -1; expected 0 to 99");
	SPOIL(label, 2, "");
	refused(MURAL_DATA_CIFAR100, "/train", "expected as many labels as images, 3, found 2");
	SPOIL(label, 2, "N");
	refused_at(label, "expected a number in this list, found None");
	SPOIL(label, 2, "U\x01x");
	refused_at(label, "expected a number in this list, found 'x'");
	SPOIL(fine + 2, 11, "filenames\x00\x00");
	refused_at(fine, "each once");
	/* Behind the end. */
	file = test_file_read(PY100, "train", &n);
	free(file);
	SPOIL(n, 0, "more");
	refused_at(n, "expected the end of the file behind the pickle, found 4 more bytes");
}

/* A file that ends anywhere, and any single wrong byte outside the pixels, is refused or read, and never worse. */
static void cut_anywhere(void **state)
{
	(void)state;
	size_t n;
	uint8_t *file = test_file_read(PY100, "train", &n);
	unsigned refusals = 0;
	for (size_t length = 0; length<n; length += length> 450 && length + 200 < n ? 97 : 1) {
		mural_data *data;
		mural_error err = {0};
		test_file_write(folder, "train", file, length);
		refusals++;
		assert_int_equal(open_as(&data, folder, MURAL_DATA_CIFAR100, MURAL_SPLIT_TRAIN, &err), MURAL_DATA);
		assert_non_null(strstr(err.where, "/train"));
	}
	assert_true(refusals > 500);
	for (size_t i = 0; i < 400; i++) {
		mural_data *data;
		file[i] ^= 0x41;
		test_file_write(folder, "train", file, n);
		if (open_as(&data, folder, MURAL_DATA_CIFAR100, MURAL_SPLIT_TRAIN, NULL) == MURAL_OK)
			mural_data_free(data);
		file[i] ^= 0x41;
	}
	free(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(both_versions_are_the_same, make_folder, remove_folder),
	        cmocka_unit_test_setup_teardown(binary_hundred, make_folder, remove_folder),
	        cmocka_unit_test(finds_the_folder_below),
	        cmocka_unit_test(too_few_classes),
	        cmocka_unit_test(surveys),
	        cmocka_unit_test(names_of_fashion_mnist),
	        cmocka_unit_test_setup_teardown(broken_binaries, make_folder, remove_folder),
	        cmocka_unit_test_setup_teardown(hostile_pickles, make_folder, remove_folder),
	        cmocka_unit_test_setup_teardown(wrong_shapes, make_folder, remove_folder),
	        cmocka_unit_test_setup_teardown(cut_anywhere, make_folder, remove_folder),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
