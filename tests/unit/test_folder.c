/* Class folders: which files they list in which order, what labels and pixels come out, what is refused.
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/dataset.h"
#include "data/decode.h"
#include "data/resize.h"
#include "support/data_files.h"

#define PICTURES MU_TEST_SOURCE_DIR "/golden/pictures"

enum { HEIGHT = 6, WIDTH = 9, CHANNELS = 3, PIXELS = HEIGHT * WIDTH * CHANNELS };

/* Folders of the fixture, outer ones first, and its files: where each goes and which picture it is. */
static const char *const folders[] = {"train",      "train/10", "train/2", "train/2/deep", "train/b",
                                      "train/.git", "val",      "val/2",   "val/b"};
static const struct {
	const char *name, *picture;
} files[] = {{"train/10/x.PNG", "rgb.png"},     {"train/2/deep/a.jpg", "rgb420.jpg"},  {"train/2/z.png", "grey.png"},
             {"train/b/one.jpeg", "cmyk.jpg"},  {"train/b/notes.txt", "pictures.txt"}, {"train/b/.hid.png", "rgb.png"},
             {"train/.git/no.png", "grey.png"}, {"val/2/v.png", "palette.png"},        {"val/b/w.jpg", "grey.jpg"}};
#define FOLDERS (sizeof folders / sizeof *folders)
#define FILES (sizeof files / sizeof *files)

static char *root;

static void path_of(char path[1024], const char *name)
{
	snprintf(path, 1024, "%s/%s", root, name);
}

static void add_folder(const char *name)
{
	char path[1024];
	path_of(path, name);
	assert_int_equal(mkdir(path, 0700), 0);
}

static void add_picture(const char *name, const char *picture)
{
	size_t n;
	uint8_t *bytes = test_file_read(PICTURES, picture, &n);
	test_file_write(root, name, bytes, n);
	free(bytes);
}

static void remove_path(const char *name)
{
	char path[1024];
	path_of(path, name);
	remove(path);
}

static int fill(void **state)
{
	(void)state;
	root = test_folder_create();
	for (size_t i = 0; i < FOLDERS; i++)
		add_folder(folders[i]);
	for (size_t i = 0; i < FILES; i++)
		add_picture(files[i].name, files[i].picture);
	return 0;
}

static int empty(void **state)
{
	(void)state;
	for (size_t i = 0; i < FILES; i++)
		remove_path(files[i].name);
	for (size_t i = FOLDERS; i-- > 0;)
		remove_path(folders[i]);
	test_folder_remove(root);
	return 0;
}

static mural_status open_split(mural_data **data, mural_split split, size_t classes, mural_resize resize,
                               mural_error *err)
{
	mural_data_config config = test_data_config(root);
	config.resize = resize;
	return mural_data_open(data, &config, split, 0, CHANNELS, HEIGHT, WIDTH, classes, err);
}

static mural_data *open_good(mural_split split, mural_resize resize)
{
	mural_data *data;
	mural_error err = {0};
	mural_status status = open_split(&data, split, 0, resize, &err);
	assert_string_equal(err.message, "");
	assert_int_equal(status, MURAL_OK);
	return data;
}

/* The picture's pixels by the pieces that have tests of their own. */
static void expected_pixels(const char *picture, mural_resize resize, uint8_t pixels[PIXELS])
{
	mu_picture decoded;
	char path[1024];
	snprintf(path, sizeof path, "%s/%s", PICTURES, picture);
	assert_int_equal(mu_decode_file(&decoded, path, NULL), MURAL_OK);
	mu_image_shape from = {CHANNELS, decoded.height, decoded.width}, to = {CHANNELS, HEIGHT, WIDTH};
	size_t n = decoded.height * decoded.width;
	uint8_t *planes = malloc(n * CHANNELS), *scratch = malloc(n * CHANNELS);
	for (size_t p = 0; p < n; p++)
		for (size_t c = 0; c < CHANNELS; c++)
			planes[c * n + p] = decoded.rgb[p * CHANNELS + c];
	if (resize == MURAL_RESIZE_NONE) {
		mu_fit(from, planes, to, pixels);
	} else {
		static _Alignas(MU_ARENA_ALIGN) uint8_t block[1 << 16];
		mu_arena arena;
		mu_arena_reserve(&arena, "test", block, sizeof block);
		mu_resize r = mu_resize_take(&arena, from, to, (mu_resize_wish){.how = resize});
		mu_resize_prepare(&r);
		mu_resize_run(&r, planes, pixels, scratch);
	}
	free(planes);
	free(scratch);
	mu_picture_release(&decoded);
}

