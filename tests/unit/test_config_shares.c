/* mural.balance: its spellings, the batch triangle with unequal shares, and what is refused, with the arithmetic.
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine/shares.h"
#include "support/config_text.h"

static void texts(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int kind; /* -1: none */
	} cases[] = {{"equal", MU_SHARES_EQUAL},
	             {"auto", MU_SHARES_AUTO},
	             {"replay:runs/a/balance.csv", MU_SHARES_REPLAY},
	             {"replay:", -1},
	             {"5,1", MU_SHARES_GIVEN},
	             {" 5 , 1 ", MU_SHARES_GIVEN},
	             {"7", MU_SHARES_GIVEN},
	             {"", -1},
	             {"5,", -1},
	             {",5", -1},
	             {"5 1", -1},
	             {"-5,6", -1},
	             {"1.5,2", -1},
	             {"2147483648", -1},
	             {"99999999999999999999", -1},
	             {"fast", -1}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		mu_shares_kind kind = MU_SHARES_EQUAL;
		const bool known = mu_shares_kind_of(cases[i].text, &kind);
		if (known != (cases[i].kind >= 0) || (known && (int)kind != cases[i].kind))
			fail_msg("'%s' is read as %d", cases[i].text, known ? (int)kind : -1);
	}
	int share_R[2] = {-1, -1};
	assert_int_equal(mu_shares_read("5, 0,2147483647", share_R, 2), 3);
	assert_int_equal(share_R[0], 5);
	assert_int_equal(share_R[1], 0);
}

static void triangles(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int ranks;
		uint64_t train, micro, accumulation;
		const char *shares;
	} good[] = {
	        {"mural: {balance: [5, 1]}", 2, 6, 5, 1, "5,1"},
	        {"train_batch_size: 6\n mural: {balance: \"5, 1\"}", 2, 6, 5, 1, "5, 1"},
	        {"train_batch_size: 6\n train_micro_batch_size_per_gpu: 2\n mural: {balance: [5, 1]}", 2, 6, 2, 3,
	         "5,1"},
	        {"gradient_accumulation_steps: 3\n mural: {balance: [5, 1]}", 2, 6, 2, 3, "5,1"},
	        {"train_batch_size: 80\n train_micro_batch_size_per_gpu: 16\n gradient_accumulation_steps: 2\n "
	         "mural: {balance: [24, 24, 24, 8, 0]}",
	         5, 80, 16, 2, "24,24,24,8,0"},
	        {"train_batch_size: 7\n mural: {balance: \"auto\"}", 2, 7, 7, 1, "auto"},
	        {"train_batch_size: 80\n mural: {balance: \"auto\"}", 5, 80, 32, 1, "auto"},
	        {"train_micro_batch_size_per_gpu: 16\n mural: {balance: \"auto\"}", 5, 80, 16, 1, "auto"},
	        {"train_batch_size: 80\n train_micro_batch_size_per_gpu: 4\n mural: {balance: \"auto\"}", 5, 80, 4, 4,
	         "auto"},
	        {"train_batch_size: 24\n mural: {balance: \"equal\"}", 3, 24, 8, 1, "equal"},
	};
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		mu_test_config c = mu_test_config_text(good[i].text, NULL, good[i].ranks);
		if (c.status != MURAL_OK)
			fail_msg("%s\n%s", good[i].text, c.said);
		const mural_batch_config *b = &c.config.batch;
		if (b->train_batch != good[i].train || b->micro_batch != good[i].micro ||
		    b->accumulation != good[i].accumulation || strcmp(c.config.balance.shares, good[i].shares) != 0)
			fail_msg("%s\ngives %llu, %llu, %llu, '%s'", good[i].text, (unsigned long long)b->train_batch,
			         (unsigned long long)b->micro_batch, (unsigned long long)b->accumulation,
			         c.config.balance.shares);
		/* what is shown resolves to the same, without a warning */
		mu_test_config again = mu_test_config_text(c.shown, NULL, good[i].ranks);
		if (again.status != MURAL_OK || again.said[0] || memcmp(&again.config.batch, b, sizeof *b) != 0)
			fail_msg("%s\n%s", c.shown, again.said);
		mu_test_config_free(&again);
		mu_test_config_free(&c);
	}
}

