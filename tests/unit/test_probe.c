/* Whose link is slow, from the links of pairs; and what decisions make of it. SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/balance.h"
#include "engine/balance_advice.h"
#include "engine/balance_inside.h"
#include "engine/probe.h"

static void seats(void **state)
{
	(void)state;
	static const char host_R[6][8] = {"b", "a", "b", "c", "a", "c"};
	int seat_R[6];
	assert_int_equal(mu_probe_seats(host_R[0], sizeof host_R[0], 6, seat_R), 3);
	static const int expected[6] = {0, 1, 0, 2, 1, 2};
	assert_memory_equal(seat_R, expected, sizeof seat_R);
}

/* Pairs 1 - 2 and 2 - 3 are slow: node 2 is. */
static void the_slow_one_is_found(void **state)
{
	(void)state;
	static const mu_link pairs[4] = {{1e9, 1e-5}, {1e7, 5e-5}, {1.1e7, 5e-5}, {9e8, 1e-5}};
	mu_link_node nodes[4];
	mu_probe_judge(pairs, nodes, 4);
	static const double expected[4] = {1e9, 1e9, 1.1e7, 9e8};
	for (int i = 0; i < 4; i++)
		assert_true(nodes[i].uplink.bytes_per_second == expected[i]);
	mu_probe_judge(pairs, nodes, 2);
	assert_true(nodes[0].uplink.bytes_per_second == 1e9 && nodes[1].uplink.bytes_per_second == 1e9);
}

/* Four equal ranks on four nodes; what a step waits is measured, whose link it is was looked at. */
static mu_balance *make(bool may_remove, double slow)
{
	const mu_link fast = {1e9, 1e-5};
	const mu_link_node nodes[] = {{1, fast, fast}, {1, fast, fast}, {1, {slow, 1e-5}, fast}, {1, fast, fast}};
	const int seat[] = {0, 1, 2, 3};
	mu_balance_rank rank[4];
	for (int r = 0; r < 4; r++)
		rank[r] = (mu_balance_rank){.capacity = 64, .micro = 64};
	const mu_balance_settings settings = {
	        .ranks = 4,
	        .global_batch = 64,
	        .rank = rank,
	        .network = {.nodes = nodes, .n_nodes = 4, .seat = seat, .bytes = 1e8, .probed = true, .overlap = true},
	        .first_stays = true,
	        .may_remove = may_remove};
	mu_balance *balance;
	assert_int_equal(mu_balance_create(&balance, &settings, NULL), MURAL_OK);
	return balance;
}

static const mu_balance_decision *meet(mu_balance *balance, double per_image, double waited)
{
	mu_balance_row rows[4];
	const int *shares = mu_balance_shares(balance);
	for (int r = 0; r < 4; r++)
		rows[r] = (mu_balance_row){4, shares[r], 1, per_image * shares[r], waited};
	return mu_balance_decide(balance, rows);
}

/* Slow enough to cost more than it brings: the rank behind it goes, after two decisions, and the words blame the link. */
static void the_link_is_blamed(void **state)
{
	(void)state;
	mu_balance *balance = make(true, 1e7);
	char words[2048];
	(void)meet(balance, 0.01, 1.5);
	mu_balance_advice_words(balance, 4, NULL, words, sizeof words);
	assert_non_null(strstr(words, "rank 2 costs more than it brings: its link makes the reduction "));
	const mu_balance_decision *d = meet(balance, 0.01, 1.5);
	assert_true(d->removed && !d->member[2] && d->member[0] && d->member[1] && d->member[3]);
	/* without it the reduction is as much shorter as the formulas say of the links: 3 x 2 steps of bytes / 4 at 1e7, then 2 x 2 of
	 * bytes / 3 at 1e9 */
	assert_true(fabs(balance->best.reduction - 1.5 * (4 * (1e8 / 3 / 1e9 + 1e-5)) / (6 * (1e8 / 4 / 1e7 + 1e-5))) <
	            1e-6);
	mu_balance_free(balance);
}

/* All links alike and a long reduction: nobody in particular is to blame. */
static void nobody_is_blamed(void **state)
{
	(void)state;
	mu_balance *balance = make(false, 1e9);
	(void)meet(balance, 0.01, 0.05);
	const mu_balance_decision *d = meet(balance, 0.01, 0.05);
	assert_true(!d->changed);
	for (int r = 1; r < 4; r++) {
		const mu_balance_search search = mu_balance_search_of(balance);
		assert_true(!mu_balance_slow_link(&search, r));
	}
	mu_balance_free(balance);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(seats),
	        cmocka_unit_test(the_slow_one_is_found),
	        cmocka_unit_test(the_link_is_blamed),
	        cmocka_unit_test(nobody_is_blamed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
