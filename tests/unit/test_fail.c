/* Failures: the first one stays, context gathers, texts are cut and never overrun. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/version.h"

static void test_first_failure_stays(void **state)
{
	(void)state;
	mural_error err = {0};
	assert_int_equal(mu_fail(&err, MURAL_DATA, "a.gz:16", "expected %d, found %s", 3, "none"), MURAL_DATA);
	assert_int_equal(mu_fail(&err, MURAL_FAILED, "elsewhere", "later"), MURAL_DATA);
	assert_int_equal(err.status, MURAL_DATA);
	assert_string_equal(err.message, "expected 3, found none");
	assert_string_equal(err.where, "a.gz:16");
	assert_string_equal(err.context, "");
	assert_int_equal(mu_fail(NULL, MURAL_USAGE, NULL, "nobody listens"), MURAL_USAGE);
}

static void test_context_gathers(void **state)
{
	(void)state;
	mural_error err = {0};
	mu_context(&err, "nothing failed");
	assert_string_equal(err.context, "");
	mu_context(NULL, "nobody listens");
	mu_fail(&err, MURAL_FAILED, NULL, "no");
	mu_context(&err, "while planning block %d", 17);
	mu_context(&err, "while starting");
	assert_string_equal(err.context, "while planning block 17\nwhile starting\n");
	assert_string_equal(err.where, "");
}

static void test_long_texts_are_cut(void **state)
{
	(void)state;
	mural_error err = {0};
	static char text[5000];
	memset(text, 'x', sizeof text - 1);
	mu_fail(&err, MURAL_FAILED, text, "%s", text);
	for (int i = 0; i < 4; i++)
		mu_context(&err, "%.600s", text);
	assert_int_equal(strlen(err.message), sizeof err.message - 1);
	assert_int_equal(strlen(err.where), sizeof err.where - 1);
	assert_true(strlen(err.context) < sizeof err.context);
	assert_true(strlen(err.context) > 1000);
}

static mural_status fails_halfway(int *reached, mural_error *err)
{
	MU_TRY(MURAL_OK);
	*reached = 1;
	MU_TRY(mu_fail(err, MURAL_PEER, NULL, "gone"));
	*reached = 2;
	return MURAL_OK;
}

static mural_status cleans_up(int *cleaned, mural_error *err)
{
	mural_status status;
	MU_TRY_OUT(mu_fail(err, MURAL_STOPPED, NULL, "enough"));
	*cleaned = -1;
out:
	*cleaned += 1;
	return status;
}

static void test_macros(void **state)
{
	(void)state;
	int reached = 0, cleaned = 0;
	assert_int_equal(fails_halfway(&reached, NULL), MURAL_PEER);
	assert_int_equal(reached, 1);
	assert_int_equal(cleans_up(&cleaned, NULL), MURAL_STOPPED);
	assert_int_equal(cleaned, 1);
}

static void test_bug(void **state)
{
	(void)state;
	mural_error err = {0};
	assert_int_equal(mu_bug(&err, "two and two are five"), MURAL_BUG);
	assert_non_null(strstr(err.message, "bug in Mural " MU_VERSION));
	assert_non_null(strstr(err.message, "test_fail.c:"));
	assert_non_null(strstr(err.message, "two and two are five; please report it"));
}

static void assert_prints(const mural_error *err, const char *want)
{
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);
	assert_non_null(out);
	mural_error_print(err, out);
	fclose(out);
	assert_string_equal(text, want);
	free(text);
}

static void test_print(void **state)
{
	(void)state;
	mural_error err = {0};
	mu_fail(&err, MURAL_USAGE, "run.json:14:3: steps", "too many");
	assert_prints(&err, "mural: too many\n       run.json:14:3: steps\n");
	mu_context(&err, "while reading");
	err.has_rank = true;
	err.rank = 3;
	assert_prints(&err, "mural: rank 3: too many\n       run.json:14:3: steps\n       while reading\n");
}

static void test_exit_codes(void **state)
{
	(void)state;
	assert_int_equal(mural_exit_code(MURAL_OK), 0);
	assert_int_equal(mural_exit_code(MURAL_FAILED), 1);
	assert_int_equal(mural_exit_code(MURAL_BUG), 1);
	assert_int_equal(mural_exit_code(MURAL_USAGE), 2);
	assert_int_equal(mural_exit_code(MURAL_DATA), 3);
	assert_int_equal(mural_exit_code(MURAL_STOPPED), 4);
	assert_string_equal(mural_status_text(MURAL_DATA), "wrong data");
	assert_string_equal(mural_status_text((mural_status)999), "unknown status");
}

static void test_sizes(void **state)
{
	(void)state;
	assert_string_equal(MU_SIZE(0), "0 bytes");
	assert_string_equal(MU_SIZE(1023), "1023 bytes");
	assert_string_equal(MU_SIZE(1024), "1.0 KiB");
	assert_string_equal(MU_SIZE(33500000000), "31.2 GiB");
	assert_string_equal(MU_SIZE(UINT64_MAX), "16.0 EiB");
	const char *one = MU_SIZE(1), *two = MU_SIZE(2), *three = MU_SIZE(3); /* three in one message */
	assert_string_equal(one, "1 bytes");
	assert_string_equal(two, "2 bytes");
	assert_string_equal(three, "3 bytes");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_first_failure_stays),
	        cmocka_unit_test(test_context_gathers),
	        cmocka_unit_test(test_long_texts_are_cut),
	        cmocka_unit_test(test_macros),
	        cmocka_unit_test(test_bug),
	        cmocka_unit_test(test_print),
	        cmocka_unit_test(test_exit_codes),
	        cmocka_unit_test(test_sizes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
