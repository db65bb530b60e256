/* The pace of an emulated device. What is asserted of time is only that nothing ends before its window, which no load can change.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "engine/pace.h"

static mu_vit vit;

static int make_model(void **state)
{
	(void)state;
	mural_model_config config;
	mural_model_defaults(&config);
	return mural_model_preset(&config, "vit_ti_16", NULL) || mu_vit_init(&vit, &config, NULL);
}

static int free_model(void **state)
{
	(void)state;
	mu_vit_release(&vit);
	return 0;
}

static void step(mu_pace *pace, size_t images)
{
	mu_pace_begin(pace, images);
	for (size_t u = 0; u < vit.n_units; u++)
		mu_pace_forward(pace, u);
	for (size_t u = vit.n_units; u-- > 0;)
		mu_pace_backward(pace, u);
	mu_pace_end(pace);
}

static void a_real_device_is_let_alone(void **state)
{
	(void)state;
	mu_pace pace;
	assert_int_equal(mu_pace_init(&pace, NULL, &vit, NULL), MURAL_OK);
	step(&pace, 1000000);
	assert_int_equal(mu_pace_end_step(&pace, NULL), MURAL_OK);
	assert_int_equal(pace.facts.steps, 0);
	mu_pace_release(&pace);
}

/* A third forward, two thirds backward, each unit by its operations. */
static void the_window_is_divided_over_the_units(void **state)
{
	(void)state;
	const mural_cluster_device device = {.name = "slow", .seconds_per_image = 1};
	mu_pace pace;
	assert_int_equal(mu_pace_init(&pace, &device, &vit, NULL), MURAL_OK);
	size_t n = vit.n_units;
	assert_true(fabs(pace.until[n - 1] - 1.0 / 3) < 1e-12);
	assert_true(fabs(pace.until[n] - 1) < 1e-12);
	for (size_t u = 1; u < n; u++) {
		assert_true(pace.until[u] > pace.until[u - 1]);
		assert_true(pace.until[n + u] < pace.until[n + u - 1]);
	}
	double block = mu_vit_unit_flops(&vit, 1) / mu_vit_forward_flops(&vit);
	assert_true(fabs(pace.until[1] - pace.until[0] - block / 3) < 1e-12);
	assert_true(fabs(pace.until[n] - pace.until[n + 1] -
	                 2 * mu_vit_unit_flops(&vit, 0) / 3 / mu_vit_forward_flops(&vit)) < 1e-12);
	mu_pace_release(&pace);
}

static void a_step_lasts_as_long_as_described(void **state)
{
	(void)state;
	const mural_cluster_device device = {.name = "slow", .seconds_per_image = 0.002, .seconds_per_batch = 0.004};
	mu_pace pace;
	assert_int_equal(mu_pace_init(&pace, &device, &vit, NULL), MURAL_OK);
	double from = mu_now();
	step(&pace, 8);
	assert_true(mu_now() - from >= 0.02);
	step(&pace, 0); /* no images, no time */
	assert_int_equal(mu_pace_end_step(&pace, NULL), MURAL_OK);
	assert_int_equal(pace.facts.steps, 1);
	assert_true(fabs(pace.facts.seconds - 0.02) < 1e-12);
	for (int i = 0; i < 2 * MU_PACE_LATE; i++) { /* whoever never has any cannot be late */
		step(&pace, 0);
		assert_int_equal(mu_pace_end_step(&pace, NULL), MURAL_OK);
	}
	assert_int_equal(pace.facts.late_steps, 0);
	mu_pace_release(&pace);
}

static void a_rank_without_images_is_never_late(void **state)
{
	(void)state;
	const mural_cluster_device device = {.name = "fast", .tflops = 1e9};
	mu_pace pace;
	assert_int_equal(mu_pace_init(&pace, &device, &vit, NULL), MURAL_OK);
	for (int i = 0; i < 4 * MU_PACE_LATE; i++) {
		step(&pace, 0);
		assert_int_equal(mu_pace_end_step(&pace, NULL), MURAL_OK);
	}
	assert_int_equal(pace.facts.late_steps, 0);
	mu_pace_release(&pace);
}

/* Nothing takes no time at all, so this device is always too fast. */
static void a_machine_that_is_too_slow_is_an_error(void **state)
{
	(void)state;
	const mural_cluster_device device = {.name = "fast", .tflops = 1e9};
	mu_pace pace;
	mural_error err = {0};
	assert_int_equal(mu_pace_init(&pace, &device, &vit, NULL), MURAL_OK);
	for (int i = 0; i < 2 * MU_PACE_LATE - 1; i++) {
		step(&pace, 1);
		assert_int_equal(mu_pace_end_step(&pace, NULL), MURAL_OK);
	}
	step(&pace, 1);
	assert_int_equal(mu_pace_end_step(&pace, &err), MURAL_FAILED);
	assert_non_null(strstr(err.message, "this machine cannot be as fast as the emulated fast"));
	assert_int_equal(pace.facts.late_steps, 2 * MU_PACE_LATE);
	mu_pace_release(&pace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_real_device_is_let_alone),
	        cmocka_unit_test(the_window_is_divided_over_the_units),
	        cmocka_unit_test(a_step_lasts_as_long_as_described),
	        cmocka_unit_test(a_rank_without_images_is_never_late),
	        cmocka_unit_test(a_machine_that_is_too_slow_is_an_error),
	};
	return cmocka_run_group_tests(tests, make_model, free_model);
}
