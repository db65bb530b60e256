/* Presets, hints, parameter counts, and what a configuration is refused for. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/nearest.h"
#include "mural/model.h"

typedef struct expected_size {
	const char *name;
	size_t image, classes, parameters;
} expected_size;

/* Published counts with class token; ours must agree to the last one. */
static const expected_size sizes[] = {
        {"vit_ti_16", 224, 1000, 5717416},       {"vit_s_32", 224, 1000, 22878952},
        {"vit_s_16", 224, 1000, 22050664},       {"vit_m_16", 224, 1000, 38837736},
        {"vit_b_32", 224, 1000, 88224232},       {"vit_b_16", 224, 1000, 86567656},
        {"vit_b_8", 224, 1000, 86576872},        {"vit_b_16", 384, 1000, 86859496},
        {"vit_l_32", 224, 1000, 306535400},      {"vit_l_16", 224, 1000, 304326632},
        {"vit_l_14", 224, 1000, 304203752},      {"vit_l_16", 384, 1000, 304715752},
        {"vit_so400m_14", 224, 1000, 413597656}, {"vit_h_14", 224, 1000, 632045800},
        {"vit_g_14", 224, 1000, 1012611432},     {"vit_G_14", 224, 1000, 1844440680},
        {"vit_e_14", 224, 1000, 3807214312},     {"vit_ti_4", 32, 10, 5362762},
        {"vit_s_4", 32, 10, 21342346},           {"vit_b_4", 32, 10, 85152010},
};

static void published_parameter_counts(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		mural_model_config c;
		mural_error err = {0};
		mural_model_defaults(&c);
		c.image_height = c.image_width = sizes[i].image;
		c.classes = sizes[i].classes;
		assert_int_equal(mural_model_preset(&c, sizes[i].name, &err), MURAL_OK);
		assert_int_equal(mural_model_config_check(&c, &err), MURAL_OK);
		assert_string_equal(c.preset, sizes[i].name);
		if (mural_model_parameters(&c) != sizes[i].parameters)
			fail_msg("%s@%zu: %zu parameters, expected %zu", sizes[i].name, sizes[i].image,
			         mural_model_parameters(&c), sizes[i].parameters);
	}
}

static void defaults_are_vit_b_16(void **state)
{
	(void)state;
	mural_model_config c;
	mural_model_defaults(&c);
	assert_string_equal(c.preset, "vit_b_16");
	assert_int_equal(c.image_height, 224);
	assert_int_equal(c.image_width, 224);
	assert_int_equal(c.channels, 3);
	assert_int_equal(c.classes, 1000);
	assert_int_equal(c.patch, 16);
	assert_int_equal(c.pool, MURAL_POOL_TOKEN);
	assert_true(c.class_token);
	assert_true(c.norm_eps == 1e-6);
	assert_true(c.dropout == 0 && c.attention_dropout == 0 && c.drop_path == 0);
	assert_int_equal(mural_model_config_check(&c, NULL), MURAL_OK);
}

static void a_preset_changes_only_the_shape(void **state)
{
	(void)state;
	mural_model_config c;
	mural_model_defaults(&c);
	c.image_height = 28;
	c.channels = 1;
	c.classes = 7;
	c.pool = MURAL_POOL_MEAN;
	c.class_token = false;
	c.dropout = 0.25;
	assert_int_equal(mural_model_preset(&c, "vit_gopt_7", NULL), MURAL_OK);
	assert_int_equal(c.patch, 7);
	assert_int_equal(c.width, 1536);
	assert_int_equal(c.depth, 40);
	assert_int_equal(c.heads, 16);
	assert_int_equal(c.mlp_width, 6144);
	assert_int_equal(c.image_height, 28);
	assert_int_equal(c.channels, 1);
	assert_int_equal(c.classes, 7);
	assert_int_equal(c.pool, MURAL_POOL_MEAN);
	assert_false(c.class_token);
	assert_true(c.dropout == 0.25);
	assert_int_equal(mural_model_preset(&c, "mu", NULL), MURAL_OK);
	assert_int_equal(c.width, 32);
	assert_int_equal(c.depth, 1);
	assert_int_equal(c.mlp_width, 128);
	assert_int_equal(c.heads, 2);
}

static void case_tells_g_from_G(void **state)
{
	(void)state;
	mural_model_config small, large;
	mural_model_defaults(&small);
	mural_model_defaults(&large);
	assert_int_equal(mural_model_preset(&small, "vit_g_14", NULL), MURAL_OK);
	assert_int_equal(mural_model_preset(&large, "vit_G_14", NULL), MURAL_OK);
	assert_int_equal(small.width, 1408);
	assert_int_equal(large.width, 1664);
}

static void assert_hint(const char *name, const char *hint)
{
	mural_model_config c, before;
	mural_error err = {0};
	mural_model_defaults(&c);
	memcpy(&before, &c, sizeof c);
	assert_int_equal(mural_model_preset(&c, name, &err), MURAL_USAGE);
	assert_memory_equal(&c, &before, sizeof c);
	char expected[128];
	snprintf(expected, sizeof expected, "unknown model preset '%.40s'", name);
	assert_non_null(strstr(err.message, expected));
	snprintf(expected, sizeof expected, "did you mean '%s'?", hint ? hint : "");
	assert_int_equal(strstr(err.message, expected) != NULL, hint != NULL);
}

