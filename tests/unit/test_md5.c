/* MD5 against the test suite of RFC 1321. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/md5.h"

static void known_sums(void **state)
{
	(void)state;
	static const struct {
		const char *text, *sum;
	} cases[] = {
	        {"", "d41d8cd98f00b204e9800998ecf8427e"},
	        {"a", "0cc175b9c0f1b6a831c399e269772661"},
	        {"abc", "900150983cd24fb0d6963f7d28e17f72"},
	        {"message digest", "f96b697d7cb7938d525a2f31aaf161d0"},
	        {"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
	         "57edf4a22be3c955ac49da2e2107b67a"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		mu_md5 md5;
		char hex[33];
		mu_md5_init(&md5);
		mu_md5_add(&md5, cases[i].text, strlen(cases[i].text) / 2);
		mu_md5_add(&md5, cases[i].text + strlen(cases[i].text) / 2, (strlen(cases[i].text) + 1) / 2);
		mu_md5_finish(&md5, hex);
		assert_string_equal(hex, cases[i].sum);
	}
	char hex[33];
	mural_error err = {0};
	assert_int_equal(mu_md5_file("/nonexistent/file", hex, &err), MURAL_FAILED);
	assert_string_equal(err.where, "/nonexistent/file");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(known_sums)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
