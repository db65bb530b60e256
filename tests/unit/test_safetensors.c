/* safetensors: what is written reads back, what is wrong is refused by name and place. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files.h"
#include "base/safetensors.h"

static char folder[] = "/tmp/mural-safetensors-XXXXXX";
static char path[64];

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof path, "%s/t.safetensors", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

static void write_raw(const void *bytes, size_t n)
{
	FILE *out = fopen(path, "wb");
	assert_non_null(out);
	assert_int_equal(fwrite(bytes, 1, n, out), n);
	assert_int_equal(fclose(out), 0);
}

/* A file of this length field, header and `data` bytes counting up from 0. */
static void write_file(uint64_t length, const char *header, size_t header_bytes, size_t data)
{
	unsigned char bytes[4096];
	assert_true(8 + header_bytes + data <= sizeof bytes);
	for (int i = 0; i < 8; i++)
		bytes[i] = (unsigned char)(length >> 8 * i);
	memcpy(bytes + 8, header, header_bytes);
	for (size_t i = 0; i < data; i++)
		bytes[8 + header_bytes + i] = (unsigned char)i;
	write_raw(bytes, 8 + header_bytes + data);
}

static void refuse(const char *words)
{
	mural_error err = {0};
	mu_safetensors *file = (mu_safetensors *)&err;
	assert_int_equal(mu_safetensors_open(&file, path, &err), MURAL_DATA);
	assert_null(file);
	if (!strstr(err.message, words) && !strstr(err.where, words))
		fail_msg("'%s' at '%s' lacks '%s'", err.message, err.where, words);
	assert_non_null(strstr(err.where, path));
}

static void refuse_header(const char *header, size_t data, const char *words)
{
	write_file(strlen(header), header, strlen(header), data);
	refuse(words);
}

static mu_safetensors *accept_header(const char *header, size_t data)
{
	mural_error err = {0};
	mu_safetensors *file;
	write_file(strlen(header), header, strlen(header), data);
	if (mu_safetensors_open(&file, path, &err) != MURAL_OK)
		fail_msg("%s %s", err.message, err.where);
	return file;
}

static void written_files_read_back(void **state)
{
	(void)state;
	static const float matrix[6] = {1, -2, 3.5f, 0, 1e-30f, 6};
	static const double scalar[1] = {0.1};
	static const uint8_t bytes[3] = {7, 8, 9};
	static const size_t matrix_dims[2] = {2, 3}, byte_dims[1] = {3}, empty_dims[2] = {0, 5};
	mu_safetensors_item items[] = {{"b \"quoted\" \xc3\xa4", MU_F32, 2, matrix_dims, matrix},
	                               {"bytes", MU_U8, 1, byte_dims, bytes},
	                               {"scalar", MU_F64, 0, NULL, scalar},
	                               {"a", MU_F32, 2, empty_dims, matrix}};
	mural_error err = {0};
	mu_safetensors *file;
	assert_int_equal(mu_safetensors_write(path, items, 4, &err), MURAL_OK);
	assert_int_equal(mu_safetensors_open(&file, path, &err), MURAL_OK);
	assert_int_equal(mu_safetensors_count(file), 4);
	assert_string_equal(mu_safetensors_at(file, 0)->name, "a");
	assert_string_equal(mu_safetensors_at(file, 3)->name, "scalar");

	float matrix_back[6];
	const mu_safetensor *found = mu_safetensors_find(file, "b \"quoted\" \xc3\xa4");
	assert_non_null(found);
	assert_int_equal(found->type, MU_F32);
	assert_int_equal(found->n_dims, 2);
	assert_int_equal(found->dims[0], 2);
	assert_int_equal(found->dims[1], 3);
	assert_int_equal(found->bytes, sizeof matrix);
	assert_int_equal(mu_safetensors_read(file, found, matrix_back, &err), MURAL_OK);
	assert_memory_equal(matrix_back, matrix, sizeof matrix);

	double scalar_back;
	found = mu_safetensors_find(file, "scalar");
	assert_int_equal(found->n_dims, 0);
	assert_int_equal(found->begin, 0); /* widest type first */
	assert_int_equal(mu_safetensors_read(file, found, &scalar_back, &err), MURAL_OK);
	assert_true(scalar_back == scalar[0]);
	assert_null(mu_safetensors_find(file, "nothing"));
	mu_safetensors_free(file);
}

