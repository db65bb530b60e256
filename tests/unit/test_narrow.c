/* bf16 and fp16: all numbers of both, and floats around every boundary of rounding, against plain double.
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "base/narrow.h"
#include "kernels/reference/element.h"

static void all_numbers_widen_and_come_back(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 65536; i++) {
		const uint16_t bits = (uint16_t)i, element[4] = {bits};
		const double brain = mu_element_load(MU_BF16, element, 0), half = mu_element_load(MU_F16, element, 0);
		assert_true((double)mu_bf16_float(bits) == brain || isnan(brain));
		assert_true((double)mu_f16_float(bits) == half || isnan(half));
		assert_int_equal(isnan(mu_f16_float(bits)), isnan(half));
		assert_int_equal(!!signbit(mu_f16_float(bits)), bits >> 15);
		if (!isnan(half))
			assert_int_equal(mu_f16_bits(mu_f16_float(bits)), bits);
		if (!isnan(brain))
			assert_int_equal(mu_bf16_bits(mu_bf16_float(bits)), bits);
	}
}

/* want is as large as any element: compilers look at all of them. */
static void expect_rounded(float x)
{
	_Alignas(8) uint16_t want[8];
	mu_element_store(MU_F16, want, 0, (double)x);
	if (mu_f16_bits(x) != want[0])
		fail_msg("%a becomes %04x in fp16, not %04x", (double)x, mu_f16_bits(x), want[0]);
	mu_element_store(MU_BF16, want, 0, (double)x);
	if (mu_bf16_bits(x) != want[0])
		fail_msg("%a becomes %04x in bf16, not %04x", (double)x, mu_bf16_bits(x), want[0]);
}

/* Each fp16 number, what lies halfway to the next, and the floats next to both. */
static void floats_round_to_nearest_even(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 0x7c00; i++) {
		const float low = mu_f16_float((uint16_t)i),
		            high = i < 0x7bff ? mu_f16_float((uint16_t)(i + 1)) : 65536;
		const float middle = (low + high) / 2, corners[] = {low, middle};
		for (int c = 0; c < 2; c++)
			for (int side = -1; side <= 1; side++) {
				const float x = side ? nextafterf(corners[c], side * INFINITY) : corners[c];
				expect_rounded(x);
				expect_rounded(-x);
			}
	}
	const float strange[] = {INFINITY, -INFINITY, 1e30f, 1e-30f, 0x1p-149f, -0x1p-126f, 0x1.fffffep127f};
	for (size_t i = 0; i < sizeof strange / sizeof *strange; i++)
		expect_rounded(strange[i]);
	assert_true(isnan(mu_f16_float(mu_f16_bits(NAN))) && isnan(mu_bf16_float(mu_bf16_bits(NAN))));
	assert_true(isnan(mu_bf16_float(mu_bf16_bits(mu_bits_float(0x7f800001)))));
	assert_true(isnan(mu_f16_float(mu_f16_bits(mu_bits_float(0xff800001)))));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(all_numbers_widen_and_come_back),
	        cmocka_unit_test(floats_round_to_nearest_even),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
