/* What weights tell stands in for what nobody says, and for nothing else. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/config_text.h"
#include "weights/weights.h"

#define WEIGHTS MU_TEST_SOURCE_DIR "/golden/weights/"
#define INIT "--batch 4 --init-weights " WEIGHTS

static void expect_origin(const mu_test_config *c, const char *key, const char *origin)
{
	const char *found = mural_config_origin(c->report, key);
	if (!strstr(found, origin))
		fail_msg("%s comes from '%s', not from '%s'", key, found, origin);
}

static mu_test_config resolve(const char *options)
{
	mu_test_config c = mu_test_config_text(NULL, options, 1);
	if (c.status != MURAL_OK)
		fail_msg("%s: %s", options, c.said);
	return c;
}

static void the_model_comes_from_the_file(void **state)
{
	(void)state;
	mu_test_config c = resolve(INIT "huggingface");
	const mural_model_config *m = &c.config.model;
	assert_string_equal(m->preset, "custom");
	assert_int_equal(m->width, 16);
	assert_int_equal(m->depth, 2);
	assert_int_equal(m->heads, 2);
	assert_int_equal(m->mlp_width, 24);
	assert_int_equal(m->patch, 8);
	assert_int_equal(m->image_height, 16);
	assert_int_equal(m->classes, 5);
	assert_true(m->norm_eps == 1e-12);
	assert_true(c.config.data.normalise_given && c.config.data.mean[2] == 0.5f);
	assert_int_equal(c.config.data.resize, MURAL_RESIZE_BILINEAR); /* a training's own, not the file's squash */
	expect_origin(&c, "mural.width", "weights ");
	expect_origin(&c, "mural.data.mean", "weights ");
	expect_origin(&c, "mural.data.resize", "default");
	mu_test_config again = mu_test_config_text(c.shown, NULL, 1);
	assert_int_equal(again.status, MURAL_OK);
	assert_string_equal(again.config.model.preset, m->preset);
	assert_memory_equal(&again.config.model.image_height, &m->image_height,
	                    sizeof *m - offsetof(mural_model_config, image_height));
	mu_test_config_free(&again);
	mu_test_config_free(&c);
}

static void what_is_said_stays(void **state)
{
	(void)state;
	mu_test_config c =
	        resolve(INIT "huggingface --classes 9 --image-size 24 --norm-eps 1e-5 --mean 0,0,0 --std 1,1,1");
	assert_int_equal(c.config.model.classes, 9);
	assert_int_equal(c.config.model.image_height, 24);
	assert_true(c.config.model.norm_eps == 1e-5);
	assert_true(c.config.data.mean[0] == 0);
	assert_int_equal(c.config.model.width, 16);
	mu_test_config_free(&c);
	c = resolve(INIT "huggingface --model vit_s_16");
	assert_int_equal(c.config.model.width, 384);
	expect_origin(&c, "mural.width", "preset vit_s_16");
	expect_origin(&c, "mural.norm_eps", "weights ");
	mu_test_config_free(&c);
}

static void pooling_and_gelu_come_from_the_origin(void **state)
{
	(void)state;
	mu_test_config c = resolve(INIT "timm_mean");
	assert_int_equal(c.config.model.pool, MURAL_POOL_MEAN);
	assert_true(c.config.model.class_token);
	mu_test_config_free(&c);
	c = resolve(INIT "jax.npz");
	assert_int_equal(c.config.model.gelu, MURAL_GELU_TANH);
	mu_test_config_free(&c);
}

/* An evaluation prepares images as the weights' origin does. */
static void evaluations_resize_as_the_origin(void **state)
{
	(void)state;
	mural_config config;
	mural_config_sources sources = {.ranks = 1, .evaluation = true, .weights = WEIGHTS "timm"};
	assert_int_equal(mural_config_resolve(&config, NULL, &sources, NULL), MURAL_OK);
	assert_int_equal(config.data.resize, MURAL_RESIZE_BILINEAR);
	assert_int_equal(config.data.filter, MURAL_FILTER_BICUBIC);
	assert_int_equal(config.data.resize_side, 17);
	const char *options[] = {"--image-size", "32"};
	sources.argv = options;
	sources.argc = 2;
	assert_int_equal(mural_config_resolve(&config, NULL, &sources, NULL), MURAL_OK);
	assert_int_equal(config.data.resize_side, 0);
	options[0] = "--resize";
	options[1] = "squash";
	assert_int_equal(mural_config_resolve(&config, NULL, &sources, NULL), MURAL_OK);
	assert_int_equal(config.data.resize, MURAL_RESIZE_SQUASH);
	assert_int_equal(config.data.filter, MURAL_FILTER_BILINEAR);
}

