/* PNG and JPEG give Pillow's pixels; what cannot be decoded is refused in words, and nothing leaks.
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "data/decode.h"
#include "support/data_files.h"

#define PICTURES MU_TEST_SOURCE_DIR "/golden/pictures"

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

static mural_status decode(mu_picture *picture, const char *in, const char *name, mural_error *err)
{
	char path[1024];
	snprintf(path, sizeof path, "%s/%s", in, name);
	return mu_decode_file(picture, path, err);
}

/* Libraries are optional: a build without one says so. */
static bool left_out(const mural_error *err)
{
	return strstr(err->message, "this build cannot read") != NULL;
}

static void equals_pillow(void **state)
{
	(void)state;
	FILE *in = fopen(PICTURES "/pictures.txt", "r");
	assert_non_null(in);
	char name[64];
	size_t height, width;
	unsigned crc, pictures = 0, skipped = 0;
	while (fscanf(in, "%63s %zu %zu %u", name, &height, &width, &crc) == 4) {
		mu_picture picture;
		mural_error err = {0};
		mural_status status = decode(&picture, PICTURES, name, &err);
		pictures++;
		if (status != MURAL_OK && left_out(&err)) {
			skipped++;
			continue;
		}
		if (status != MURAL_OK)
			print_error("%s: %s\n", name, err.message);
		assert_int_equal(status, MURAL_OK);
		assert_int_equal(picture.height, height);
		assert_int_equal(picture.width, width);
		unsigned got = (unsigned)crc32(0, picture.rgb, (uInt)(height * width * 3));
		if (got != crc)
			print_error("%s differs\n", name);
		assert_int_equal(got, crc);
		mu_picture_release(&picture);
	}
	fclose(in);
	assert_int_equal(pictures, 18);
	if (skipped)
		print_message("%u of %u pictures: this build has no library for them\n", skipped, pictures);
}

static void refused(const char *name, const char *where, const char *words)
{
	mu_picture picture;
	mural_error err = {0};
	mural_status status = decode(&picture, folder, name, &err);
	if (left_out(&err))
		return;
	if (status != MURAL_DATA || !strstr(err.where, where) || !strstr(err.message, words))
		print_error("message: %s\nwhere: %s\n", err.message, err.where);
	assert_int_equal(status, MURAL_DATA);
	assert_non_null(strstr(err.where, where));
	assert_non_null(strstr(err.message, words));
	assert_null(picture.rgb);
}

/* A picture cut anywhere is refused. */
static void cut_pictures(void **state)
{
	(void)state;
	static const char *const names[] = {"rgb.png", "palette.png", "rgb420.jpg", "progressive.jpeg", "cmyk.jpg"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		size_t n;
		uint8_t *bytes = test_file_read(PICTURES, names[i], &n);
		bool png = strstr(names[i], "png") != NULL;
		/* Behind the last pixel come 12 bytes in a PNG and 2 in a JPEG. */
		for (size_t length = 0; length < n - (png ? 12 : 2); length += 1 + n / 97) {
			mu_picture picture;
			mural_error err = {0};
			test_file_write(folder, names[i], bytes, length);
			mural_status status = decode(&picture, folder, names[i], &err);
			if (status != MURAL_DATA)
				print_error("%s of %zu bytes\n", names[i], length);
			assert_int_equal(status, MURAL_DATA);
			assert_non_null(err.where[0] ? err.where : NULL);
		}
		free(bytes);
	}
}

static void damaged_pictures(void **state)
{
	(void)state;
	size_t n;
	uint8_t *png = test_file_read(PICTURES, "rgb.png", &n);
	test_file_write(folder, "cut.png", png, 60);
	refused("cut.png", "/cut.png:", "the PNG image is cut; fetch the file again");
	png[60] ^= 1; /* among the pixels: the checksum is wrong then */
	test_file_write(folder, "sum.png", png, n);
	refused("sum.png", "/sum.png:", "the PNG image is damaged at or before this byte");
	free(png);
	uint8_t *jpeg = test_file_read(PICTURES, "rgb420.jpg", &n);
	test_file_write(folder, "cut.jpg", jpeg, n - 40);
	char where[32];
	snprintf(where, sizeof where, "/cut.jpg:%zu", n - 40);
	refused("cut.jpg", where, "the JPEG image is cut (Premature end of JPEG file); fetch the file again");
	free(jpeg);
	test_file_write(folder, "gif.png", "GIF89a....", 10);
	refused("gif.png", "/gif.png:0",
	        "neither PNG nor JPEG: expected it to start with 89 50 4e 47 or ff d8 ff, found "
	        "47 49 46 38");
	test_file_write(folder, "empty.jpg", "", 0);
	refused("empty.jpg", "/empty.jpg:0", "expected an image, found a file of 0 bytes");
	refused("none.png", "/none.png", "cannot open the image: No such file or directory");
}

/* A header that promises more than memory is refused before anything is allocated. */
static void huge_pictures(void **state)
{
	(void)state;
	static const uint8_t header[] = {0x89, 'P', 'N', 'G',  '\r', '\n', 0x1a, '\n', 0,    0, 0, 13, 'I', 'H', 'D',
	                                 'R',  0,   0,   0x7f, 0xff, 0,    0,    0x7f, 0xff, 8, 2, 0,  0,   0};
	uint8_t bytes[64] = {0};
	memcpy(bytes, header, sizeof header);
	unsigned long sum = crc32(0, header + 12, 17);
	for (int i = 0; i < 4; i++)
		bytes[sizeof header + (size_t)i] = (uint8_t)(sum >> (24 - 8 * i));
	test_file_write(folder, "huge.png", bytes, sizeof bytes);
	refused("huge.png", "/huge.png", "at most 178956970 pixels in all, found an image of 32767 x 32767");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(equals_pillow),
	        cmocka_unit_test_setup_teardown(cut_pictures, make_folder, remove_folder),
	        cmocka_unit_test_setup_teardown(damaged_pictures, make_folder, remove_folder),
	        cmocka_unit_test_setup_teardown(huge_pictures, make_folder, remove_folder),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
