/* Lists of what is not trained. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/vit.h"

static mural_model_config config;

static int enter(void **state)
{
	(void)state;
	mural_model_defaults(&config);
	config.image_height = config.image_width = 8;
	config.patch = 4;
	config.depth = 3;
	config.width = 12;
	config.heads = 2;
	config.mlp_width = 20;
	config.classes = 5;
	return 0;
}

/* Frozen tensors per unit: embed, three blocks, head. */
static void expect(const char *list, const size_t frozen[5], size_t first_trained)
{
	mu_vit vit;
	mural_error err = {0};
	assert_int_equal(mu_vit_init(&vit, &config, NULL), MURAL_OK);
	if (mu_vit_freeze(&vit, list, &err) != MURAL_OK)
		fail_msg("%s: %s", list, err.message);
	for (size_t u = 0; u < 5; u++) {
		size_t n = 0;
		for (size_t i = 0; i < vit.units[u].n_tensors; i++)
			n += !!(vit.units[u].tensors[i].flags & MU_TENSOR_FROZEN);
		assert_int_equal(n, frozen[u]);
	}
	assert_int_equal(mu_vit_first_trained(&vit), first_trained);
	mu_vit_release(&vit);
}

static void lists(void **state)
{
	(void)state;
	expect("", (const size_t[]){0, 0, 0, 0, 0}, 0);
	expect("embed", (const size_t[]){4, 0, 0, 0, 0}, 1);
	expect("blocks", (const size_t[]){0, 12, 12, 12, 0}, 0);
	expect("embed, blocks", (const size_t[]){4, 12, 12, 12, 0}, 4);
	expect("head", (const size_t[]){0, 0, 0, 0, 4}, 0);
	expect(" embed ,blocks.0-1", (const size_t[]){4, 12, 12, 0, 0}, 3);
	expect("blocks.2,head", (const size_t[]){0, 0, 0, 12, 4}, 0);
	expect("class_token", (const size_t[]){1, 0, 0, 0, 0}, 0);
	expect("*.ln_?.*", (const size_t[]){0, 4, 4, 4, 0}, 0);
	expect("encoder.ln.*,*bias", (const size_t[]){1, 6, 6, 6, 3}, 0);
}

static void refused(void **state)
{
	(void)state;
	static const char *const cases[][2] = {
	        {"block.0", "'block.0' freezes nothing: no tensor has such a name"},
	        {"embed,,head", "'' cannot be frozen: expected embed, blocks, blocks.A-B with blocks 0 .. 2, head"},
	        {"embed,", "'' cannot be frozen"},
	        {"blocks.", "'blocks.' cannot be frozen"},
	        {"blocks.3", "'blocks.3' cannot be frozen"},
	        {"blocks.1-0", "'blocks.1-0' cannot be frozen"},
	        {"blocks.0-", "'blocks.0-' cannot be frozen"},
	        {"blocks.0-9999999999999999999999", "cannot be frozen"},
	        {"blocks.-1", "'blocks.-1' cannot be frozen"},
	        {"embed,blocks,head", "all tensors are frozen ('embed,blocks,head'): nothing is left to train"},
	        {"*", "all tensors are frozen"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		mu_vit vit;
		mural_error err = {0};
		assert_int_equal(mu_vit_init(&vit, &config, NULL), MURAL_OK);
		assert_int_equal(mu_vit_freeze(&vit, cases[i][0], &err), MURAL_USAGE);
		if (!strstr(err.message, cases[i][1]))
			fail_msg("%s: %s", cases[i][0], err.message);
		mu_vit_release(&vit);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(lists), cmocka_unit_test(refused)};
	return cmocka_run_group_tests(tests, enter, NULL);
}