static void check_image(const mural_data *data, uint64_t index, mural_resize resize, const char *picture, int label)
{
	uint8_t pixels[PIXELS], expected[PIXELS];
	int32_t found;
	mural_error err = {0};
	mural_status status = mu_data_read(data, index, pixels, &found, &err);
	if (status != MURAL_OK && strstr(err.message, "this build cannot read"))
		return;
	assert_int_equal(status, MURAL_OK);
	assert_int_equal(found, label);
	expected_pixels(picture, resize, expected);
	assert_memory_equal(pixels, expected, PIXELS);
}

static void lists_and_reads(void **state)
{
	(void)state;
	for (mural_resize resize = MURAL_RESIZE_NONE; resize <= MURAL_RESIZE_SQUASH; resize++) {
		mural_data *train = open_good(MURAL_SPLIT_TRAIN, resize), *test = open_good(MURAL_SPLIT_TEST, resize);
		const mural_data_facts *facts = mural_data_get_facts(train);
		assert_string_equal(facts->name, "folder");
		assert_int_equal(facts->images, 4);
		assert_int_equal(facts->height, HEIGHT);
		assert_int_equal(facts->width, WIDTH);
		assert_true(facts->any_size);
		/* Sorted by bytes: 10 is before 2. */
		assert_int_equal(facts->classes, 3);
		assert_string_equal(mural_data_class_name(train, 0), "10");
		assert_string_equal(mural_data_class_name(train, 1), "2");
		assert_string_equal(mural_data_class_name(test, 2), "b");
		check_image(train, 0, resize, "rgb.png", 0);
		check_image(train, 1, resize, "grey.png", 1);
		check_image(train, 2, resize, "rgb420.jpg", 1);
		check_image(train, 3, resize, "cmyk.jpg", 2);
		/* The test split has no class 10, and keeps the numbers. */
		assert_int_equal(test->facts.images, 2);
		check_image(test, 0, resize, "palette.png", 1);
		check_image(test, 1, resize, "grey.jpg", 2);
		assert_float_equal(test->mean[0], 0.485, 1e-6);
		assert_float_equal(test->std[2], 0.225, 1e-6);
		mural_data_free(train);
		mural_data_free(test);
	}
}

static void refused(mural_split split, size_t classes, const char *where, const char *words)
{
	mural_data *data;
	mural_error err = {0};
	mural_status status = open_split(&data, split, classes, MURAL_RESIZE_BILINEAR, &err);
	if (status != MURAL_DATA || !strstr(err.where, where) || !strstr(err.message, words))
		print_error("message: %s\nwhere: %s\n", err.message, err.where);
	assert_int_equal(status, MURAL_DATA);
	assert_null(data);
	assert_non_null(strstr(err.where, where));
	assert_non_null(strstr(err.message, words));
}

static void bad_folders(void **state)
{
	(void)state;
	refused(MURAL_SPLIT_TRAIN, 2, "/train",
	        "3 classes are too many for the model's 2: set --classes to at least 3");
	add_folder("val/c");
	refused(MURAL_SPLIT_TEST, 0, "/val", "the class 'c' is not among the 3 classes to train on");
	remove_path("val/c");
	add_folder("train/a");
	refused(MURAL_SPLIT_TRAIN, 0, "/train/a", "expected PNG or JPEG images of this class, found none");
	remove_path("train/a");
	add_picture("train/b/two.webp", "grey.png");
	refused(MURAL_SPLIT_TRAIN, 0, "/train/b/two.webp", "expected PNG or JPEG; other images cannot be read yet");
	remove_path("train/b/two.webp");
	char link[1024];
	path_of(link, "train/b/round");
	assert_int_equal(symlink("..", link), 0);
	refused(MURAL_SPLIT_TRAIN, 0, "/train/b/round", "is there a link in a circle?");
	remove_path("train/b/round");
	assert_int_equal(symlink("nowhere.png", link), 0);
	refused(MURAL_SPLIT_TRAIN, 0, "/train/b/round", "cannot look at the file: No such file");
	remove_path("train/b/round");
	/* Messages and tables could not tell it from another, and its images would not be found. */
	add_folder("train/li\nne");
	add_picture("train/li\nne/0.png", "grey.png");
	refused(MURAL_SPLIT_TRAIN, 0, "/train", "the class folder 'li?ne' has a character");
	remove_path("train/li\nne/0.png");
	remove_path("train/li\nne");
	mural_data *data;
	mural_data_config config = test_data_config(root);
	mural_error err = {0};
	assert_int_equal(mural_data_open(&data, &config, MURAL_SPLIT_TRAIN, 0, 1, 8, 8, 0, &err), MURAL_USAGE);
	assert_non_null(strstr(err.message, "set --channels to 3"));
}

