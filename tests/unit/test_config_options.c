/* The command line: both forms, booleans, lists, precedence over the file, and what is refused.
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/config_text.h"

static mu_test_config accept(const char *text, const char *options)
{
	mu_test_config c = mu_test_config_text(text, options, 1);
	if (c.status != MURAL_OK)
		fail_msg("%s\n%s", options ? options : "", c.said);
	return c;
}

static void expect_origin(const mu_test_config *c, const char *key, const char *origin)
{
	assert_string_equal(mural_config_origin(c->report, key), origin);
}

static void both_forms(void **state)
{
	(void)state;
	mu_test_config c = accept(
	        NULL,
	        "--batch 8 --lr=0.25 --image-size 32x48 --mean 0.1,0.2,0.3 --std=1,2,3 --pool=mean --no-class-token "
	        "--data d --seed=7 --betas 0.8,0.9");
	assert_int_equal(c.config.batch.train_batch, 8);
	assert_true(c.config.optimizer.lr == 0.25);
	assert_int_equal(c.config.model.image_height, 32);
	assert_int_equal(c.config.model.image_width, 48);
	assert_true(c.config.data.normalise_given);
	assert_true(c.config.data.mean[2] == 0.3f && c.config.data.std[1] == 2.0f);
	assert_int_equal(c.config.model.pool, MURAL_POOL_MEAN);
	assert_false(c.config.model.class_token);
	assert_string_equal(c.config.data.path, "d");
	assert_int_equal(c.config.run.seed, 7);
	assert_true(c.config.optimizer.beta1 == 0.8 && c.config.optimizer.beta2 == 0.9);
	expect_origin(&c, "optimizer.params.lr", "argument --lr");
	expect_origin(&c, "mural.class_token", "argument --no-class-token");
	expect_origin(&c, "mural.data.shuffle", "default");
	assert_null(mural_config_origin(c.report, "no.such.key"));
	mu_test_config_free(&c);
}

static void booleans(void **state)
{
	(void)state;
	mu_test_config c = accept(
	        NULL,
	        "--batch 1 --no-shuffle --drop-last --wall-clock-breakdown=true --overlap-comm=false --no-progress");
	assert_false(c.config.data.shuffle);
	assert_true(c.config.data.drop_last);
	assert_true(c.config.run.wall_clock_breakdown);
	assert_false(c.config.engine.overlap_comm);
	assert_false(c.config.run.progress);
	mu_test_config_free(&c);
}

static void last_one_counts(void **state)
{
	(void)state;
	mu_test_config c =
	        accept(NULL, "--batch 1 --batch 2 --shuffle --no-shuffle --schedule cosine --schedule WarmupLR");
	assert_int_equal(c.config.batch.train_batch, 2);
	assert_false(c.config.data.shuffle);
	assert_int_equal(c.config.schedule.kind, MURAL_SCHEDULE_WARMUP);
	mu_test_config_free(&c);
}

static const char file[] =
        "{\n \"train_batch_size\": 64,\n \"optimizer\": {\"type\": \"Adam\", \"params\": {\"lr\": 0.5, \"betas\": "
        "[0.7, 0.8]}},\n"
        " \"mural\": {\"model\": \"vit_s_16\", \"depth\": 5, \"data\": {\"path\": \"from-file\"}}\n}\n";

static void precedence(void **state)
{
	(void)state;
	mu_test_config c = accept(file, "--lr 0.125 --beta2 0.75 --depth 6");
	assert_true(c.config.optimizer.lr == 0.125);
	assert_true(c.config.optimizer.beta1 == 0.7 && c.config.optimizer.beta2 == 0.75);
	assert_int_equal(c.config.model.depth, 6);
	assert_int_equal(c.config.model.width, 384);
	assert_string_equal(c.config.model.preset, "custom");
	assert_string_equal(c.config.data.path, "from-file");
	expect_origin(&c, "optimizer.params.betas", "argument --beta2");
	expect_origin(&c, "mural.depth", "argument --depth");
	expect_origin(&c, "mural.width", "preset vit_s_16");
	expect_origin(&c, "mural.data.path", "run.json:4:54: mural.data.path");
	expect_origin(&c, "train_batch_size", "run.json:2:2: train_batch_size");
	expect_origin(&c, "mural.epochs", "default");
	mu_test_config_free(&c);
	c = accept(file, "--model vit_l_14 --image-size 28 --depth 24");
	assert_int_equal(c.config.model.width, 1024);
	assert_string_equal(c.config.model.preset, "vit_l_14");
	mu_test_config_free(&c);
	c = accept(NULL, "--batch 1 --model custom --width 96 --heads 3");
	assert_string_equal(c.config.model.preset, "custom");
	assert_int_equal(c.config.model.depth, 12);
	mu_test_config_free(&c);
}

/* What the defaults of the table and of mural_model_defaults say is one thing. */
static void defaults_agree(void **state)
{
	(void)state;
	mural_model_config model;
	mural_model_defaults(&model);
	mu_test_config c = accept(NULL, "--batch 1");
	const mural_model_config *m = &c.config.model;
	assert_string_equal(m->preset, model.preset);
	assert_true(m->image_height == model.image_height && m->image_width == model.image_width &&
	            m->channels == model.channels);
	assert_true(m->patch == model.patch && m->depth == model.depth && m->width == model.width &&
	            m->heads == model.heads);
	assert_true(m->mlp_width == model.mlp_width && m->classes == model.classes && m->pool == model.pool);
	assert_true(m->class_token == model.class_token && m->norm_eps == model.norm_eps && m->gelu == model.gelu);
	assert_true(m->dropout == 0 && m->attention_dropout == 0 && m->drop_path == 0 && m->init == model.init);
	assert_true(c.config.optimizer.lr == 1e-3 && c.config.optimizer.weight_decay == 0.01 &&
	            c.config.optimizer.clipping == 1);
	assert_int_equal(c.config.optimizer.kind, MURAL_OPTIMIZER_ADAMW);
	assert_int_equal(c.config.schedule.kind, MURAL_SCHEDULE_CONSTANT);
	assert_true(c.config.data.fraction == 1 && c.config.data.shuffle && c.config.data.loader_threads == 1 &&
	            c.config.data.prefetch == 4);
	assert_true(c.config.run.epochs == 1 && c.config.run.eval_every == 1 && c.config.run.progress);
	assert_int_equal(c.config.engine.reduce_bucket, 500000000);
	assert_true(c.config.engine.overlap_comm);
	mu_test_config_free(&c);
}