static void refused(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int ranks;
		const char *expected;
	} bad[] = {
	        {"train_batch_size: 8\n mural: {balance: [5, 1]}", 2,
	         "expected shares that sum to train_batch_size 8, got 5 + 1 = 6"},
	        {"mural: {balance: [5, 1]}", 3, "expected a share for each of the 3 ranks, got 2 shares (5 + 1 = 6)"},
	        {"mural: {balance: [5]}", 2, "got 1 share (5 = 5)"},
	        {"mural: {balance: [0, 0]}", 2, "expected shares that sum to train_batch_size, got 0 + 0 = 0"},
	        {"train_batch_size: 3\n mural: {balance: \"auto\"}", 5,
	         "expected at least an image for each of the 5 ranks, got 3"},
	        {"mural: {balance: \"auto\"}", 2, "expected train_batch_size or train_micro_batch_size_per_gpu"},
	        {"train_batch_size: 4294967296\n mural: {balance: \"auto\"}", 2, "at most 2147483647 images"},
	        {"mural: {balance: [2147483647, 2147483647]}", 2, "at most 2147483647 images with it, got 4294967294"},
	        {"train_batch_size: 8\n mural: {balance: \"auto\"}", 300,
	         "expected \"equal\" with more than 256 ranks"},
	        {"train_batch_size: 8\n mural: {balance: [4, -4]}", 2, "expected \"equal\", \"auto\""},
	        {"train_batch_size: 8\n mural: {balance: [4, \"4\"]}", 2, "one for each rank"},
	        {"train_batch_size: 8\n mural: {balance: []}", 2, "one for each rank"},
	        {"train_batch_size: 8\n mural: {balance: 8}", 2, "one for each rank"},
	        {"train_batch_size: 8\n mural: {balance: \"fair\"}", 2, "one for each rank"},
	        {"train_batch_size: 8\n mural: {balance: null}", 2, "one for each rank"},
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		mu_test_config c = mu_test_config_text(bad[i].text, NULL, bad[i].ranks);
		if (c.status != MURAL_USAGE || !strstr(c.said, bad[i].expected) || !strstr(c.said, "run.json"))
			fail_msg("%s\nexpected: %s\ngot: %s", bad[i].text, bad[i].expected, c.said);
		mu_test_config_free(&c);
	}
}

static void arguments(void **state)
{
	(void)state;
	mu_test_config c = mu_test_config_text("train_batch_size: 6\n mural: {balance: [3, 3]}", "--balance 4,2", 2);
	assert_int_equal(c.status, MURAL_OK);
	assert_string_equal(c.config.balance.shares, "4,2");
	assert_string_equal(mural_config_origin(c.report, "mural.balance"), "argument --balance");
	mu_test_config_free(&c);
	c = mu_test_config_text("train_batch_size: 6", "--balance 4,3", 2);
	assert_int_equal(c.status, MURAL_USAGE);
	assert_non_null(strstr(c.said, "argument --balance"));
	assert_non_null(strstr(c.said, "4 + 3 = 7"));
	mu_test_config_free(&c);
	/* a number of micro-batches that says nothing is told */
	c = mu_test_config_text(
	        "train_batch_size: 80\n train_micro_batch_size_per_gpu: 16\n gradient_accumulation_steps: 7",
	        "--balance auto", 5);
	assert_int_equal(c.status, MURAL_OK);
	assert_non_null(strstr(c.said, "W-NOEFFECT"));
	mu_test_config_free(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(texts),
	        cmocka_unit_test(triangles),
	        cmocka_unit_test(refused),
	        cmocka_unit_test(arguments),
	};
	return cmocka_run_group_tests(tests, mu_test_config_enter, mu_test_config_leave);
}