static void notes_are_kept(void **state)
{
	(void)state;
	static const size_t one[1] = {1};
	static const float x[1] = {1};
	mu_safetensors_item items[] = {{"x", MU_F32, 1, one, x}};
	const mu_safetensors_note notes[] = {{"x", "0 1 7"}, {"format_version", "1"}};
	mu_safetensors *file;
	assert_int_equal(mu_safetensors_write_noted(path, items, 1, notes, 2, NULL), MURAL_OK);
	assert_int_equal(mu_safetensors_open(&file, path, NULL), MURAL_OK);
	assert_string_equal(mu_safetensors_note_of(file, "x"), "0 1 7");
	assert_string_equal(mu_safetensors_note_of(file, "format_version"), "1");
	assert_string_equal(mu_safetensors_note_of(file, "format"), "pt");
	assert_null(mu_safetensors_note_of(file, "y"));
	mu_safetensors_free(file);
}

/* Byte for byte, as the format's own writer lays it out. */
static void layout_on_disk(void **state)
{
	(void)state;
	static const float x[2] = {1, 2};
	static const uint8_t y[1] = {3};
	static const size_t two[1] = {2}, one[1] = {1};
	mu_safetensors_item items[] = {{"y", MU_U8, 1, one, y}, {"x", MU_F32, 1, two, x}};
	static const char header[] = "{\"__metadata__\":{\"format\":\"pt\"},"
	                             "\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
	                             "\"y\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[8,9]}}";
	assert_int_equal(mu_safetensors_write(path, items, 2, NULL), MURAL_OK);
	unsigned char bytes[512];
	FILE *in = fopen(path, "rb");
	assert_non_null(in);
	size_t n = fread(bytes, 1, sizeof bytes, in);
	fclose(in);
	size_t padded = (strlen(header) + 7) / 8 * 8;
	assert_int_equal(n, 8 + padded + 9);
	assert_int_equal(bytes[0], padded);
	assert_memory_equal(bytes + 1, "\0\0\0\0\0\0\0", 7);
	assert_memory_equal(bytes + 8, header, strlen(header));
	for (size_t i = strlen(header); i < padded; i++)
		assert_int_equal(bytes[8 + i], ' ');
	assert_memory_equal(bytes + 8 + padded, x, sizeof x);
	assert_int_equal(bytes[8 + padded + 8], 3);
}

/* Each byte of the file by the parts is the byte that was written, and a part's rest leads to the next one. */
static void parts_are_the_file(void **state)
{
	(void)state;
	static const float x[3] = {1, 2, 3};
	static const uint8_t y[5] = {4, 5, 6, 7, 8};
	static const size_t three[1] = {3}, five[1] = {5}, none[1] = {0};
	mu_safetensors_item items[] = {
	        {"y", MU_U8, 1, five, y}, {"empty", MU_F32, 1, none, x}, {"x", MU_F32, 1, three, x}};
	mu_safetensors_layout layout;
	assert_int_equal(mu_safetensors_lay_out(&layout, items, 3, NULL, 0, NULL), MURAL_OK);
	assert_int_equal(layout.n_parts, 3);
	assert_int_equal(mu_safetensors_write(path, items, 3, NULL), MURAL_OK);
	char *bytes;
	size_t n;
	assert_int_equal(mu_file_read(path, "file", 1 << 20, MURAL_DATA, &bytes, &n, NULL), MURAL_OK);
	assert_int_equal(n, layout.bytes);
	for (size_t at = 0; at < n; at++) {
		uint64_t there;
		const char *part = mu_safetensors_part_at(&layout, at, &there);
		assert_int_equal(*part, bytes[at]);
		assert_memory_equal(part, bytes + at, there);
		assert_true(at + there == n || at + there == layout.parts[1].begin ||
		            at + there == layout.parts[2].begin);
	}
	free(bytes);
	mu_safetensors_layout_release(&layout);
	mu_safetensors_layout_release(&layout);
}

static void twins_are_a_bug(void **state)
{
	(void)state;
	static const float x[1] = {1};
	mural_error err = {0};
	mu_safetensors_item items[] = {{"x", MU_F32, 0, NULL, x}, {"x", MU_F32, 0, NULL, x}};
	assert_int_equal(mu_safetensors_write(path, items, 2, &err), MURAL_BUG);
}

