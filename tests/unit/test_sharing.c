/* Shares out of a run's balance.csv, and what of such a file is refused, with its line. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/balance.h"
#include "engine/sharing_replay.h"
#include "monitor/balance_csv.h"

#define HEADER "step,from_step,shares,seconds_before,seconds_expected,own_seconds,waited_seconds,reason\n"

static char path[] = "/tmp/mural-balance-XXXXXX";

static int make_file(void **state)
{
	(void)state;
	int fd = mkstemp(path);
	return fd < 0 ? 1 : close(fd);
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

static void write_text(const char *text)
{
	FILE *out = fopen(path, "w");
	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

/* What was written is read, rows that change nothing left out. */
static void round_trip(void **state)
{
	(void)state;
	static const int share_R[][3] = {{2, 2, 2}, {3, 2, 1}, {3, 2, 1}, {4, 2, -1}};
	static const uint64_t from[] = {1, 7, 11, 17};
	static const double seconds[] = {0.1, 0.2, 0.3};
	mu_csv csv = {0};
	mu_sharing_log log;
	unlink(path);
	assert_int_equal(mu_balance_csv_open(&csv, path, NULL), MURAL_OK);
	for (int i = 0; i < 4; i++) {
		const mu_balance_csv_row row = {.step = from[i] - 1,
		                                .from_step = from[i],
		                                .ranks = 3,
		                                .share_R = share_R[i],
		                                .before = 0.5,
		                                .after = 0.25,
		                                .seconds_R = i ? seconds : NULL,
		                                .waited_R = i ? seconds : NULL,
		                                .reason = "with a comma, and \"quotes\""};
		assert_int_equal(mu_balance_csv_write(&csv, &row, NULL), MURAL_OK);
	}
	mu_csv_close(&csv);
	assert_int_equal(mu_sharing_log_read(&log, path, 3, 6, NULL), MURAL_OK);
	static const int64_t expected[3][4] = {{0, 2, 2, 2}, {6, 3, 2, 1}, {16, 4, 2, -1}};
	assert_int_equal(log.n, 3);
	for (size_t i = 0; i < 3; i++)
		assert_memory_equal(mu_sharing_log_change(&log, i), expected[i], sizeof expected[i]);
	mu_sharing_log_release(&log);
}

/* A run that went on from step 10: what had been decided for step 13 never came. */
static void taken_back(void **state)
{
	(void)state;
	mu_sharing_log log;
	write_text(HEADER
	           "0,1,3 3,,,,,begins\n4,7,5 1,,,,,x\n10,13,6 0,,,,,x\n10,11,3 3,,,,,goes on\n14,17,4 2,,,,,x\n");
	assert_int_equal(mu_sharing_log_read(&log, path, 2, 6, NULL), MURAL_OK);
	static const int64_t expected[4][3] = {{0, 3, 3}, {6, 5, 1}, {10, 3, 3}, {16, 4, 2}};
	assert_int_equal(log.n, 4);
	for (size_t i = 0; i < 4; i++)
		assert_memory_equal(mu_sharing_log_change(&log, i), expected[i], sizeof expected[i]);
	mu_sharing_log_release(&log);
}

static void refused(void **state)
{
	(void)state;
	static const struct {
		const char *text, *where, *expected;
	} cases[] = {
	        {"", "", "a file without rows"},
	        {HEADER, "", "a file without rows"},
	        {"step,epoch,loss\n", ":1", "expected a run's balance.csv, whose header begins step,from_step,shares,"},
	        {HEADER "0,1,3 3,,,,,x\n0,1\n", ":3", "expected step,from_step,shares"},
	        {HEADER "0,0,3 3,,,,,x\n", ":2", "expected step,from_step,shares"},
	        {HEADER "0,-1,3 3,,,,,x\n", ":2", "expected step,from_step,shares"},
	        {HEADER "0,1,3 4,,,,,x\n", ":2", "expected the shares of 2 ranks, 6 images together, got '3 4"},
	        {HEADER "0,1,6,,,,,x\n", ":2", "expected the shares of 2 ranks"},
	        {HEADER "0,1,2 2 2,,,,,x\n", ":2", "expected the shares of 2 ranks"},
	        {HEADER "0,1,7 -1,,,,,x\n", ":2", "expected the shares of 2 ranks"},
	        {HEADER "0,1,99999999999999999999 0,,,,,x\n", ":2", "expected the shares of 2 ranks"},
	        {HEADER "0,1,\"3 3\",,,,,x\n", ":2", "expected the shares of 2 ranks"},
	        {HEADER "0,1,3 3", ":2", "expected the shares of 2 ranks"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		mural_error err = {0};
		mu_sharing_log log;
		write_text(cases[i].text);
		if (mu_sharing_log_read(&log, path, 2, 6, &err) != MURAL_USAGE ||
		    !strstr(err.message, cases[i].expected) || !strstr(err.where, cases[i].where))
			fail_msg("'%s'\nexpected: %s\ngot: %s: %s", cases[i].text, cases[i].expected, err.where,
			         err.message);
		assert_null(log.changes);
	}
	mural_error err = {0};
	mu_sharing_log log;
	assert_int_equal(mu_sharing_log_read(&log, "/no/such/file", 2, 6, &err), MURAL_USAGE);
	assert_non_null(strstr(err.message, "cannot be read"));
}

/* The first rank's link is the slow one: it costs more than it brings, and stays; of others such a rank is left out. */
static void the_first_stays(void **state)
{
	(void)state;
	const mu_link_node nodes[] = {{.ranks = 2, .uplink = {1e9, 0}, .inside = {1e9, 0}},
	                              {.ranks = 1, .uplink = {1e7, 0}}};
	const mu_balance_rank ranks[] = {{6, 6, 0, 0}, {6, 6, 0, 0}, {6, 6, 0, 0}};
	for (int slow = 0; slow < 3; slow += 2) {
		const int seat[] = {slow == 0, 0, slow == 2};
		const mu_balance_settings settings = {
		        .ranks = 3,
		        .global_batch = 6,
		        .rank = ranks,
		        .network = {.nodes = nodes, .n_nodes = 2, .seat = seat, .bytes = 1e7, .buckets = 1},
		        .first_stays = true,
		        .may_remove = true};
		mu_balance *balance;
		const mu_balance_decision *d = NULL;
		bool removed = false;
		assert_int_equal(mu_balance_create(&balance, &settings, NULL), MURAL_OK);
		for (int meeting = 0; meeting < 6 && !removed; meeting++) {
			mu_balance_row rows[3];
			const int *share_R = mu_balance_shares(balance);
			for (int r = 0; r < 3; r++)
				rows[r] = (mu_balance_row){4, share_R[r], 1, 0.1 * share_R[r], 1.3};
			d = mu_balance_decide(balance, rows);
			removed = d->removed;
		}
		assert_true(removed && d->member[0]);
		assert_false(d->member[2]); /* alone, or because of its link */
		assert_int_equal(d->member[1], slow == 2);
		mu_balance_free(balance);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(round_trip),
	        cmocka_unit_test(taken_back),
	        cmocka_unit_test(refused),
	        cmocka_unit_test(the_first_stays),
	};
	return cmocka_run_group_tests(tests, make_file, remove_file);
}
