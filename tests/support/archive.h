/* Small ZIP archives, right and wrong ones, for tests. SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_ARCHIVE_H
#define TESTS_SUPPORT_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEST_ARCHIVE_MEMBERS 8

typedef struct test_member {
	const char *name;
	const void *bytes;
	size_t n;
	bool deflate;
	size_t more; /* bytes that the table claims beyond the truth */
} test_member;

/* The least significant byte first; moves *at on. */
void test_put(char **at, uint64_t value, unsigned bytes);

/* malloc'ed; *n bytes. At most TEST_ARCHIVE_MEMBERS members. */
char *test_archive(const test_member *members, size_t n_members, size_t *n);

#endif