static void unusual_files_are_accepted(void **state)
{
	(void)state;
	mu_safetensors_free(accept_header("{}", 0));
	mu_safetensors_free(accept_header("{}      ", 0));
	mu_safetensors_free(accept_header("{\"__metadata__\":{\"a\":\"b\"}}", 0));
	mu_safetensors *file = accept_header("{\"z\":{\"dtype\":\"F8_E4M3\",\"shape\":[4],\"data_offsets\":[0,4]},"
	                                     "\"e\":{\"dtype\":\"F32\",\"shape\":[0,9],\"data_offsets\":[4,4]},"
	                                     "\"f\":{\"shape\":[6],\"dtype\":\"F4\",\"data_offsets\":[4,7]}}",
	                                     7);
	assert_int_equal(mu_safetensors_find(file, "z")->type, MU_DTYPE_COUNT);
	assert_string_equal(mu_safetensors_find(file, "z")->dtype, "F8_E4M3");
	assert_int_equal(mu_safetensors_find(file, "e")->bytes, 0);
	assert_int_equal(mu_safetensors_find(file, "f")->bytes, 3);
	mu_safetensors_free(file);
}

static void wrong_containers_are_refused(void **state)
{
	(void)state;
	mural_error err = {0};
	mu_safetensors *file;
	unlink(path);
	refuse("No such file");
	assert_int_equal(mu_safetensors_open(&file, folder, &err), MURAL_DATA);
	assert_non_null(strstr(err.message, "not a regular file"));
	write_raw("", 0);
	refuse("it has 0 bytes");
	write_raw("1234567", 7);
	refuse("it has 7 bytes");
	write_file(100, "{}", 2, 0);
	refuse("a header of 100 bytes in a file of 10");
	write_file(UINT64_MAX, "{}", 2, 0);
	refuse("a header of 18446744073709551615 bytes");
	write_file(0, "", 0, 0);
	refuse("should begin the header with '{'");
	refuse_header(" {}", 0, "should begin the header with '{'");
	refuse_header("[]", 0, "should begin the header with '{'");
	write_file(100000001, "{}", 2, 0);
	assert_int_equal(truncate(path, 100000100), 0); /* long enough, but beyond the format's limit */
	refuse("headers have at most 100000000");
}

#define X_4 "{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}"