static void schedules(void **state)
{
	(void)state;
	static const char scheduled[] =
	        "train_batch_size: 8\nscheduler: {type: \"WarmupLR\", params: {warmup_num_steps: 9}}\n";
	mu_test_config c = accept(scheduled, "--warmup-steps 4 --min-lr 0.0005");
	assert_int_equal(c.config.schedule.kind, MURAL_SCHEDULE_WARMUP);
	assert_int_equal(c.config.schedule.warmup_steps, 4);
	assert_true(c.config.schedule.min_lr == 0.0005);
	assert_string_equal(c.said, "");
	mu_test_config_free(&c);
	c = accept(scheduled, "--schedule cosine --warmup-epochs 2 --min-lr 0.02");
	assert_int_equal(c.config.schedule.kind, MURAL_SCHEDULE_COSINE);
	assert_int_equal(c.config.schedule.warmup_steps, 0);
	assert_true(c.config.schedule.warmup_epochs == 2 && c.config.schedule.min_lr == 0.02);
	assert_non_null(strstr(c.said, "W-NOEFFECT: run.json:2:40: scheduler.params.warmup_num_steps: overridden"));
	mu_test_config_free(&c);
	c = accept(NULL, "--batch 8 --schedule WarmupCosineLR --warmup-steps 3");
	assert_int_equal(c.config.schedule.kind, MURAL_SCHEDULE_WARMUP_COSINE);
	assert_int_equal(c.config.schedule.warmup_steps, 3);
	assert_int_equal(c.config.schedule.total_steps, 0);
	mu_test_config_free(&c);
	c = accept(scheduled, "--schedule WarmupDecayLR --lr 0.5");
	assert_int_equal(c.config.schedule.kind, MURAL_SCHEDULE_WARMUP_DECAY);
	assert_true(c.config.schedule.max_lr == 0.5 && c.config.schedule.warmup_steps == 9);
	assert_string_equal(c.said, "");
	mu_test_config_free(&c);
	c = accept("train_batch_size: 8\nscheduler: {type: \"WarmupLR\", params: {warmup_max_lr: 0.25}}\n", "--lr 0.5");
	assert_true(c.config.schedule.max_lr == 0.25);
	assert_non_null(strstr(c.said, "W-NOEFFECT: argument --lr: the scheduler sets the learning rate; "
	                               "scheduler.params.warmup_max_lr in force: 0.25"));
	mu_test_config_free(&c);
	c = accept(NULL, "--batch 8 --warmup-steps 3");
	assert_non_null(strstr(c.said, "W-NOEFFECT: argument --warmup-steps: does nothing"));
	mu_test_config_free(&c);
}

