/* Unequal workers, the pieces: the solver against every split there is, the model against speeds that are known, the reduction against
 * hand-computed rings. SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/balance.h"
#include "engine/balance_members.h"

enum { MOST = 8 };

static uint32_t state_of_random = 1;

/* Numerical Recipes' generator: for choosing cases only. */
static uint32_t draw(uint32_t below)
{
	state_of_random = state_of_random * 1664525u + 1013904223u;
	return (uint32_t)(((uint64_t)state_of_random * below) >> 32);
}

static double uniform(double from, double to)
{
	return from + (to - from) * draw(1u << 24) / (1u << 24);
}

typedef struct fixture {
	mu_balance_rank rank[MOST];
	mu_balance_model model[MOST];
	bool member[MOST];
	mu_balance_network network;
	mu_balance_problem problem;
} fixture;

static void make(fixture *f, int ranks, int batch, int grain)
{
	for (int r = 0; r < ranks; r++) {
		f->rank[r] = (mu_balance_rank){.capacity = 1 + (int)draw((uint32_t)batch), .micro = 1 + (int)draw(6)};
		mu_balance_model_begin(&f->model[r], draw(3) ? uniform(0, 2) : 0, uniform(0.2, 4));
		f->member[r] = draw(8) != 0;
	}
	f->network = (mu_balance_network){.overlap = draw(2), .buckets = 1 + (int)draw(9), .update = 0.1};
	f->problem = (mu_balance_problem){.ranks = ranks,
	                                  .global_batch = batch,
	                                  .grain = grain,
	                                  .rank = f->rank,
	                                  .model = f->model,
	                                  .member = f->member,
	                                  .network = &f->network,
	                                  .reduction = uniform(0, 5)};
}

/* Grain and memberships as the header promises: everything in multiples, but for what the last rank with images has beyond. */
static bool allowed(const mu_balance_problem *p, const int *shares)
{
	int last = -1;
	for (int r = 0; r < p->ranks; r++)
		if (shares[r] > 0)
			last = r;
	for (int r = 0; r < p->ranks; r++)
		if (shares[r] > p->rank[r].capacity || (shares[r] > 0 && !p->member[r]) ||
		    (shares[r] - (r == last ? p->global_batch % p->grain : 0)) % p->grain != 0)
			return false;
	return true;
}

/* The shortest over all splits, -1 without one. */
static double exhaust(const mu_balance_problem *p, int *shares, int r, int left)
{
	double best = -1;
	if (r == p->ranks - 1) {
		shares[r] = left;
		return allowed(p, shares) ? mu_balance_expected(p, shares) : -1;
	}
	for (int n = 0; n <= left; n++) {
		shares[r] = n;
		double seconds = exhaust(p, shares, r + 1, left - n);
		if (seconds >= 0 && (best < 0 || seconds < best))
			best = seconds;
	}
	return best;
}

static void test_no_split_is_better(void **state)
{
	(void)state;
	fixture f;
	for (int i = 0; i < 1500; i++) {
		int ranks = 1 + (int)draw(6), batch = 1 + (int)draw(ranks > 4 ? 9 : 14), grain = 1 + (int)draw(2);
		int shares[MOST] = {0}, tried[MOST], sum = 0;
		make(&f, ranks, batch, grain);
		double expected = exhaust(&f.problem, tried, 0, batch);
		double found = mu_balance_solve(&f.problem, shares);
		if (fabs(found - expected) > 1e-12)
			fail_msg("case %d: %d ranks, %d images, grain %d: %.17g, and the best split has %.17g", i,
			         ranks, batch, grain, found, expected);
		if (found < 0)
			continue;
		for (int r = 0; r < ranks; r++)
			sum += shares[r];
		assert_int_equal(sum, batch);
		assert_true(allowed(&f.problem, shares));
		assert_true(mu_balance_expected(&f.problem, shares) == found);
	}
}

static void test_large_batch(void **state)
{
	(void)state;
	fixture f;
	int shares[MOST], sum = 0;
	state_of_random = 7;
	make(&f, MOST, 1 << 20, 1);
	for (int r = 0; r < MOST; r++) {
		f.member[r] = true;
		f.rank[r] = (mu_balance_rank){.capacity = 1 << 20, .micro = 64};
	}
	f.network = (mu_balance_network){0};
	f.problem.reduction = 0;
	double found = mu_balance_solve(&f.problem, shares), rate = 0;
	for (int r = 0; r < MOST; r++) {
		sum += shares[r];
		rate += 64 / mu_balance_model_seconds(&f.model[r], 64, 64);
	}
	assert_int_equal(sum, 1 << 20);
	/* Whole numbers and started micro-batches cost at most a micro-batch. */
	assert_true(found >= (1 << 20) / rate * (1 - 1e-12));
	assert_true(found <= (1 << 20) / rate + 64 * 4 + 2);
}

