/* XXH64 against published sums and against itself in pieces. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/checksum.h"

static void known_sums(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint64_t sum;
	} cases[] = {
	        {"", 0xef46db3751d8e999u},
	        {"a", 0xd24ec4f1a98c6e5bu},
	        {"abc", 0x44bc2cf5ad770999u},
	        {"Nobody inspects the spammish repetition", 0xfbcea83c8a378bf1u},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(mu_checksum_of(cases[i].text, strlen(cases[i].text)), cases[i].sum);
}

static void pieces_make_the_whole(void **state)
{
	(void)state;
	unsigned char bytes[300];
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (unsigned char)(i * 37 + 5);
	for (size_t n = 0; n <= sizeof bytes; n += 7)
		for (size_t piece = 1; piece < 70; piece += 4) {
			mu_checksum sum;
			mu_checksum_init(&sum);
			for (size_t at = 0; at < n; at += piece)
				mu_checksum_add(&sum, bytes + at, n - at < piece ? n - at : piece);
			assert_int_equal(mu_checksum_value(&sum), mu_checksum_of(bytes, n));
		}
}

/* By hand: the sum of the pieces' sums, each written as its digits are read. */
static uint64_t piecewise(const unsigned char *bytes, size_t n, size_t piece)
{
	unsigned char digits[8 * 64];
	uint64_t sums[64];
	size_t k = 0;
	for (size_t at = 0; at < n; at += piece, k++) {
		sums[k] = mu_checksum_of(bytes + at, n - at < piece ? n - at : piece);
		for (int i = 0; i < 8; i++)
			digits[8 * k + (size_t)i] = (unsigned char)(sums[k] >> (56 - 8 * i));
	}
	assert_int_equal(mu_checksum_of_pieces(sums, k), mu_checksum_of(digits, 8 * k));
	return mu_checksum_of(digits, 8 * k);
}

static void runs_in_pieces(void **state)
{
	(void)state;
	unsigned char bytes[300];
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (unsigned char)(i * i);
	for (size_t piece = 5; piece < 310; piece += 5)
		for (size_t n = 0; n <= sizeof bytes; n += 25)
			for (size_t call = 1; call < 200; call += 33) {
				mu_checksum_run run;
				mu_checksum_run_init(&run, piece);
				for (size_t at = 0; at < n; at += call)
					mu_checksum_run_add(&run, bytes + at, n - at < call ? n - at : call);
				assert_int_equal(mu_checksum_run_value(&run), piecewise(bytes, n, piece));
				mu_checksum_run_init(&run, 0);
				mu_checksum_run_add(&run, bytes, n);
				assert_int_equal(mu_checksum_run_value(&run), mu_checksum_of(bytes, n));
			}
}

/* Copying is adding, wherever a block, a line or a word begins and ends; nothing beside it is touched. */
static void copies(void **state)
{
	(void)state;
	static const size_t sizes[] = {0, 1, 7, 31, 32, 33, 63, 64, 65, 127, 200, 5000};
	enum { ROOM = 5200 };
	_Alignas(64) unsigned char from[ROOM], to[ROOM], before[ROOM];
	for (size_t i = 0; i < ROOM; i++)
		from[i] = (unsigned char)(i * 2654435761u >> 9);
	for (size_t first = 0; first < 70; first += 3)
		for (size_t shift = 0; shift < 16; shift += 1)
			for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
				mu_checksum sum;
				size_t n = sizes[s];
				memset(to, 0xAA, ROOM);
				memcpy(before, to, ROOM);
				mu_checksum_init(&sum);
				mu_checksum_add(&sum, from, first);
				mu_checksum_copy(&sum, to + shift, from + first, n);
				assert_int_equal(mu_checksum_value(&sum), mu_checksum_of(from, first + n));
				memcpy(before + shift, from + first, n);
				assert_memory_equal(to, before, ROOM);
			}
}

static void every_bit_counts(void **state)
{
	(void)state;
	unsigned char bytes[77] = {0};
	uint64_t whole = mu_checksum_of(bytes, sizeof bytes);
	for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
		bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
		assert_int_not_equal(mu_checksum_of(bytes, sizeof bytes), whole);
		bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
	}
}

static void files(void **state)
{
	(void)state;
	uint64_t bytes, value;
	mural_error err = {0};
	assert_int_equal(mu_checksum_file("/nonexistent/file", 0, &bytes, &value, &err), MURAL_DATA);
	assert_string_equal(err.where, "/nonexistent/file");
	err = (mural_error){0};
	assert_int_equal(mu_checksum_file("/", 0, &bytes, &value, &err), MURAL_FAILED);
	char path[] = "/tmp/mural-checksum-XXXXXX";
	FILE *file = fdopen(mkstemp(path), "w");
	assert_non_null(file);
	fputs("Nobody inspects the spammish repetition", file);
	fclose(file);
	assert_int_equal(mu_checksum_file(path, 0, &bytes, &value, NULL), MURAL_OK);
	assert_int_equal(bytes, 39);
	assert_int_equal(value, 0xfbcea83c8a378bf1u);
	assert_int_equal(mu_checksum_file(path, 10, &bytes, &value, NULL), MURAL_OK);
	assert_int_equal(bytes, 39);
	assert_int_equal(value, piecewise((const unsigned char *)"Nobody inspects the spammish repetition", 39, 10));
	remove(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(known_sums), cmocka_unit_test(pieces_make_the_whole), cmocka_unit_test(runs_in_pieces),
	        cmocka_unit_test(copies),     cmocka_unit_test(every_bit_counts),      cmocka_unit_test(files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
