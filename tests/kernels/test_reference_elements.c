/* Are the reference's 16-bit numbers exact? All 65536 of each type, and rounding stated in another way: the result is
 * the nearest of its neighbours, and the even one in a tie. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/philox.h"
#include "kernels/reference/element.h"

typedef struct narrow {
	mu_dtype type;
	uint16_t infinity;
	double largest, smallest; /* finite; above 0 */
} narrow;

static const narrow types[] = {
        {MU_BF16, 0x7f80, 0x1.fep127, 0x1p-133},
        {MU_F16, 0x7c00, 65504, 0x1p-24},
};

static uint16_t pack(mu_dtype type, double value)
{
	uint16_t bits[4] = {0}; /* room for a double: the compiler sees all types */
	mu_element_store(type, bits, 0, value);
	return bits[0];
}

static double unpack(mu_dtype type, uint16_t bits)
{
	const uint16_t room[4] = {bits};
	return mu_element_load(type, room, 0);
}

static void test_every_number_survives(void **state)
{
	(void)state;
	for (size_t t = 0; t < 2; t++)
		for (uint32_t bits = 0; bits < 65536; bits++) {
			const double value = unpack(types[t].type, (uint16_t)bits);
			if ((bits & 0x7fff) > types[t].infinity)
				assert_true(isnan(value) && isnan(unpack(types[t].type, pack(types[t].type, value))));
			else
				assert_int_equal(pack(types[t].type, value), bits);
		}
}

/* bf16 is the upper half of a float: the other way to unpack it. */
static void test_bf16_is_half_a_float(void **state)
{
	(void)state;
	for (uint32_t bits = 0; bits < 65536; bits++) {
		const uint32_t wide = bits << 16;
		float value;
		memcpy(&value, &wide, sizeof value);
		if (!isnan(value))
			assert_true((double)value == unpack(MU_BF16, (uint16_t)bits));
	}
}

static void test_known_numbers(void **state)
{
	(void)state;
	const struct {
		double value;
		uint16_t bf16, f16;
	} known[] = {
	        {0, 0, 0},
	        {-0.0, 0x8000, 0x8000},
	        {1, 0x3f80, 0x3c00},
	        {-2, 0xc000, 0xc000},
	        {1.0 / 3, 0x3eab, 0x3555},
	        {65504, 0x4780, 0x7bff},
	        {65519.9, 0x4780, 0x7bff},
	        {65520, 0x4780, 0x7c00},
	        {1e6, 0x4974, 0x7c00},
	        {-1e300, 0xff80, 0xfc00},
	        {0x1.fefp127, 0x7f7f, 0x7c00},
	        {0x1.ffp127, 0x7f80, 0x7c00}, /* halfway to 2^128 */
	        {0x1p-14, 0x3880, 0x0400}, /* f16: smallest normal */
	        {0x1.ffep-15, 0x3880, 0x0400}, /* rounds up from the subnormals */
	        {0x1p-24, 0x3380, 0x0001},
	        {0x1p-25, 0x3300, 0x0000}, /* a tie, to even */
	        {0x1.000002p-25, 0x3300, 0x0001},
	        {0x1p-133, 0x0001, 0},
	        {0x1p-134, 0, 0},
	        {0x1.8p-133, 0x0002, 0}, /* a tie, to even */
	        {5e-324, 0, 0},
	        {(double)INFINITY, 0x7f80, 0x7c00},
	        {-(double)INFINITY, 0xff80, 0xfc00},
	};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		assert_int_equal(pack(MU_BF16, known[i].value), known[i].bf16);
		assert_int_equal(pack(MU_F16, known[i].value), known[i].f16);
	}
	assert_true(isnan(unpack(MU_BF16, pack(MU_BF16, (double)NAN))));
	assert_true(isnan(unpack(MU_F16, pack(MU_F16, (double)NAN))));
}

/* value > 0 within the type's range. */
static void check_nearest(const narrow *t, double value)
{
	const uint16_t bits = pack(t->type, value);
	const double error = fabs(unpack(t->type, bits) - value);
	for (int step = -1; step <= 1; step += 2) {
		if ((bits == 0 && step < 0) || bits + step >= t->infinity)
			continue;
		const double other = fabs(unpack(t->type, (uint16_t)(bits + step)) - value);
		assert_true(error < other || (error == other && bits % 2 == 0));
	}
}

static void test_rounds_to_nearest_even(void **state)
{
	(void)state;
	const mu_random_key key = mu_random_key_make(1, MU_PURPOSE_TEST, 0);
	for (size_t t = 0; t < 2; t++)
		for (uint32_t i = 0; i < 20000; i++) {
			const uint16_t bits = (uint16_t)mu_random_below(key, t, i, types[t].infinity - 1);
			const double low = unpack(types[t].type, bits), high = unpack(types[t].type, bits + 1);
			check_nearest(&types[t], low + (high - low) * mu_random_uniform(key, 9, i));
			check_nearest(&types[t], low + (high - low) / 2);
		}
}

static void test_ends_of_the_range(void **state)
{
	(void)state;
	for (size_t t = 0; t < 2; t++) {
		const narrow *n = &types[t];
		assert_true(unpack(n->type, n->infinity - 1) == n->largest);
		assert_true(unpack(n->type, 1) == n->smallest);
		assert_int_equal(pack(n->type, nextafter(n->smallest / 2, 1)), 1);
		assert_int_equal(pack(n->type, n->smallest / 2), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_every_number_survives), cmocka_unit_test(test_bf16_is_half_a_float),
	        cmocka_unit_test(test_known_numbers),         cmocka_unit_test(test_rounds_to_nearest_even),
	        cmocka_unit_test(test_ends_of_the_range),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
