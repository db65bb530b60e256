/* Unequal workers, the advice: the study's cluster with its slow card and its slow link, by hand. SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/balance_advice.h"
#include "engine/balance_watch.h"

enum { RANKS = 5 };

static const double BYTES = 346.27e6, FAST = 0.95e9, SLOW = 0.12e9;
static const double pace[RANKS] = {0.0143, 0.0143, 0.0143, 0.045, 0.041};
static const int seats[RANKS] = {0, 1, 2, 3, 4};
static const mu_link_node nodes[RANKS] = {{.uplink = {0.95e9, 0}},
                                          {.uplink = {0.95e9, 0}},
                                          {.uplink = {0.95e9, 0}},
                                          {.uplink = {0.95e9, 0}},
                                          {.uplink = {0.12e9, 0}}};

typedef struct fixture {
	mu_balance_rank rank[RANKS];
	mu_balance_model model[RANKS];
	bool member[RANKS], room_member[RANKS], team_member[RANKS];
	int room_shares[RANKS], team_shares[RANKS];
	mu_link_node room_nodes[RANKS];
	mu_balance_network network;
	mu_balance_search search;
	mu_balance_team team;
} fixture;

static void make(fixture *f, int batch)
{
	for (int r = 0; r < RANKS; r++) {
		f->member[r] = true;
		f->rank[r] = (mu_balance_rank){.capacity = batch, .micro = batch};
		mu_balance_model_begin(&f->model[r], 0, pace[r]);
	}
	f->network = (mu_balance_network){.nodes = nodes,
	                                  .n_nodes = RANKS,
	                                  .seat = seats,
	                                  .algorithm = MU_ALGORITHM_RING,
	                                  .bytes = BYTES,
	                                  .buckets = 10};
	f->search = (mu_balance_search){.problem = {.ranks = RANKS,
	                                            .global_batch = batch,
	                                            .grain = 1,
	                                            .rank = f->rank,
	                                            .model = f->model,
	                                            .member = f->member,
	                                            .network = &f->network},
	                                .bytes = BYTES,
	                                .nodes = f->room_nodes,
	                                .member = f->room_member,
	                                .shares = f->room_shares};
	f->team = (mu_balance_team){.member = f->team_member, .shares = f->team_shares};
}

static void near_value(double found, double expected, int line)
{
	if (fabs(found - expected) > 1e-9 * fmax(1, fabs(expected)))
		fail_msg("line %d: %.12g, expected %.12g", line, found, expected);
}
#define NEAR(a, b) near_value(a, b, __LINE__)

/* The fifth rank's link costs seconds; the fourth's slow card costs a little; a fast card helps. */
static void test_slow_devices_and_slow_links(void **state)
{
	(void)state;
	fixture f;
	make(&f, 80);
	mu_balance_worth worth = mu_balance_worth_of(&f.search, 4, &f.team);
	NEAR(worth.reduction_added, 2 * 4 / 5.0 * BYTES / SLOW - 2 * 3 / 4.0 * BYTES / FAST);
	assert_true(worth.computing_saved > 0.02 && worth.computing_saved < 0.06);
	NEAR(worth.with - worth.without, worth.reduction_added - worth.computing_saved);
	assert_true(mu_balance_slow_link(&f.search, 4));
	assert_false(mu_balance_slow_link(&f.search, 3));
	assert_int_equal(mu_balance_judge(&worth, true), MU_BALANCE_SLOW_LINK);
	f.member[4] = false;
	worth = mu_balance_worth_of(&f.search, 3, &f.team);
	assert_int_equal(mu_balance_judge(&worth, mu_balance_slow_link(&f.search, 3)), MU_BALANCE_SLOW_DEVICE);
	worth = mu_balance_worth_of(&f.search, 0, &f.team);
	assert_int_equal(mu_balance_judge(&worth, false), MU_BALANCE_HELPS);
}

static void test_no_room_without(void **state)
{
	(void)state;
	fixture f;
	make(&f, 80);
	for (int r = 0; r < RANKS; r++)
		f.rank[r].capacity = 16;
	mu_balance_worth worth = mu_balance_worth_of(&f.search, 4, &f.team);
	assert_true(worth.without == -1);
	assert_int_equal(mu_balance_judge(&worth, true), MU_BALANCE_HELPS);
}