static void kinds(void **state)
{
	(void)state;
	mu_test_config c = accept("train_batch_size: 8\noptimizer: {type: \"Lamb\", params: {max_coeff: 3, lr: 4}}\n",
	                          "--optimizer adamw");
	assert_int_equal(c.config.optimizer.kind, MURAL_OPTIMIZER_ADAMW);
	assert_true(c.config.optimizer.lr == 4);
	assert_non_null(strstr(c.said, "W-NOEFFECT: run.json:2:36: optimizer.params.max_coeff: overridden"));
	mu_test_config_free(&c);
	c = accept("train_batch_size: 8\nfp16: {enabled: true}\n",
	           "--precision fp32 --zero-stage 0 --decay-rule weights");
	assert_int_equal(c.config.engine.precision, MURAL_FP32);
	assert_int_equal(c.config.optimizer.decay_rule, MURAL_DECAY_WEIGHTS);
	expect_origin(&c, "fp16.enabled", "argument --precision");
	mu_test_config_free(&c);
}

static void the_file(void **state)
{
	(void)state;
	mu_test_config c = accept(file, NULL);
	mu_test_config_free(&c);
	static const char *const forms[] = {"--config run.json", "--config=run.json", "--deepspeed_config run.json"};
	for (size_t i = 0; i < 3; i++) {
		c = mu_test_config_file(NULL, forms[i], 1);
		assert_int_equal(c.status, MURAL_OK);
		assert_true(c.config.optimizer.lr == 0.5);
		mu_test_config_free(&c);
	}
	c = mu_test_config_file("run.json", "--config other.json", 1);
	assert_int_equal(c.status, MURAL_USAGE);
	assert_non_null(strstr(c.said, "expected one configuration file, got 'run.json' and 'other.json'"));
}

static void refused(void **state)
{
	(void)state;
	static const struct {
		const char *options, *says, *where;
	} bad[] = {
	        {"--bacth 8", "unknown option '--bacth': did you mean --batch?", "argument --bacth"},
	        {"--no-shufle", "unknown option '--no-shufle'", "argument --no-shufle"},
	        {"--micro-bach=3", "did you mean --micro-batch?", "argument --micro-bach=3"},
	        {"--qqqqqqqqqqqq", "unknown option '--qqqqqqqqqqqq'", "argument --qqqqqqqqqqqq"},
	        {"train.json", "unexpected argument 'train.json': options begin with --", "argument train.json"},
	        {"-x", "unknown option '-x'", "argument -x"},
	        {"--", "unknown option '--'", "argument --"},
	        {"--batch", "--batch: expected a whole number above 0, got nothing", "argument --batch"},
	        {"--batch --lr 1", "--batch: expected a whole number above 0, got nothing", "argument --batch"},
	        {"--batch 0", "--batch: expected a whole number above 0, got '0'", "argument --batch"},
	        {"--batch -8", "got '-8'", "argument --batch"},
	        {"--batch 2.5", "got '2.5'", "argument --batch"},
	        {"--batch eight", "got 'eight'", "argument --batch"},
	        {"--batch 1e400", "got '1e400'", "argument --batch"},
	        {"--lr 0x10", "--lr: expected a number above 0, got '0x10'", "argument --lr"},
	        {"--beta1 1", "--beta1: expected a number in [0, 1), got '1'", "argument --beta1"},
	        {"--beta2", "--beta2: expected a number in [0, 1), got nothing", "argument --beta2"},
	        {"--image-size 32x", "--image-size: expected one or two whole numbers above 0",
	         "argument --image-size"},
	        {"--image-size 1x2x3", "got '1x2x3'", "argument --image-size"},
	        {"--mean 1,2,,3", "got '1,2,,3'", "argument --mean"},
	        {"--batch 1 --mean 1,2,3", "expected mean and std together, got mean alone", "argument --mean"},
	        {"--batch 1 --mean 1,2 --std 1,2", "expected a number per channel (3), got 2", "argument --mean"},
	        {"--pool max", "--pool: expected token or mean, got 'max'", "argument --pool"},
	        {"--shuffle=yes", "--shuffle: expected true or false, got 'yes'", "argument --shuffle"},
	        {"--precision fp8", "--precision: expected fp32, bf16 or fp16, got 'fp8'", "argument --precision"},
	        {"--schedule fast",
	         "--schedule: expected WarmupLR, WarmupDecayLR, WarmupCosineLR, OneCycle or LRRangeTest, or constant "
	         "or cosine",
	         "argument --schedule"},
	        {"--optimizer adammm --batch 1", "did you mean Adam?", "argument --optimizer"},
	        {"--schedule OneCycle --batch 1", "scheduler.params.cycle_min_lr", "command line"},
	        {"--model vit_q_16 --batch 1", "mural.model: unknown model preset 'vit_q_16'", "argument --model"},
	        {"--batch 1 --heads 5 --image-size 32", "5 heads do not divide the width 768", "argument --heads"},
	        {"--batch 1 --no-class-token", "class token", "argument --no-class-token"},
	        {"--config", "expected a configuration file, got nothing", "argument --config"},
	        {"--config missing.json", "cannot open the configuration file", "missing.json"},
	        {"",
	         "expected train_batch_size or train_micro_batch_size_per_gpu (--batch or --micro-batch), got neither",
	         "command line"},
	        {"--batch 9 --micro-batch 2", "expected a multiple of micro-batch 2 (--micro-batch) x ranks",
	         "argument --batch"},
	        {"--batch 9 --micro-batch=2 --accumulation 2",
	         "2 (--micro-batch) x gradient_accumulation_steps 2 (--accumulation)", "argument --batch"},
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		mu_test_config c = mu_test_config_text(NULL, bad[i].options, 1);
		if (c.status != MURAL_USAGE)
			fail_msg("accepted: %s", bad[i].options);
		if (!strstr(c.err.message, bad[i].says) || (!strstr(c.err.where, bad[i].where) && *c.err.where))
			fail_msg("%s\nexpected: %s (%s)\ngot: %s (%s)", bad[i].options, bad[i].says, bad[i].where,
			         c.err.message, c.err.where);
	}
}

