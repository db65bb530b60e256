/* The cost of a step: hand-computed walks through buckets, sharding, accumulation, data; and what must hold whatever the numbers.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "study/cost.h"

static void near_value(double found, double expected, int line)
{
	if (fabs(found - expected) > 1e-12 * fmax(1, fabs(expected)))
		fail_msg("line %d: %.17g, expected %.17g", line, found, expected);
}
#define NEAR(a, b) near_value(a, b, __LINE__)

/* 1 s per byte for a scatter or gather, 2 s for an all-reduce, and a second for each call. */
static double slow_link(const void *user, mu_cost_collective collective, double bytes)
{
	const double *factor = user;
	return 1 + *factor * (collective == MU_COST_ALL_REDUCE ? 2 : 1) * bytes;
}

static const double one = 1, tenth = 0.1;
static const mu_cost_unit units[] = {{1, 1}, {2, 3}, {2, 3}, {1, 1}};

static mu_cost_work work_of(double bucket, bool overlap)
{
	return (mu_cost_work){
	        .units = units,
	        .n_units = 4,
	        .images = 10,
	        .accumulation = 1,
	        .parameter_bytes = 1,
	        .gradient_bytes = 1,
	        .bucket_elements = bucket,
	        .overlap = overlap,
	};
}

static mu_cost_machine machine_of(int ranks, const double *factor)
{
	return (mu_cost_machine){.seconds_per_image = 0.8,
	                         .seconds_per_batch = 1,
	                         .seconds_per_parameter = 0.5,
	                         .ranks = ranks,
	                         .link = slow_link,
	                         .user = factor};
}

static void test_one_rank(void **state)
{
	(void)state;
	mu_cost_work work = work_of(4, true);
	mu_cost_machine machine = machine_of(1, &one);
	mu_cost cost = mu_cost_step(&work, &machine);
	NEAR(cost.forward, 3);
	NEAR(cost.backward, 6);
	NEAR(cost.optimizer, 4);
	NEAR(cost.communication, 0);
	NEAR(cost.step, 13);
}

/* Buckets from the back: units 3 and 2 (4 elements, ready at 3 s of 6), units 1 and 0 (4, ready at 6). Each takes 1 + 2 x 4 x
 * 0.1 = 1.8 s. */
static void test_overlap(void **state)
{
	(void)state;
	mu_cost_work work = work_of(4, true);
	mu_cost_machine machine = machine_of(2, &tenth);
	mu_cost cost = mu_cost_step(&work, &machine);
	NEAR(cost.communication, 3.6);
	NEAR(cost.exposed, 1.8);
	NEAR(cost.bytes, 8);
	NEAR(cost.step, 13 + 1.8);
	work.overlap = false;
	NEAR(mu_cost_step(&work, &machine).exposed, 3.6);
	/* a slow link: the first bucket goes at 3 s and ends at 12, the second ends at 21, backward ended at 6 */
	machine.user = &one;
	work.overlap = true;
	NEAR(mu_cost_step(&work, &machine).exposed, 15);
}

static void test_accumulation(void **state)
{
	(void)state;
	mu_cost_work work = work_of(4, true);
	mu_cost_machine machine = machine_of(2, &tenth);
	work.accumulation = 3;
	mu_cost cost = mu_cost_step(&work, &machine);
	NEAR(cost.communication, 3.6);
	NEAR(cost.exposed, 1.8);
	NEAR(cost.step, 3 * 9 + 4 + 1.8);
}

static void test_sharding(void **state)
{
	(void)state;
	mu_cost_work work = work_of(100, false);
	mu_cost_machine machine = machine_of(4, &tenth);
	work.zero_stage = 1;
	mu_cost cost = mu_cost_step(&work, &machine);
	NEAR(cost.communication, 2 * (1 + 0.8)); /* scatter 8 bytes, gather 8 bytes */
	NEAR(cost.exposed, cost.communication);
	NEAR(cost.optimizer, 1);
	work.zero_stage = 3; /* scatter, and each unit gathered twice */
	NEAR(mu_cost_step(&work, &machine).communication, 1.8 + 2 * (4 + 0.8));
}

static void test_data(void **state)
{
	(void)state;
	mu_cost_work work = work_of(4, true);
	mu_cost_machine machine = machine_of(1, &one);
	machine.data_seconds_per_image = 1;
	NEAR(mu_cost_step(&work, &machine).data, 0);
	machine.data_seconds_per_image = 2;
	NEAR(mu_cost_step(&work, &machine).data, 7);
	NEAR(mu_cost_step(&work, &machine).step, 20);
}

/* Sums of 2 bytes at the end of a step take 1 + 2 x 2 x 0.1 s; waiting is a tenth of 9 s. */
static void test_waiting(void **state)
{
	(void)state;
	mu_cost_work work = work_of(4, true);
	mu_cost_machine machine = machine_of(2, &tenth);
	work.sums_bytes = 2;
	machine.wait_share = 0.1;
	machine.seconds_per_update = 0.25;
	mu_cost cost = mu_cost_step(&work, &machine);
	NEAR(cost.exposed, 1.8 + 1.4 + 0.9);
	NEAR(cost.communication, 3.6 + 1.4);
	NEAR(cost.bytes, 10);
	NEAR(cost.optimizer, 4.25);
	machine.ranks = 1;
	NEAR(mu_cost_step(&work, &machine).exposed, 0);
}

/* With the first two units frozen half of the operations go backward (6 s x 3 / 6), and 4 of 8 elements travel and are updated. */
static void test_frozen(void **state)
{
	(void)state;
	mu_cost_work work = work_of(4, false);
	mu_cost_machine machine = machine_of(2, &tenth);
	work.first_trained = 2;
	mu_cost cost = mu_cost_step(&work, &machine);
	NEAR(cost.forward, 3);
	NEAR(cost.backward, 3);
	NEAR(cost.bytes, 4);
	NEAR(cost.exposed, 1.8);
	NEAR(cost.optimizer, 2);
}

static void test_memory(void **state)
{
	(void)state;
	for (int stage = 0; stage < 4; stage++) {
		mu_cost_state s = mu_cost_memory(100, 2, 2, 12, stage, 4);
		NEAR(s.optimizer, stage >= 1 ? 300 : 1200);
		NEAR(s.gradients, stage >= 2 ? 50 : 200);
		NEAR(s.parameters, stage >= 3 ? 50 : 200);
	}
}

/* Whatever the bucket size: overlap never costs, and never hides more than backward lasts. */
static void test_bounds(void **state)
{
	(void)state;
	for (double bucket = 1; bucket < 10; bucket++)
		for (int ranks = 1; ranks < 5; ranks++) {
			mu_cost_work work = work_of(bucket, true), plain = work_of(bucket, false);
			mu_cost_machine machine = machine_of(ranks, &tenth);
			mu_cost with = mu_cost_step(&work, &machine), without = mu_cost_step(&plain, &machine);
			assert_true(with.exposed <= without.exposed);
			assert_true(without.exposed - with.exposed <= with.backward);
			NEAR(with.communication, without.communication);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_one_rank), cmocka_unit_test(test_overlap), cmocka_unit_test(test_accumulation),
	        cmocka_unit_test(test_sharding), cmocka_unit_test(test_data),    cmocka_unit_test(test_memory),
	        cmocka_unit_test(test_bounds),   cmocka_unit_test(test_waiting), cmocka_unit_test(test_frozen),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
