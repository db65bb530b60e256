/* Counter-based random numbers: the published known answers, and what philox.h promises about keys and ranges.
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "base/philox.h"

/* The known answers of Random123 1.x for philox4x32-10: counter and key all zeros, all ones, and digits of pi. Words of
 * the counter are block low, block high, stream low, stream high; of the key, seed and purpose. */
static void test_known_answers(void **state)
{
	(void)state;
	const struct {
		uint32_t counter[4], key[2], answer[4];
	} known[] = {
	        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
	        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
	         {0xffffffff, 0xffffffff},
	         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
	        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
	         {0xa4093822, 0x299f31d0},
	         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		const uint32_t *c = known[i].counter;
		const mu_random_key key = {.seed = known[i].key[0], .purpose = known[i].key[1]};
		const mu_philox_block block = mu_philox(key, (uint64_t)c[3] << 32 | c[2], (uint64_t)c[1] << 32 | c[0]);
		assert_memory_equal(block.lane, known[i].answer, sizeof block.lane);
	}
}

static void test_keys_and_streams(void **state)
{
	(void)state;
	const mu_random_key key = mu_random_key_make(7, MU_PURPOSE_DROP_PATH, 0x1000005);
	assert_int_equal(key.seed, 7);
	assert_int_equal(key.purpose, 10u << 24 | 5); /* the layer is cut to 24 bits */
	assert_true(mu_stream(3, 0xffffffff) == 0x3ffffffffu);
}

static void test_elements_are_lanes(void **state)
{
	(void)state;
	const mu_random_key key = mu_random_key_make(1, MU_PURPOSE_TEST, 2);
	const uint64_t far = UINT64_C(1) << 40;
	for (uint64_t element = far; element < far + 9; element++)
		assert_int_equal(mu_random_u32(key, 5, element), mu_philox(key, 5, element / 4).lane[element % 4]);
}

/* Means of n draws have a standard deviation of sqrt(1 / 12 n); 4 of them are allowed. */
static void test_uniform(void **state)
{
	(void)state;
	const mu_random_key key = mu_random_key_make(1, MU_PURPOSE_TEST, 0);
	const uint32_t n = 20000;
	double sum = 0;
	for (uint32_t i = 0; i < n; i++) {
		const double u = mu_random_uniform(key, 1, i);
		const uint32_t high = mu_random_u32(key, 1, 2 * (uint64_t)i);
		assert_true(u >= 0 && u < 1);
		assert_true(floor(u * 4294967296.0) == high);
		sum += u;
	}
	assert_float_equal(sum / n, 0.5, 4 / sqrt(12.0 * n));
}

static void test_below(void **state)
{
	(void)state;
	const mu_random_key key = mu_random_key_make(1, MU_PURPOSE_TEST, 0);
	size_t seen[7] = {0};
	for (uint32_t i = 0; i < 7000; i++) {
		const uint32_t k = mu_random_below(key, 2, i, 7);
		assert_true(k < 7);
		seen[k]++;
	}
	for (size_t k = 0; k < 7; k++) /* standard deviation sqrt(7000 / 7 * 6 / 7) = 29 */
		assert_in_range(seen[k], 1000 - 4 * 29, 1000 + 4 * 29);
	assert_int_equal(mu_random_below(key, 2, 0, 1), 0);
}

static void test_drop_threshold(void **state)
{
	(void)state;
	assert_int_equal(mu_drop_threshold(0), 0);
	assert_int_equal(mu_drop_threshold(0.5), 0x80000000u);
	assert_int_equal(mu_drop_threshold(0.25), 0x40000000u);
	assert_true(mu_drop_threshold(nextafter(1, 0)) == 0xffffffffu);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_known_answers),
	        cmocka_unit_test(test_keys_and_streams),
	        cmocka_unit_test(test_elements_are_lanes),
	        cmocka_unit_test(test_uniform),
	        cmocka_unit_test(test_below),
	        cmocka_unit_test(test_drop_threshold),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
