/* Known devices are found however they are spelt, and no other for them. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mural/device.h"

static void test_spellings(void **state)
{
	(void)state;
	const struct {
		const char *spelt, *found;
	} rows[] = {
	        {"T4", "T4"},
	        {"Tesla T4", "T4"},
	        {"tesla p4", "P4"},
	        {"NVIDIA GeForce RTX 3070", "RTX 3070"},
	        {"rtx3070", "RTX 3070"},
	        {"gtx1070", "GTX 1070"},
	        {"NVIDIA A100-SXM4-40GB", "A100"},
	        {"A100 80GB", "A100 80GB"},
	        {"A10", "A10"},
	        {"NVIDIA H200", "H200"},
	        {"AMD EPYC 9654", "EPYC 9654"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const mural_device_profile *found = mural_device_profile_find(rows[i].spelt);
		if (!found)
			fail_msg("%s is not known", rows[i].spelt);
		assert_string_equal(found->name, rows[i].found);
	}
}

static void test_unknown(void **state)
{
	(void)state;
	const char *const names[] = {"", "mixed", "T40", "A1000", "RTX", "GTX 10700", "nvidia"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		assert_null(mural_device_profile_find(names[i]));
}

/* A name finds itself; rates and memory are there. */
static void test_whole_table(void **state)
{
	(void)state;
	size_t n = 0;
	for (const mural_device_profile *p; (p = mural_device_profile_at(n)); n++) {
		assert_ptr_equal(mural_device_profile_find(p->name), p);
		assert_true(p->fp32_tflops > 0 && p->memory_bytes_per_second > 0 && p->watts > 0);
	}
	assert_true(n >= 12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_spellings),
	        cmocka_unit_test(test_unknown),
	        cmocka_unit_test(test_whole_table),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
