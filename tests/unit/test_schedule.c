/* Schedules against the values that DeepSpeed 0.19.6's own classes give. SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "optim/schedule.h"

static const mural_optimizer_config adam = {.lr = 0.1, .beta1 = 0.9, .beta2 = 0.999};

static void check(const mural_schedule_config *s, const double *lr, size_t n, double within)
{
	for (size_t i = 0; i < n; i++) {
		double got = mu_schedule_at(s, &adam, i + 1).lr;
		if (!(fabs(got - lr[i]) <= within))
			fail_msg("update %zu: lr %.12g, expected %.12g", i + 1, got, lr[i]);
	}
}

#define CHECK(s, within, ...)                                                \
	do {                                                                 \
		const double golden[] = {__VA_ARGS__};                       \
		check(&(s), golden, sizeof golden / sizeof *golden, within); \
	} while (0)

static void warmup_lr(void **state)
{
	(void)state;
	mural_schedule_config s = {.kind = MURAL_SCHEDULE_WARMUP, .warmup_steps = 4, .max_lr = 0.1, .warmup_log = true};
	CHECK(s, 1e-12, 0, 0, 0.1 * log(2) / log(4), 0.1 * log(3) / log(4), 0.1, 0.1, 0.1);
	CHECK(s, 5e-7, 0, 0, 0.05, 0.079248, 0.1, 0.1);
	s.warmup_log = false;
	CHECK(s, 1e-12, 0, 0, 0.025, 0.05, 0.075, 0.1, 0.1);
	s.min_lr = 0.02;
	CHECK(s, 1e-12, 0.02, 0.02, 0.04, 0.06, 0.08, 0.1);
	s.warmup_steps = 0; /* raised to two */
	CHECK(s, 1e-12, 0.02, 0.02, 0.06, 0.1);
}

static void warmup_decay(void **state)
{
	(void)state;
	mural_schedule_config s = {
	        .kind = MURAL_SCHEDULE_WARMUP_DECAY, .warmup_steps = 4, .total_steps = 10, .max_lr = 0.1};
	CHECK(s, 1e-12, 0, 0, 0.025, 0.05, 0.075, 0.1, 0.5 / 6, 0.4 / 6, 0.3 / 6, 0.2 / 6, 0.1 / 6, 0, 0);
}

static void warmup_cosine(void **state)
{
	(void)state;
	mural_schedule_config s = {
	        .kind = MURAL_SCHEDULE_WARMUP_COSINE, .warmup_steps = 4, .total_steps = 10, .cos_min_ratio = 1e-4};
	CHECK(s, 5e-7, 0, 0, 0.025, 0.05, 0.075, 0.093302, 0.0750025, 0.050005, 0.0250075, 0.00670806, 1e-5, 1e-5);
	CHECK(s, 1e-12, 0, 0, 0.025, 0.05, 0.075, 0.1 * (1e-4 + 0.9999 * (2 + sqrt(3)) / 4),
	      0.1 * (1e-4 + 0.9999 * 0.75), 0.1 * (1e-4 + 0.9999 * 0.5), 0.1 * (1e-4 + 0.9999 * 0.25),
	      0.1 * (1e-4 + 0.9999 * (2 - sqrt(3)) / 4), 1e-5);
}

static void range_test(void **state)
{
	(void)state;
	mural_schedule_config s = {
	        .kind = MURAL_SCHEDULE_RANGE_TEST, .range_min_lr = 1e-3, .range_steps = 2, .range_rate = 1};
	CHECK(s, 1e-15, 0.001, 0.0015, 0.002, 0.0025);
	s.range_staircase = true;
	CHECK(s, 1e-15, 0.001, 0.001, 0.002, 0.002);
}

static void one_cycle(void **state)
{
	(void)state;
	mural_schedule_config s = {
	        .kind = MURAL_SCHEDULE_ONE_CYCLE,
	        .cycle_min_lr = 0.01,
	        .max_lr = 0.1,
	        .cycle_first_steps = 4,
	        .cycle_second_steps = 4,
	        .cycle_decay_steps = 2,
	        .cycle_decay_rate = 1,
	        .cycle_momentum = true,
	        .cycle_min_momentum = 0.8,
	        .cycle_max_momentum = 0.9,
	        .cycle_momentum_decay = 1,
	};
	CHECK(s, 1e-12, 0.01, 0.0325, 0.055, 0.0775, 0.1, 0.0775, 0.055, 0.0325, 0.01, 0.01 / 1.5, 0.005, 0.004);
	const double beta1[] = {0.8, 0.875, 0.85, 0.825, 0.8, 0.825, 0.85, 0.875, 0.9, 1.35, 1.8};
	for (size_t i = 0; i < sizeof beta1 / sizeof *beta1; i++) {
		mu_schedule_point at = mu_schedule_at(&s, &adam, i + 1);
		assert_true(fabs(at.beta1 - beta1[i]) < 1e-12);
		assert_true(at.beta2 == 0.99);
	}
	s.cycle_decay_steps = 0;
	s.cycle_first_stairs = s.cycle_second_stairs = 2;
	CHECK(s, 1e-12, 0.01, 0.01, 0.055, 0.055, 0.1, 0.055, 0.055, 0.01, 0.01);
}

static void own_cosine(void **state)
{
	(void)state;
	mural_schedule_config s = {.kind = MURAL_SCHEDULE_COSINE, .warmup_steps = 2, .total_steps = 7, .min_lr = 0.02};
	CHECK(s, 1e-12, 0.05, 0.1, 0.1, 0.02 + 0.08 * (1 + cos(M_PI / 4)) / 2, 0.06,
	      0.02 + 0.08 * (1 - cos(M_PI / 4)) / 2, 0.02, 0.02, 0.02);
	s.warmup_steps = 0;
	s.total_steps = 1;
	CHECK(s, 1e-12, 0.1, 0.02);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(warmup_lr),  cmocka_unit_test(warmup_decay), cmocka_unit_test(warmup_cosine),
	        cmocka_unit_test(range_test), cmocka_unit_test(one_cycle),    cmocka_unit_test(own_cosine),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
