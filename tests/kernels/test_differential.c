/* Is every table the reference? All of mu_ops_all, the reference itself included: it must keep the same contract about
 * memory in every type. MURAL_TEST_SEED, MURAL_TEST_CASES and MURAL_TEST_ONLY=<row> choose what runs.
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/differential.h"

#define TRIALS 128 /* per row and type: twice through the flags; some seconds in all */

static void test_every_table(void **state)
{
	(void)state;
	const differential_options options = differential_options_from_environment(TRIALS);
	size_t failures = 0;
	for (const mu_ops *const *table = mu_ops_all; *table; table++)
		failures += differential_run(*table, &options);
	assert_int_equal(failures, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_table)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
