/* Ranks that measurements cannot tell apart count as alike, and those they can do not. SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/balance.h"
#include "engine/balance_pool.h"

enum { RANKS = 5 };

/* Rank r: b seconds per image, known within the given fraction; 0: not known at all. */
static void pool(const double *b, double error, const bool *member, mu_balance_model *pooled)
{
	mu_balance_model model[RANKS];
	mu_balance_rank rank[RANKS];
	int order[RANKS];
	for (int r = 0; r < RANKS; r++) {
		rank[r] = (mu_balance_rank){.capacity = 100, .micro = 100};
		model[r] = (mu_balance_model){.a = 0.1 * b[r], .b = b[r], .bb = error * error * b[r] * b[r]};
	}
	const mu_balance_problem problem = {.ranks = RANKS, .rank = rank, .model = model, .member = member};
	mu_balance_pool(&problem, 20, pooled, order);
}

static const bool all[RANKS] = {true, true, true, true, true};

static void alike_within_the_error(void **state)
{
	(void)state;
	static const double b[RANKS] = {0.0102, 0.03, 0.0100, 0.0098, 0};
	mu_balance_model pooled[RANKS];
	pool(b, 0.02, all, pooled);
	assert_true(fabs(pooled[0].b - 0.01) < 1e-9);
	assert_true(fabs(pooled[2].b - 0.01) < 1e-9 && fabs(pooled[3].b - 0.01) < 1e-9);
	assert_true(fabs(pooled[0].a - 0.001) < 1e-9);
	assert_true(pooled[1].b == 0.03 || fabs(pooled[1].b - 0.03) < 1e-12);
	assert_true(pooled[4].b == 0);
}

static void apart_beyond_it(void **state)
{
	(void)state;
	static const double b[RANKS] = {0.0102, 0.03, 0.0100, 0.0098, 0.0299};
	mu_balance_model pooled[RANKS];
	pool(b, 0.001, all, pooled);
	for (int r = 0; r < RANKS; r++)
		assert_true(fabs(pooled[r].b - b[r]) < 1e-9);
}

/* A chain of small steps has an end: 4 % is within the error, 8 % is not. */
static void chains_end(void **state)
{
	(void)state;
	static const double b[RANKS] = {1, 1.04, 1.08, 1.12, 1.16};
	mu_balance_model pooled[RANKS];
	pool(b, 0.02, all, pooled);
	assert_true(fabs(pooled[0].b - 1.02) < 1e-9 && fabs(pooled[1].b - 1.02) < 1e-9);
	assert_true(fabs(pooled[2].b - 1.10) < 1e-9 && fabs(pooled[3].b - 1.10) < 1e-9);
	assert_true(fabs(pooled[4].b - 1.16) < 1e-9);
}

static void who_is_no_member_is_not_asked(void **state)
{
	(void)state;
	static const double b[RANKS] = {0.0102, 0.03, 0.0100, 0.0098, 0.03};
	static const bool member[RANKS] = {true, true, false, true, true};
	mu_balance_model pooled[RANKS];
	pool(b, 0.02, member, pooled);
	assert_true(pooled[2].b == 0.0100);
	assert_true(fabs(pooled[0].b - 0.01) < 1e-9);
}

/* What it is for: three equal cards that look 1.5 % different, and one behind a slow link. Those who stay share evenly. */
static void equal_cards_get_equal_shares(void **state)
{
	(void)state;
	static const double seen[] = {0.0145, 0.0143, 0.01415, 0.0143};
	const mu_link fast = {9.5e8, 3e-5};
	const mu_link_node nodes[] = {{1, fast, fast}, {1, fast, fast}, {1, fast, fast}, {1, {1.2e8, 5e-5}, fast}};
	const int seat[] = {0, 1, 2, 3};
	mu_balance_rank rank[4];
	for (int r = 0; r < 4; r++)
		rank[r] = (mu_balance_rank){.capacity = 80, .micro = 80};
	const mu_balance_settings settings = {.ranks = 4,
	                                      .global_batch = 80,
	                                      .rank = rank,
	                                      .network = {.nodes = nodes,
	                                                  .n_nodes = 4,
	                                                  .seat = seat,
	                                                  .bytes = 3.46e8,
	                                                  .buckets = 11,
	                                                  .algorithm = MU_ALGORITHM_RING},
	                                      .first_stays = true,
	                                      .may_remove = true};
	mu_balance *balance;
	const mu_balance_decision *d = NULL;
	assert_int_equal(mu_balance_create(&balance, &settings, NULL), MURAL_OK);
	for (int meeting = 0; meeting < 2; meeting++) {
		mu_balance_row rows[4];
		const int *shares = mu_balance_shares(balance);
		for (int r = 0; r < 4; r++)
			rows[r] = (mu_balance_row){4, shares[r], 1, seen[r] * shares[r], 4.5};
		d = mu_balance_decide(balance, rows);
	}
	assert_true(d->removed && !d->member[3]);
	for (int r = 0; r < 3; r++)
		assert_true(d->shares[r] == 26 || d->shares[r] == 27);
	mu_balance_free(balance);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(alike_within_the_error),
	        cmocka_unit_test(apart_beyond_it),
	        cmocka_unit_test(chains_end),
	        cmocka_unit_test(who_is_no_member_is_not_asked),
	        cmocka_unit_test(equal_cards_get_equal_shares),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