static mural_status open_beside(mural_data **data, mural_split split, const char *validation, mural_error *err)
{
	mural_data_config config = test_data_config(root);
	snprintf(config.validation_path, sizeof config.validation_path, "%.900s/%s", root, validation);
	return mural_data_open(data, &config, split, 0, CHANNELS, HEIGHT, WIDTH, 0, err);
}

static void expect_words(mural_split split, const char *validation, mural_status status, const char *words)
{
	mural_data *data;
	mural_error err = {0};
	assert_int_equal(open_beside(&data, split, validation, &err), status);
	if (!strstr(err.message, words))
		fail_msg("expected '%s' in '%s'", words, err.message);
}

/* Validation images in a folder of classes beside the others: with the training's numbers, and never the test set. */
static void a_folder_of_validation_images(void **state)
{
	(void)state;
	mural_data *data;
	expect_words(MURAL_SPLIT_TEST, "val", MURAL_DATA, "not the folder of the validation images");
	add_folder("test");
	add_folder("test/10");
	add_picture("test/10/t.png", "rgb.png");
	assert_int_equal(open_beside(&data, MURAL_SPLIT_VALIDATION, "val", NULL), MURAL_OK);
	assert_int_equal(data->facts.images, 2);
	assert_int_equal(data->facts.classes, 3);
	assert_string_equal(mural_data_class_name(data, 0), "10");
	assert_int_equal(mural_data_label(data, 0), 1);
	check_image(data, 0, MURAL_RESIZE_BILINEAR, "palette.png", 1);
	check_image(data, 1, MURAL_RESIZE_BILINEAR, "grey.jpg", 2);
	mural_data_free(data);
	assert_int_equal(open_beside(&data, MURAL_SPLIT_TEST, "val", NULL), MURAL_OK);
	assert_int_equal(data->facts.images, 1);
	check_image(data, 0, MURAL_RESIZE_BILINEAR, "rgb.png", 0);
	mural_data_free(data);
	/* Without it the first name is the test set, as ever. */
	data = open_good(MURAL_SPLIT_TEST, MURAL_RESIZE_BILINEAR);
	assert_int_equal(data->facts.images, 2);
	mural_data_free(data);
	add_folder("val/new");
	expect_words(MURAL_SPLIT_VALIDATION, "val", MURAL_DATA, "the class 'new' is not among the 3 classes");
	remove_path("val/new");
	expect_words(MURAL_SPLIT_VALIDATION, "", MURAL_USAGE, "the run's own data set");
	expect_words(MURAL_SPLIT_VALIDATION, "nothing", MURAL_DATA, "cannot open the data folder");
	remove_path("test/10/t.png");
	remove_path("test/10");
	remove_path("test");
}

static void a_bad_image_is_named(void **state)
{
	(void)state;
	test_file_write(root, "train/2/z.png", "\x89PNG\r\n\x1a\n\0\0\0", 11);
	mural_data *data = open_good(MURAL_SPLIT_TRAIN, MURAL_RESIZE_BILINEAR);
	uint8_t pixels[PIXELS];
	int32_t label;
	mural_error err = {0};
	assert_int_equal(mu_data_read(data, 1, pixels, &label, &err), MURAL_DATA);
	assert_non_null(strstr(err.where, "/train/2/z.png"));
	mural_data_free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(lists_and_reads, fill, empty),
	        cmocka_unit_test_setup_teardown(bad_folders, fill, empty),
	        cmocka_unit_test_setup_teardown(a_folder_of_validation_images, fill, empty),
	        cmocka_unit_test_setup_teardown(a_bad_image_is_named, fill, empty),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