/* A run's config.json says everything, so it needs no weights to begin from; less than that does. */
static void weights_are_opened_only_when_needed(void **state)
{
	(void)state;
	char text[32768];
	mu_test_config c = resolve(INIT "huggingface");
	const char *at = strstr(c.shown, "weights/huggingface");
	assert_non_null(at);
	snprintf(text, sizeof text, "%.*sweights/none%s", (int)(at - c.shown), c.shown,
	         at + strlen("weights/huggingface"));
	mu_test_config gone = mu_test_config_text(text, NULL, 1);
	if (gone.status != MURAL_OK)
		fail_msg("%s", gone.said);
	mu_test_config_free(&gone);
	mu_test_config_free(&c);
	c = mu_test_config_text(NULL, INIT "none", 1);
	assert_int_equal(c.status, MURAL_DATA);
	assert_non_null(strstr(c.said, "No such file"));
	mu_test_config_free(&c);
}

static void origins_have_their_usual_preprocessing(void **state)
{
	(void)state;
	static const struct {
		mu_naming naming;
		const char *model;
		size_t image;
		mural_resize resize;
		mural_filter filter;
		unsigned side;
		float mean;
	} cases[] = {
	        {MU_NAMING_TORCHVISION, "vit_b_16", 224, MURAL_RESIZE_BILINEAR, MURAL_FILTER_BILINEAR, 256, 0.485f},
	        {MU_NAMING_TORCHVISION, "vit_l_16", 224, MURAL_RESIZE_BILINEAR, MURAL_FILTER_BILINEAR, 242, 0.485f},
	        {MU_NAMING_TORCHVISION, "vit_l_32", 224, MURAL_RESIZE_BILINEAR, MURAL_FILTER_BILINEAR, 256, 0.485f},
	        {MU_NAMING_TORCHVISION, "vit_h_14", 518, MURAL_RESIZE_BILINEAR, MURAL_FILTER_BICUBIC, 0, 0.485f},
	        {MU_NAMING_TIMM, "vit_b_16", 224, MURAL_RESIZE_BILINEAR, MURAL_FILTER_BICUBIC, 248, 0.5f},
	        {MU_NAMING_TIMM, "vit_b_16", 384, MURAL_RESIZE_BILINEAR, MURAL_FILTER_BICUBIC, 0, 0.5f},
	        {MU_NAMING_HUGGINGFACE_5, "vit_b_16", 224, MURAL_RESIZE_SQUASH, MURAL_FILTER_BILINEAR, 0, 0.5f},
	        {MU_NAMING_JAX, "vit_b_16", 224, MURAL_RESIZE_SQUASH, MURAL_FILTER_BILINEAR, 0, 0.5f},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		mural_model_config model;
		mural_preprocess p;
		mural_model_defaults(&model);
		assert_int_equal(mural_model_preset(&model, cases[i].model, NULL), MURAL_OK);
		model.image_height = model.image_width = cases[i].image;
		mu_preprocess_default(&p, cases[i].naming, &model);
		assert_int_equal(p.resize, cases[i].resize);
		assert_int_equal(p.filter, cases[i].filter);
		assert_int_equal(p.resize_side, cases[i].side);
		assert_true(p.mean[0] == cases[i].mean);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(the_model_comes_from_the_file),
	        cmocka_unit_test(what_is_said_stays),
	        cmocka_unit_test(pooling_and_gelu_come_from_the_origin),
	        cmocka_unit_test(evaluations_resize_as_the_origin),
	        cmocka_unit_test(weights_are_opened_only_when_needed),
	        cmocka_unit_test(origins_have_their_usual_preprocessing),
	};
	return cmocka_run_group_tests(tests, mu_test_config_enter, mu_test_config_leave);
}