static void test_what_would_help(void **state)
{
	(void)state;
	fixture f;
	mu_balance_offer offers[MU_BALANCE_REMEDIES];
	make(&f, 80);
	mu_balance_offers(&f.search, 4, &f.team, offers);
	double ring = 2 * 4 / 5.0 * BYTES / SLOW;
	NEAR(offers[MU_BALANCE_REMOVE].reduction, ring);
	double computing = offers[MU_BALANCE_REMOVE].step - ring;
	NEAR(offers[MU_BALANCE_SIXTEEN_BIT].step, computing + ring / 2);
	NEAR(offers[MU_BALANCE_EIGHT_BIT].step, computing + ring / 4 * (1 + 4 / 256.0));
	NEAR(offers[MU_BALANCE_SEND_ONCE].reduction, BYTES / SLOW * 1.1);
	NEAR(offers[MU_BALANCE_REMOVE].best_images_per_second, 80 / (27 * 0.0143 + 2 * 2 / 3.0 * BYTES / FAST));
	assert_int_equal(offers[MU_BALANCE_REMOVE].best_members, 3);
	/* Twice the images, one reduction. */
	NEAR(offers[MU_BALANCE_ACCUMULATE].reduction, ring);
	NEAR(offers[MU_BALANCE_ACCUMULATE].images_per_second, 160 / offers[MU_BALANCE_ACCUMULATE].step);
	assert_true(offers[MU_BALANCE_ACCUMULATE].step < computing * 2.1 + ring);
	/* 16-bit gradients already: no such offer, and 8 bits are half. */
	mu_balance_offers(&f.search, 2, &f.team, offers);
	assert_true(offers[MU_BALANCE_SIXTEEN_BIT].step == -1);
	NEAR(offers[MU_BALANCE_EIGHT_BIT].step, computing + ring / 2 * (1 + 4 / 256.0));
	/* Links alike: nothing is gained by sending one's data once, 5 nodes' ring sends 1.6 times. */
	f.network.nodes = NULL;
	mu_balance_offers(&f.search, 4, &f.team, offers);
	assert_true(offers[MU_BALANCE_SEND_ONCE].step == -1);
}

static void test_words_of_a_run(void **state)
{
	(void)state;
	static const char *const names[RANKS] = {NULL, NULL, NULL, "rank 3 (node tesla)", "rank 4 (node gtx)"};
	fixture f;
	char text[1024], small[40];
	mu_balance *balance = NULL;
	mural_error err = {0};
	make(&f, 80);
	for (int r = 0; r < RANKS; r++)
		f.rank[r].seconds_per_image = pace[r];
	const mu_balance_settings settings = {.ranks = RANKS, .global_batch = 80, .rank = f.rank, .network = f.network};
	assert_int_equal(mu_balance_create(&balance, &settings, &err), MURAL_OK);
	mu_balance_advice_words(balance, 4, names, text, sizeof text);
	assert_non_null(strstr(text, "rank 3 (node tesla) costs more than it brings: its computing saves "));
	assert_non_null(strstr(text, "rank 4 (node gtx) costs more than it brings: its link makes the reduction 3.84 s "
	                             "longer, and its computing saves "));
	assert_null(strstr(text, "rank 0"));
	assert_non_null(strstr(text, "leaving ranks out (3 of 5 stay) 91.7"));
	mu_balance_advice_words(balance, 4, names, small, sizeof small);
	assert_true(strlen(small) < sizeof small);
	mu_balance_free(balance);
	/* Nothing measured, nothing said. */
	for (int r = 0; r < RANKS; r++)
		f.rank[r].seconds_per_image = 0;
	assert_int_equal(mu_balance_create(&balance, &settings, &err), MURAL_OK);
	mu_balance_advice_words(balance, 4, NULL, text, sizeof text);
	assert_string_equal(text, "");
	mu_balance_free(balance);
}

static void test_who_waits_for_whom(void **state)
{
	(void)state;
	const mu_balance_row rows[3] = {{4, 8, 1, 0.2, 0.5}, {4, 8, 1, 0.6, 0.1}, {4, 8, 1, 0.3, 0.4}};
	const bool all[3] = {true, true, true}, none[3] = {false, false, false};
	char text[80];
	mu_balance_wait wait = mu_balance_wait_of(rows, all, 3);
	assert_int_equal(wait.slowest, 1);
	NEAR(wait.links, 0.1);
	NEAR(wait.step, 0.7);
	NEAR(wait.waited, 0.35);
	mu_balance_wait_words(&wait, "rank 1 (host b)", text, sizeof text);
	assert_string_equal(text, "waits 0.35 s of 0.7 s per step for rank 1 (host b)");
	mu_balance_wait_words(&wait, NULL, text, sizeof text);
	assert_string_equal(text, "waits 0.35 s of 0.7 s per step for rank 1");
	wait.waited = 0.03;
	mu_balance_wait_words(&wait, NULL, text, sizeof text);
	assert_string_equal(text, "");
	wait = mu_balance_wait_of(rows, none, 3);
	assert_int_equal(wait.slowest, -1);
	mu_balance_wait_words(&wait, NULL, text, sizeof text);
	assert_string_equal(text, "");
	wait = mu_balance_wait_of(rows, all, 1);
	NEAR(wait.waited, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_slow_devices_and_slow_links),
	        cmocka_unit_test(test_no_room_without),
	        cmocka_unit_test(test_what_would_help),
	        cmocka_unit_test(test_words_of_a_run),
	        cmocka_unit_test(test_who_waits_for_whom),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