/* One share only: the prediction there is right; two shares: everywhere. */
static void test_model_learns_both_numbers(void **state)
{
	(void)state;
	mu_balance_model m;
	const double a = 0.5, b = 0.04;
	mu_balance_model_begin(&m, 0, 0);
	for (int i = 0; i < 5; i++)
		mu_balance_model_see(&m, 16, 1, a + 16 * b);
	assert_true(fabs(mu_balance_model_seconds(&m, 16, 64) / (a + 16 * b) - 1) < 1e-3);
	double unsure = mu_balance_model_error(&m, 40, 64);
	for (int i = 0; i < 10; i++)
		mu_balance_model_see(&m, 32, 1, a + 32 * b);
	assert_true(fabs(mu_balance_model_seconds(&m, 32, 64) / (a + 32 * b) - 1) < 0.005);
	assert_true(fabs(mu_balance_model_seconds(&m, 40, 64) / (a + 40 * b) - 1) < 0.03);
	assert_true(mu_balance_model_error(&m, 40, 64) < unsure);
	assert_true(m.a >= 0 && m.b > 0);
}

static void test_model_sets_outliers_aside_and_follows_drift(void **state)
{
	(void)state;
	mu_balance_model m;
	mu_balance_model_begin(&m, 0, 0);
	for (int i = 0; i < 20; i++)
		mu_balance_model_see(&m, 16, 1, 1 + 0.01 * (i % 3 - 1));
	mu_balance_model_see(&m, 16, 1, 3);
	assert_true(fabs(mu_balance_model_seconds(&m, 16, 16) - 1) < 0.01);
	assert_true(m.suspect > 2 && m.drift == 0);
	mu_balance_model_see(&m, 16, 1, 1);
	assert_true(fabs(mu_balance_model_seconds(&m, 16, 16) - 1) < 0.01);
	assert_true(m.suspect == 0);
	mu_balance_model_see(&m, 16, 1, 1.5);
	assert_true(m.drift == 0);
	mu_balance_model_see(&m, 16, 1, 1.52);
	assert_true(fabs(m.drift - 1.52) < 0.05);
	assert_true(fabs(mu_balance_model_seconds(&m, 16, 16) - 1.52) < 0.05);
	/* The whole device became slower, so a share that was not measured did, too. */
	assert_true(fabs(mu_balance_model_seconds(&m, 8, 16) - 0.76) < 0.1);
}

/* Whatever is measured, seconds stay seconds. */
static void test_model_never_turns_negative(void **state)
{
	(void)state;
	state_of_random = 3;
	for (int i = 0; i < 200; i++) {
		mu_balance_model m;
		mu_balance_model_begin(&m, draw(2) ? uniform(0, 1) : 0, draw(2) ? uniform(1e-3, 1) : 0);
		for (int j = 0; j < 50; j++) {
			double n = 1 + draw(100), k = 1 + draw(4);
			mu_balance_model_see(&m, n, k, exp(uniform(-8, 8)));
			assert_true(m.a >= 0 && m.b > 0 && isfinite(m.a) && isfinite(m.b));
			assert_true(isfinite(mu_balance_model_error(&m, 10, 3)));
		}
	}
}

static mu_balance_network tesla(const mu_link_node *nodes, const int *seat)
{
	return (mu_balance_network){
	        .nodes = nodes, .n_nodes = 5, .seat = seat, .algorithm = MU_ALGORITHM_RING, .bytes = 346.27e6};
}

static const int seats[5] = {0, 1, 2, 3, 4};
static const mu_link_node tesla_nodes[5] = {{.uplink = {0.95e9, 0}},
                                            {.uplink = {0.95e9, 0}},
                                            {.uplink = {0.95e9, 0}},
                                            {.uplink = {0.95e9, 0}},
                                            {.uplink = {0.12e9, 0}}};

