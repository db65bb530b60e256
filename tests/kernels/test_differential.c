/* Is every table the reference? All of mu_ops_all, the reference itself included: it must keep the same contract about
 * memory in every type. The CPU table runs at each processor level that this machine has.
 * MURAL_TEST_SEED, MURAL_TEST_CASES, MURAL_TEST_ONLY=<row> and MURAL_TEST_TABLE=<table> choose what runs.
 * timeout: 300 (seconds; sanitizers on a busy machine)
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cuda.h"
#include "support/differential.h"

#define TRIALS 128 /* per row and type: twice through the flags; some seconds in all */

static bool is_chosen(const char *table)
{
	const char *only = getenv("MURAL_TEST_TABLE");
	return !only || strcmp(only, table) == 0;
}

static void test_every_table(void **state)
{
	(void)state;
	const differential_options options = differential_options_from_environment(TRIALS);
	size_t failures = 0;
	for (const mu_ops *const *table = mu_ops_all; *table; table++)
		if (is_chosen((*table)->name))
			failures += differential_run(*table, &options);
	assert_int_equal(failures, 0);
}

static mu_cpu_level forced;

/* A processor of a lower level has no instructions for bf16 either. */
static void force_level(mu_ops_context *context)
{
	context->level = forced;
	context->bf16_products = false;
}

/* The best level is what test_every_table ran. */
static void test_lower_cpu_levels(void **state)
{
	(void)state;
	differential_options options = differential_options_from_environment(TRIALS);
	options.prepare = force_level;
	size_t failures = 0;
	if (!is_chosen("cpu"))
		skip();
	for (forced = MU_CPU_BASE; forced < mu_cpu_detect(MU_CPU_LEVELS); forced++) {
		print_message("CPU level %d:\n", (int)forced);
		failures += differential_run(&mu_ops_cpu, &options);
	}
	assert_int_equal(failures, 0);
}

static void swap_bf16_products(mu_ops_context *context)
{
	context->bf16_products = !context->bf16_products;
}

/* The way to multiply bf16 that the table does not choose on this processor; test_every_table ran the other. */
static void test_other_bf16_products(void **state)
{
	(void)state;
	differential_options options = differential_options_from_environment(TRIALS);
	options.prepare = swap_bf16_products;
	if (!is_chosen("cpu") || mu_dnnl_bf16_products() == MU_DNNL_BF16_NONE)
		skip();
	if (!options.only)
		options.only = "linear";
	assert_int_equal(differential_run(&mu_ops_cpu, &options), 0);
}

/* Where there is no module or no GPU the skip says so. MURAL_TEST_CUDA=require makes that a failure, for machines that
 * are there for this test. */
static void test_cuda(void **state)
{
	(void)state;
	const differential_options options = differential_options_from_environment(TRIALS);
	const char *require = getenv("MURAL_TEST_CUDA");
	const mu_ops *cuda;
	mural_error err = {0};
	if (!is_chosen("cuda"))
		skip();
	if (mu_cuda_ops(&cuda, &err) == MURAL_OK) {
		assert_int_equal(differential_run(cuda, &options), 0);
		return;
	}
	print_message("the CUDA table is not tested: %s\n", err.message);
	assert_false(require && strcmp(require, "require") == 0);
	skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_every_table),
	        cmocka_unit_test(test_lower_cpu_levels),
	        cmocka_unit_test(test_other_bf16_products),
	        cmocka_unit_test(test_cuda),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