static void unknown_presets_get_a_hint(void **state)
{
	(void)state;
	assert_hint("vit_B_16", "vit_b_16");
	assert_hint("vitb_16", "vit_b_16");
	assert_hint("vit_b16", "vit_b_16");
	assert_hint("vit_b_016", "vit_b_16");
	assert_hint("vit_so400_14", "vit_so400m_14");
	assert_hint("vit_tI_4", "vit_ti_4");
	assert_hint("Mu", "mu");
	assert_hint("vit_b_", "vit_b_16");
	assert_hint("vit_b_0", "vit_b_16");
	assert_hint("vit_b_-4", "vit_b_16");
	assert_hint("vit_b_99999999999999999999", NULL);
	assert_hint("resnet50", NULL);
	assert_hint("", NULL);
	assert_hint("vit__16", "vit_s_16");
	assert_hint(
	        "a very long name that goes on and on and on and on and on and on and on and on and on and on and on",
	        NULL);
}

static void every_family_has_a_line(void **state)
{
	(void)state;
	const char *const *lines = mural_model_presets();
	size_t n = 0;
	while (lines[n])
		n++;
	assert_int_equal(n, 13);
	assert_string_equal(lines[3], "vit_b_<patch>: width 768, 12 blocks, 12 heads, MLP width 3072");
	for (size_t i = 0; i < n; i++) {
		mural_model_config c;
		mural_model_defaults(&c);
		char name[64];
		snprintf(name, sizeof name, "%.*s16", (int)(strchr(lines[i], '<') - lines[i]), lines[i]);
		assert_int_equal(mural_model_preset(&c, name, NULL), MURAL_OK);
		assert_int_equal(mural_model_config_check(&c, NULL), MURAL_OK);
	}
}

static void assert_refused(const mural_model_config *c, const char *words)
{
	mural_error err = {0};
	assert_int_equal(mural_model_config_check(c, &err), MURAL_USAGE);
	if (!strstr(err.message, words))
		fail_msg("'%s' lacks '%s'", err.message, words);
}

/* Each case spoils one thing of a good configuration. */
static void contradictions_are_named(void **state)
{
	(void)state;
	mural_model_config good, c;
	mural_model_defaults(&good);
#define REFUSE(change, words)              \
	do {                               \
		c = good;                  \
		change;                    \
		assert_refused(&c, words); \
	} while (0)
	REFUSE(c.image_width = 230, "patch 16 does not divide the image of 224 x 230 pixels");
	REFUSE(c.image_height = 8, "patch 16 does not divide the image of 8 x 224 pixels");
	REFUSE(c.heads = 7, "7 heads do not divide the width 768");
	REFUSE(c.class_token = false, "needs a class token");
	REFUSE(c.channels = 17, "channels must be between 1 and 16, not 17");
	REFUSE(c.channels = 0, "channels must be between 1");
	REFUSE(c.patch = 0, "patch must be between 1");
	REFUSE(c.depth = 0, "depth must be between 1");
	REFUSE(c.width = 0, "width must be between 1");
	REFUSE(c.heads = 0, "heads must be between 1");
	REFUSE(c.mlp_width = 0, "MLP width must be between 1");
	REFUSE(c.classes = 0, "classes must be between 1");
	REFUSE(c.classes = ((size_t)1 << 24) + 1, "classes must be between 1 and 16777216");
	REFUSE(c.depth = (size_t)-1, "depth must be between 1");
	REFUSE(c.image_height = c.image_width = 32000; c.patch = 1, "patches");
	REFUSE(c.dropout = 1, "dropout must be at least 0 and below 1, not 1");
	REFUSE(c.dropout = -0.1, "dropout must be");
	REFUSE(c.attention_dropout = 2, "attention dropout must be");
	REFUSE(c.drop_path = 0.0 / 0.0, "drop path must be");
	REFUSE(c.norm_eps = 0, "norm eps must be");
	REFUSE(c.norm_eps = 1.0 / 0.0, "norm eps must be");
#undef REFUSE
}

static void nearest_word(void **state)
{
	(void)state;
	static const char *const words[] = {"steps_per_print", "train_batch_size", "zero_optimization", "seed"};
	assert_string_equal(mu_nearest("train_batchsize", words, 4), "train_batch_size");
	assert_string_equal(mu_nearest("sede", words, 4), "seed");
	assert_string_equal(mu_nearest("SEED", words, 4), "seed");
	assert_null(mu_nearest("optimizer", words, 4));
	assert_null(mu_nearest("seed", words, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(published_parameter_counts),      cmocka_unit_test(defaults_are_vit_b_16),
	        cmocka_unit_test(a_preset_changes_only_the_shape), cmocka_unit_test(case_tells_g_from_G),
	        cmocka_unit_test(unknown_presets_get_a_hint),      cmocka_unit_test(every_family_has_a_line),
	        cmocka_unit_test(contradictions_are_named),        cmocka_unit_test(nearest_word),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