static void test_reduction_is_as_slow_as_its_slowest_link(void **state)
{
	(void)state;
	mu_link_node room[5];
	const mu_balance_network network = tesla(tesla_nodes, seats);
	const bool all[5] = {true, true, true, true, true}, four[5] = {true, true, true, true, false},
	           one[5] = {false, false, false, false, true};
	double with = mu_balance_reduction(&network, all, 5, network.bytes, room);
	double without = mu_balance_reduction(&network, four, 5, network.bytes, room);
	assert_true(fabs(with - 2 * 4 / 5.0 * 346.27e6 / 0.12e9) < 1e-9);
	assert_true(fabs(without - 2 * 3 / 4.0 * 346.27e6 / 0.95e9) < 1e-9);
	assert_true(mu_balance_reduction(&network, one, 5, network.bytes, room) == 0);
	/* Not described, but measured among all five: links count as alike. */
	const mu_balance_network measured = {.bytes = 100, .measured = 8, .measured_ranks = 5};
	assert_true(fabs(mu_balance_reduction(&measured, four, 5, 100, NULL) - 8 * (3 / 4.0) / (4 / 5.0)) < 1e-12);
	assert_true(fabs(mu_balance_reduction(&measured, all, 5, 50, NULL) - 4) < 1e-12);
}

static void test_step_with_and_without_overlap(void **state)
{
	(void)state;
	mu_balance_network network = {.first = 0.4, .buckets = 10, .update = 0.5};
	assert_true(fabs(mu_balance_step_seconds(&network, 2, 0.8, 1) - 3.5) < 1e-12);
	network.overlap = true;
	assert_true(fabs(mu_balance_ready(&network, 2, 1) - 0.8) < 1e-12);
	assert_true(fabs(mu_balance_ready(&network, 2, 4) - (1.5 + 0.4 * 0.5)) < 1e-12);
	assert_true(fabs(mu_balance_step_seconds(&network, 2, 0.8, 1) - 2.6) < 1e-12); /* the last bucket */
	assert_true(fabs(mu_balance_step_seconds(&network, 2, 0.8, 5) - 6.3) <
	            1e-12); /* the link is busy from 0.8 on */
}

/* The study's cluster with its fixed global batch of 80: by hand, three cards are best without overlap. */
static void test_best_team_of_the_study(void **state)
{
	(void)state;
	fixture f = {0};
	const double pace[5] = {0.0143, 0.0143, 0.0143, 0.045, 0.041};
	bool best_member[5], room_member[5];
	int best_shares[5], room_shares[5];
	mu_link_node room[5];
	const mu_balance_network network = tesla(tesla_nodes, seats);
	for (int r = 0; r < 5; r++) {
		f.member[r] = true;
		f.rank[r] = (mu_balance_rank){.capacity = 80, .micro = 80};
		mu_balance_model_begin(&f.model[r], 0, pace[r]);
	}
	const mu_balance_search search = {.problem = {.ranks = 5,
	                                              .global_batch = 80,
	                                              .grain = 1,
	                                              .rank = f.rank,
	                                              .model = f.model,
	                                              .member = f.member,
	                                              .network = &network},
	                                  .bytes = network.bytes,
	                                  .nodes = room,
	                                  .member = room_member,
	                                  .shares = room_shares};
	mu_balance_team best = {.member = best_member, .shares = best_shares};
	mu_balance_best_team(&search, &best);
	assert_true(best.member[0] && best.member[1] && best.member[2] && !best.member[3] && !best.member[4]);
	assert_true(fabs(best.computing - 27 * 0.0143) < 1e-12);
	assert_true(fabs(best.step - (27 * 0.0143 + 4 / 3.0 * 346.27e6 / 0.95e9)) < 1e-9);
	mu_balance_with_all(&search, &best);
	assert_true(best.member[3] && best.member[4]);
	assert_true(best.step > 4.6 + 80 / (3 / 0.0143 + 1 / 0.045 + 1 / 0.041));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_no_split_is_better),
	        cmocka_unit_test(test_large_batch),
	        cmocka_unit_test(test_model_learns_both_numbers),
	        cmocka_unit_test(test_model_sets_outliers_aside_and_follows_drift),
	        cmocka_unit_test(test_model_never_turns_negative),
	        cmocka_unit_test(test_reduction_is_as_slow_as_its_slowest_link),
	        cmocka_unit_test(test_step_with_and_without_overlap),
	        cmocka_unit_test(test_best_team_of_the_study),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