static void wrong_headers_are_refused(void **state)
{
	(void)state;
	refuse_header("{", 0, ":1:");
	refuse_header("{\"x\":" X_4 ",}", 4, ":1:");
	refuse_header("{x:" X_4 "}", 4, ":1:");
	refuse_header("{\"\xff\":" X_4 "}", 4, path);
	refuse_header("{\"x\":" X_4 ",\"x\":" X_4 "}", 4, "x");
	refuse_header("{\"x\":1}", 0, "tensor 'x'");
	refuse_header("{\"x\":{}}", 0, "has no dtype");
	refuse_header("{\"x\":{\"dtype\":\"F33\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "unknown dtype 'F33'");
	refuse_header("{\"x\":{\"dtype\":\"U8\",\"shape\":4,\"data_offsets\":[0,4]}}", 4, "has no shape");
	refuse_header("{\"x\":{\"dtype\":\"U8\",\"shape\":[-4],\"data_offsets\":[0,4]}}", 4, "dim 0");
	refuse_header("{\"x\":{\"dtype\":\"U8\",\"shape\":[1,4.0],\"data_offsets\":[0,4]}}", 4, "dim 1");
	refuse_header("{\"x\":{\"dtype\":\"U8\",\"shape\":[\"4\"],\"data_offsets\":[0,4]}}", 4, "dim 0");
	refuse_header("{\"x\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0]}}", 4, "data_offsets");
	refuse_header("{\"x\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4,4]}}", 4, "data_offsets");
	refuse_header("{\"x\":{\"dtype\":\"U8\",\"shape\":[4]}}", 4, "data_offsets");
	refuse_header("{\"x\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,0]}}", 4, "bytes 4 to 0");
	refuse_header("{\"x\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,5]}}", 4, "which has 4 bytes");
	refuse_header("{\"__metadata__\":{\"a\":1}}", 0, "'a'");
	refuse_header("{\"__metadata__\":[]}", 0, "no object");
}

static void wrong_sizes_are_refused(void **state)
{
	(void)state;
	refuse_header("{\"x\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4, "should have 16 bytes");
	refuse_header("{\"x\":{\"dtype\":\"U8\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,4]}}", 4, "2^64");
	refuse_header("{\"x\":{\"dtype\":\"F64\",\"shape\":[288230376151711744,2],\"data_offsets\":[0,0]}}", 0, "2^64");
	refuse_header("{\"x\":{\"dtype\":\"U8\",\"shape\":[18446744073709551616],\"data_offsets\":[0,4]}}", 4, "dim 0");
	refuse_header("{\"x\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,1]}}", 1, "inside a byte");
	refuse_header("{\"x\":" X_4 "}", 5, "end at byte 4");
	refuse_header("{}", 1, "end at byte 0");
	refuse_header("{\"x\":" X_4 ",\"y\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[5,9]}}", 9, "hole");
	refuse_header("{\"x\":" X_4 ",\"y\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[3,7]}}", 7, "overlaps");
	refuse_header("{\"y\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[1,5]}}", 5, "hole");
	refuse_header("{\"x\":" X_4 ",\"y\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[2,2]}}", 4, "overlaps");
}

/* Every cut of a good file and every changed byte of its header: refused or read, never more. */
static void damaged_files_do_no_harm(void **state)
{
	(void)state;
	static const char header[] =
	        "{\"x\":" X_4 ",\"y\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[4,12]}}";
	size_t n = strlen(header);
	for (size_t cut = 0; cut < 8 + n + 12; cut++) {
		mu_safetensors *file;
		write_file(n, header, n, 12);
		assert_int_equal(truncate(path, (off_t)cut), 0);
		assert_int_equal(mu_safetensors_open(&file, path, NULL), MURAL_DATA);
	}
	for (size_t at = 0; at < n; at++)
		for (int bit = 0; bit < 8; bit++) {
			char copy[sizeof header];
			memcpy(copy, header, sizeof header);
			copy[at] ^= (char)(1 << bit);
			write_file(n, copy, n, 12);
			mu_safetensors *file;
			if (mu_safetensors_open(&file, path, NULL) != MURAL_OK)
				continue;
			unsigned char data[12];
			for (size_t i = 0; i < mu_safetensors_count(file); i++) {
				const mu_safetensor *tensor = mu_safetensors_at(file, i);
				assert_true(tensor->bytes <= sizeof data);
				assert_int_equal(mu_safetensors_read(file, tensor, data, NULL), MURAL_OK);
			}
			mu_safetensors_free(file);
		}
}

static void a_file_that_shrinks_is_noticed(void **state)
{
	(void)state;
	mural_error err = {0};
	unsigned char data[4];
	static const char header[] = "{\"x\":" X_4 "}";
	size_t end = 8 + strlen(header) + 2;
	mu_safetensors *file = accept_header(header, 4);
	const mu_safetensor *tensor = mu_safetensors_find(file, "x");
	assert_int_equal(mu_safetensors_read(file, tensor, data, &err), MURAL_OK);
	assert_memory_equal(data, "\0\1\2\3", 4);
	assert_int_equal(truncate(path, (off_t)end), 0);
	assert_int_equal(mu_safetensors_read(file, tensor, data, &err), MURAL_DATA);
	char words[64];
	snprintf(words, sizeof words, "ends at byte %zu,", end);
	assert_non_null(strstr(err.message, words));
	mu_safetensors_free(file);
	mu_safetensors_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(written_files_read_back),
	        cmocka_unit_test(notes_are_kept),
	        cmocka_unit_test(layout_on_disk),
	        cmocka_unit_test(parts_are_the_file),
	        cmocka_unit_test(twins_are_a_bug),
	        cmocka_unit_test(unusual_files_are_accepted),
	        cmocka_unit_test(wrong_containers_are_refused),
	        cmocka_unit_test(wrong_headers_are_refused),
	        cmocka_unit_test(wrong_sizes_are_refused),
	        cmocka_unit_test(damaged_files_do_no_harm),
	        cmocka_unit_test(a_file_that_shrinks_is_noticed),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