/* Every option of the table is in the help, and what help lists is understood. */
/* `mural eval --help` lists what an evaluation takes, and nothing else. */
static void help_of_an_evaluation(void **state)
{
	(void)state;
	char *text = NULL;
	size_t bytes, options = 0;
	FILE *out = open_memstream(&text, &bytes);
	mural_config_help_options(out, true);
	fclose(out);
	for (const char *p = text; p && (p = strstr(p, "  --")); p += 4, options++) {
		char option[80];
		size_t skip = !strncmp(p + 4, "[no-]", 5) ? 5 : 0;
		snprintf(option, sizeof option, "--%.*s=%%", (int)strcspn(p + 4 + skip, " \n"), p + 4 + skip);
		const char *argv[] = {option};
		mural_config config;
		mural_error err = {0};
		const mural_config_sources sources = {.argc = 1, .argv = argv, .ranks = 1, .evaluation = true};
		(void)mural_config_resolve(&config, NULL, &sources, &err);
		if (strstr(err.message, "does nothing") || strstr(err.message, "unknown option"))
			fail_msg("%s is in the help: %s", option, err.message);
	}
	assert_in_range(options, 25, 40);
	assert_null(strstr(text, "--lr "));
	assert_non_null(strstr(text, "--val X|TEXT"));
	free(text);
}

static void help_lists_every_option(void **state)
{
	(void)state;
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	mural_config_help_options(out, false);
	fclose(out);
	static const char *const wanted[] = {
	        "--precision fp32|bf16|fp16",
	        "--schedule WarmupLR|WarmupDecayLR|WarmupCosineLR|OneCycle|LRRangeTest|constant|cosine\n",
	        "--pool token|mean",
	        "--batch N",
	        "--micro-batch N",
	        "--lr X",
	        "--beta1 X",
	        "--[no-]shuffle",
	        "--image-size N|HxW",
	        "--mean X,X,...",
	        "--eval-every N",
	        "--data TEXT"};
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
		if (!strstr(text, wanted[i]))
			fail_msg("no %s in the help", wanted[i]);
	size_t options = 0;
	for (const char *p = text; (p = strstr(p, "\n  --")); p += 5, options++) {
		char option[80] = "--", word[80];
		size_t skip = !strncmp(p + 5, "[no-]", 5) ? 5 : 0;
		snprintf(word, sizeof word, "%.*s", (int)strcspn(p + 5 + skip, " \n"), p + 5 + skip);
		strcat(option, word);
		strcat(option, "=%");
		mu_test_config c = mu_test_config_text(NULL, option, 1);
		if (strstr(c.err.message, "unknown option"))
			fail_msg("%s is in the help and not understood", option);
		mu_test_config_free(&c);
	}
	assert_in_range(options, 55, 120);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(both_forms),
	        cmocka_unit_test(booleans),
	        cmocka_unit_test(last_one_counts),
	        cmocka_unit_test(precedence),
	        cmocka_unit_test(defaults_agree),
	        cmocka_unit_test(schedules),
	        cmocka_unit_test(kinds),
	        cmocka_unit_test(the_file),
	        cmocka_unit_test(refused),
	        cmocka_unit_test(help_lists_every_option),
	        cmocka_unit_test(help_of_an_evaluation),
	};
	return cmocka_run_group_tests(tests, mu_test_config_enter, mu_test_config_leave);
}
