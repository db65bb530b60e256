/* Every case of tests/cases/ds-config at world 1 and 4: batch, values with their origin, warnings and rejections with
 * file, line and key. The files are written for this project, one oddity each; their bytes matter.
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/config_text.h"

#define MOST 10

typedef struct expectation {
	const char *file;
	const char *options;
	uint64_t batch[2][3]; /* at world 1 and 4: train, micro, accumulation; all 0: refused */
	const char *shown[MOST]; /* in --show-config, when accepted */
	const char *said[MOST]; /* in the warnings, or in the rejection at either world */
	const char *unsupported; /* in what mural_config_check_supported says; NULL: it can be run */
	size_t warnings;
} expectation;

#define W(...) .said = {__VA_ARGS__}
#define SHOW(...) .shown = {__VA_ARGS__}
#define BOTH(a, b, c, d, e, f) .batch = {{a, b, c}, {d, e, f}}

static const expectation cases[] = {
        /* Accepted. */
        {"trailing-comma.json", NULL, BOTH(24, 12, 2, 96, 12, 2),
         SHOW("\"type\": \"AdamW\", # trailing-comma.json:3:3: optimizer.type",
              "\"lr\": 0.0003, # trailing-comma.json:4:", "\"betas\": [0.9, 0.95], # trailing-comma.json:4:",
              "\"weight_decay\": 0.05, # trailing-comma.json:4:")},
        {"hash-comment.json", NULL, BOTH(48, 48, 1, 48, 12, 1),
         SHOW("\"train_batch_size\": 48, # hash-comment.json:3:3", "\"steps_per_print\": 25, # hash-comment.json:5:3",
              "\"job_name\": \"run #7\"", "\"bf16\": {\n    \"enabled\": true, # hash-comment.json:7:13")},
        {"slash-comment.json", NULL, BOTH(72, 24, 3, 72, 6, 3),
         SHOW("\"stage\": 1, # slash-comment.json:8:", "\"group\": \"vit//small\""),
         .unsupported = "zero_optimization.stage 1 is not supported"},
        {"unquoted-keys.json", NULL, BOTH(20, 5, 4, 80, 5, 4),
         SHOW("\"stage\": 2,", "\"overlap_comm\": false, # unquoted-keys.json:4:", "\"fp16\": {\n    \"enabled\": true",
              "\"loss_scale\": 128,"),
         .unsupported = "zero_optimization.stage 2 is not supported"},
        {"bom-crlf.json", NULL, BOTH(160, 10, 16, 160, 10, 4),
         SHOW("\"gradient_clipping\": 0.7, # bom-crlf.json:4:3: gradient_clipping")},
        {"float-bucket-size.json", NULL, BOTH(64, 4, 16, 64, 4, 4),
         SHOW("\"stage\": 2,", "\"reduce_bucket_size\": 25000000,", "\"allgather_bucket_size\": 300000000,",
              "\"sub_group_size\": 1000000000000,", "\"stage3_model_persistence_threshold\": 9223372036854775807,",
              "\"type\": \"WarmupLR\",", "\"warmup_max_lr\": 0.0004,", "\"warmup_num_steps\": 2000,",
              "\"warmup_type\": \"log\", # default"),
         .unsupported = "zero_optimization.stage 2 is not supported"},
        {"zero3-fp16-offload.json", NULL, BOTH(256, 4, 64, 256, 4, 16),
         SHOW("\"stage\": 3,", "\"initial_scale_power\": 12,", "\"loss_scale_window\": 400,",
              "\"loss_scale\": 0, # default", "\"gradient_clipping\": 0.8,",
              "\"device\": \"cpu\", # zero3-fp16-offload.json:7:28: zero_optimization.offload_optimizer.device\n"
              "      \"pin_memory\": true, # default",
              "\"device\": \"cpu\", # zero3-fp16-offload.json:6:24: zero_optimization.offload_param.device\n"
              "      \"pin_memory\": false,",
              "\"stage3_param_persistence_threshold\": 20000,", "\"stage3_prefetch_bucket_size\": 15000000,"),
         .unsupported = "zero_optimization.stage 3 is not supported"},
        {"onebit-adam.json", NULL, BOTH(192, 8, 24, 192, 8, 6),
         SHOW("\"type\": \"OneBitAdam\", # onebit-adam.json:6:5: optimizer.type", "\"freeze_step\": 200,",
              "\"stage\": 0, # default", "\"fp16\": {\n    \"enabled\": true"),
         .unsupported = "optimizer.type \"onebitadam\" is not supported"},

        /* Accepted with a warning. */
        {"bool-string.json", NULL, BOTH(3, 3, 1, 12, 3, 1),
         SHOW("\"bf16\": {\n    \"enabled\": true", "\"stage\": 3,", "\"overlap_comm\": false,",
              "\"reduce_bucket_size\": 30000000,"),
         W("W-COERCED: bool-string.json:3:13: bf16.enabled: expected true or false, got the string \"true\"",
           "W-COERCED: bool-string.json:6:5: zero_optimization.overlap_comm: expected true or false, got the string "
           "\"false\"",
           "W-COERCED: bool-string.json:7:5: zero_optimization.reduce_bucket_size: expected a whole number above 0, "
           "got the "
           "string \"30000000\""),
         .unsupported = "zero_optimization.stage 3", .warnings = 3},
        {"zero-bool-legacy.json", NULL, BOTH(28, 28, 1, 28, 7, 1),
         SHOW("\"stage\": 1,", "\"allgather_bucket_size\": 100000000, # zero-bool-legacy.json:4:3: allgather_size"),
         W("W-DEPRECATED: zero-bool-legacy.json:3:3: zero_optimization: expected an object, got true, read as stage 1",
           "W-DEPRECATED: zero-bool-legacy.json:4:3: allgather_size: "),
         .unsupported = "zero_optimization.stage 1", .warnings = 2},
        {"deprecated-keys.json", NULL, BOTH(20, 4, 5, 20, 1, 5),
         SHOW("\"bf16\": {\n    \"enabled\": true, # deprecated-keys.json:4:17: bfloat16.enabled", "\"stage\": 3,",
              "\"offload_optimizer\": {\n      \"device\": \"cpu\", # deprecated-keys.json:7:5",
              "\"offload_param\": {\n      \"device\": \"cpu\", # deprecated-keys.json:8:5",
              "\"stage3_gather_16bit_weights_on_model_save\": true, # deprecated-keys.json:9:5"),
         W("W-DEPRECATED: deprecated-keys.json:4:3: bfloat16: old name of bf16",
           "W-DEPRECATED: deprecated-keys.json:7:5: zero_optimization.cpu_offload: old name of "
           "zero_optimization.offload_optimizer.device, got true",
           "W-DEPRECATED: deprecated-keys.json:8:5: zero_optimization.cpu_offload_param: old name of "
           "zero_optimization.offload_param.device, got true",
           "W-DEPRECATED: deprecated-keys.json:9:5: zero_optimization.stage3_gather_fp16_weights_on_model_save: old "
           "name of "
           "zero_optimization.stage3_gather_16bit_weights_on_model_save, got true"),
         .unsupported = "zero_optimization.stage 3", .warnings = 4},
        {"unknown-key-typo.json", NULL, BOTH(60, 60, 1, 60, 15, 1), SHOW("\"gradient_clipping\": 1, # default"),
         W("W-UNKNOWN: unknown-key-typo.json:3:3: micro_batch_per_gpu: not a known key, ignored, got 20; did you mean "
           "train_micro_batch_size_per_gpu? train_micro_batch_size_per_gpu in force: ",
           "W-UNKNOWN: unknown-key-typo.json:5:3: gradient_cliping: not a known key, ignored, got 0.5; did you mean "
           "gradient_clipping? gradient_clipping in force: 1 (default)"),
         .warnings = 2},
        {"misplaced-key.json", NULL, BOTH(2, 2, 1, 8, 2, 1),
         SHOW("\"stage\": 2,", "\"reduce_bucket_size\": 500000000, # default",
              "\"offload_optimizer\": {\n      \"device\": \"none\", # default"),
         W("W-MISPLACED: misplaced-key.json:4:3: offload_optimizer: belongs in zero_optimization, ignored here, got an "
           "object; "
           "zero_optimization.offload_optimizer.device in force: \"none\" (default)",
           "W-MISPLACED: misplaced-key.json:5:3: reduce_bucket_size: belongs in zero_optimization, ignored here, got "
           "1e7; "
           "zero_optimization.reduce_bucket_size in force: 500000000 (default)"),
         .unsupported = "zero_optimization.stage 2", .warnings = 2},
        {"offload-param-stage2.json", NULL, BOTH(18, 9, 2, 72, 9, 2), SHOW("\"stage\": 2,"),
         W("W-NOEFFECT: offload-param-stage2.json:5:24: zero_optimization.offload_param.device: works with stage 3 "
           "only, got "
           "stage 2 (line 6); parameters stay on the device"),
         .unsupported = "zero_optimization.stage 2", .warnings = 1},
        {"auto-one-derivable.json", NULL, BOTH(120, 6, 20, 120, 6, 5),
         SHOW("for \"auto\" at auto-one-derivable.json:4:3: gradient_accumulation_steps"),
         W("W-AUTO: auto-one-derivable.json:4:3: gradient_accumulation_steps: \"auto\" was derived"), .warnings = 1},
        {"auto-one-derivable.json", "--accumulation 7", .batch = {{0}},
         W("train_batch_size: expected train_micro_batch_size_per_gpu 6 (line 3) x gradient_accumulation_steps 7 "
           "(--accumulation) "
           "x ranks (world size)",
           "auto-one-derivable.json:2:3: train_batch_size")},
        {"monitors-profilers.json", NULL, BOTH(7, 7, 1, 28, 7, 1),
         SHOW("\"wall_clock_breakdown\": true, # monitors-profilers.json:6:23: flops_profiler.enabled",
              "\"memory_breakdown\": true, # monitors-profilers.json:3:3", "\"output_path\": \"logs/csv\", # monitors",
              "\"prof_all\": false, # monitors-profilers.json:5:", "\"prof_ops\": [\"all_reduce\"], # monitors",
              "\"profile_step\": 4, # monitors-profilers.json:6:"),
         .warnings = 0},

        /* Depends on the world size. */
        {"batch-contradiction.json", NULL, BOTH(0, 0, 0, 96, 8, 3),
         W("train_batch_size: expected train_micro_batch_size_per_gpu 8 (line 3) x gradient_accumulation_steps 3 (line "
           "2) x ranks "
           "(world size) 1 = 24, got 96; 4 ranks would fit",
           "batch-contradiction.json:4:3: train_batch_size")},
        {"batch-indivisible.json", NULL, BOTH(50, 10, 5, 0, 0, 0),
         W("train_batch_size: expected a multiple of accumulation 5 (line 3) x ranks (world size) 4 = 20, got 50",
           "batch-indivisible.json:2:3: train_batch_size")},
        {"batch-gas-zero.json", NULL, BOTH(16, 8, 2, 0, 0, 0),
         W("train_batch_size: expected a multiple of micro-batch 8 (line 3) x ranks (world size) 4 = 32, got 16",
           "batch-gas-zero.json:2:3: train_batch_size")},

        /* Rejected at every world size. */
        {"python-literal.json", NULL, .batch = {{0}},
         W("wall_clock_breakdown: expected true or false, got `False`; it must be lower case",
           "python-literal.json:3:3: wall_clock_breakdown")},
        {"template-placeholder.json", NULL, .batch = {{0}},
         W("train_batch_size: expected a whole number above 0, got `GLOBAL_BATCH`; an unexpanded placeholder?",
           "template-placeholder.json:2:3: train_batch_size")},
        {"trailing-garbage.json", NULL, .batch = {{0}},
         W("expected the end of the file (the object opened on line 1 ended on line 3), got \"steps_per_print\"",
           "trailing-garbage.json:4:3")},
        {"duplicate-key.json", NULL, .batch = {{0}},
         W("expected each key once, got fp16.hysteresis on lines 5 and 7 (2, 4); steps_per_print on lines 3 and 9 (10, "
           "50)",
           "duplicate-key.json:7:5: fp16.hysteresis", "duplicate-key.json:9:3: steps_per_print")},
        {"numeric-string.json", NULL, .batch = {{0}},
         W("optimizer.params.lr: expected a number above 0, got the string \"1e-4\"; drop the quotes",
           "numeric-string.json:5:39: optimizer.params.lr")},
        {"scalar-where-object.json", NULL, .batch = {{0}},
         W("fp16: expected an object such as { \"enabled\": true }, got true", "scalar-where-object.json:3:3: fp16")},
        {"batch-missing.json", NULL, .batch = {{0}},
         W("expected train_batch_size or train_micro_batch_size_per_gpu",
           "got neither (only gradient_accumulation_steps 4 (line 2))", "batch-missing.json")},
        {"auto-values.json", NULL, .batch = {{0}},
         W("expected numbers in the file or on the command line", "got \"auto\"",
           "auto-values.json:2:3: train_batch_size", "auto-values.json:3:3: train_micro_batch_size_per_gpu",
           "auto-values.json:4:3: gradient_accumulation_steps")},
        {"auto-values.json", "--micro-batch 4 --accumulation 2", BOTH(8, 4, 2, 32, 4, 2),
         SHOW("\"stage\": 2,", "\"reduce_bucket_size\": 500000000, # default, for \"auto\" at auto-values.json:8:38",
              "\"gradient_clipping\": 1, # default, for \"auto\" at auto-values.json:5:3",
              "\"enabled\": false, # default, for \"auto\" at auto-values.json:6:13",
              "\"lr\": 0.001, # default, for \"auto\" at auto-values.json:7:47",
              "\"weight_decay\": 0, # default, for \"auto\" at auto-values.json:7:61"),
         W("W-AUTO: auto-values.json:2:3: train_batch_size"), .unsupported = "zero_optimization.stage 2",
         .warnings = 1},
        {"auto-values.json", "--micro-batch 4 --accumulation 2 --lr 0.5 --weight-decay 0.1 --clip 0 --precision bf16",
         BOTH(8, 4, 2, 32, 4, 2),
         SHOW("\"gradient_clipping\": 0, # argument --clip",
              "\"bf16\": {\n    \"enabled\": true, # argument --precision", "\"lr\": 0.5, # argument --lr",
              "\"weight_decay\": 0.1, # argument --weight-decay"),
         .unsupported = "zero_optimization.stage 2", .warnings = 1},
        {"bf16-with-fp16-keys.json", NULL, .batch = {{0}},
         W("bf16.auto_cast: expected one of enabled, immediate_grad_update, check_grad_overflow, "
           "bf16_master_weights_and_grads, "
           "bf16_optimizer_states, got this unknown key; it belongs in fp16",
           "bf16-with-fp16-keys.json:5:5: bf16.auto_cast")},
        {"nvme-offload-missing-path.json", NULL, .batch = {{0}},
         W("zero_optimization.offload_param.nvme_path: expected a path because device is \"nvme\", got nothing",
           "nvme-offload-missing-path.json:7:5: zero_optimization.offload_param")},
        {"onebit-adam-zero.json", NULL, .batch = {{0}},
         W("optimizer.type OneBitAdam", "expected zero_optimization.stage 0, got 1",
           "onebit-adam-zero.json:5:5: optimizer.type", "onebit-adam-zero.json:8:26: zero_optimization.stage")},
        {"fp16-bf16-both.json", NULL, .batch = {{0}},
         W("expected at most one of bf16.enabled and fp16.enabled true, got both",
           "fp16-bf16-both.json:2:13: bf16.enabled", "fp16-bf16-both.json:4:13: fp16.enabled")},

        /* The study's own file. */
        {"../paper-ds_config.json", NULL, BOTH(32, 32, 1, 32, 8, 1),
         SHOW("\"wall_clock_breakdown\": true, # ../paper-ds_config.json:17:3", "\"prescale_gradients\": false,",
              "\"gradient_clipping\": 1, # default", "\"weight_decay\": 0.01, # default"),
         W("W-UNKNOWN: ../paper-ds_config.json:4:3: micro_batch_per_gpu: not a known key, ignored, got 16; did you "
           "mean "
           "train_micro_batch_size_per_gpu?",
           "W-UNSUPPORTED: ../paper-ds_config.json:19:3: pipeline:",
           "W-MISPLACED: ../paper-ds_config.json:22:3: pin_memory: belongs in zero_optimization.offload_optimizer or "
           "zero_optimization.offload_param"),
         .warnings = 3},
};

static void look_for(const char *const *wanted, const char *text, const expectation *e, int ranks)
{
	for (size_t i = 0; i < MOST && wanted[i]; i++)
		if (!strstr(text, wanted[i]))
			fail_msg("%s %s at world %d:\nexpected: %s\ngot: %s", e->file, e->options ? e->options : "",
			         ranks, wanted[i], text);
}

static void check_refused(const expectation *e, const mu_test_config *c, int ranks)
{
	if (c->status != MURAL_USAGE)
		fail_msg("%s at world %d was accepted", e->file, ranks);
	assert_null(c->report);
	look_for(e->said, c->said, e, ranks);
}

static void check_accepted(const expectation *e, const mu_test_config *c, int world)
{
	int ranks = c->config.ranks;
	if (c->status != MURAL_OK)
		fail_msg("%s at world %d was refused: %s", e->file, world ? 4 : 1, c->said);
	assert_int_equal(ranks, world ? 4 : 1);
	assert_int_equal(c->config.batch.train_batch, e->batch[world][0]);
	assert_int_equal(c->config.batch.micro_batch, e->batch[world][1]);
	assert_int_equal(c->config.batch.accumulation, e->batch[world][2]);
	look_for(e->shown, c->shown, e, ranks);
	if (e->warnings)
		look_for(e->said, c->said, e, ranks);
	if (mural_config_warnings(c->report) != e->warnings)
		fail_msg("%s at world %d: expected %zu warnings, got:\n%s", e->file, ranks, e->warnings, c->said);
	mural_error err = {0};
	mural_status status = mural_config_check_supported(&c->config, c->report, &err);
	assert_int_equal(status, e->unsupported ? MURAL_USAGE : MURAL_OK);
	if (e->unsupported && !strstr(err.message, e->unsupported))
		fail_msg("%s: expected '%s', got '%s'", e->file, e->unsupported, err.message);
	if (e->unsupported && !strstr(err.where, e->file) && !strstr(err.where, "argument"))
		fail_msg("%s: no line in '%s'", e->file, err.where);
}

static void all_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		for (int world = 0; world < 2; world++) {
			mu_test_config c = mu_test_config_file(cases[i].file, cases[i].options, world ? 4 : 1);
			if (cases[i].batch[world][0])
				check_accepted(&cases[i], &c, world);
			else
				check_refused(&cases[i], &c, world ? 4 : 1);
			mu_test_config_free(&c);
		}
}

/* The files must have kept their bytes: a byte order mark and a carriage return, tabs. */
static void bytes_survived(void **state)
{
	(void)state;
	char start[8] = "";
	FILE *in = fopen("bom-crlf.json", "rb");
	assert_non_null(in);
	assert_int_equal(fread(start, 1, 5, in), 5);
	fclose(in);
	assert_memory_equal(start, "\xef\xbb\xbf{\r", 5);
	in = fopen("trailing-comma.json", "rb");
	assert_non_null(in);
	assert_int_equal(fread(start, 1, 3, in), 3);
	fclose(in);
	assert_memory_equal(start, "{\n\t", 3);
}

/* Details that the table cannot say: numbers behind the text. */
static void values_of_cases(void **state)
{
	(void)state;
	mu_test_config c = mu_test_config_file("unknown-key-typo.json", NULL, 4);
	assert_non_null(strstr(c.said, "train_micro_batch_size_per_gpu in force: 15\n"));
	mu_test_config_free(&c);
	c = mu_test_config_file("float-bucket-size.json", NULL, 1);
	assert_true(c.config.engine.model_persistence_threshold == (uint64_t)INT64_MAX);
	assert_int_equal(c.config.schedule.kind, MURAL_SCHEDULE_WARMUP);
	assert_true(c.config.schedule.warmup_log);
	mu_test_config_free(&c);
	c = mu_test_config_file("onebit-adam.json", NULL, 1);
	assert_int_equal(c.config.optimizer.kind, MURAL_OPTIMIZER_OTHER);
	assert_string_equal(c.config.optimizer.name, "onebitadam");
	assert_int_equal(c.config.engine.precision, MURAL_FP16);
	mu_test_config_free(&c);
}

static int enter_cases(void **state)
{
	(void)state;
	return chdir(MU_TEST_SOURCE_DIR "/cases/ds-config");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(bytes_survived),
	        cmocka_unit_test(all_cases),
	        cmocka_unit_test(values_of_cases),
	};
	return cmocka_run_group_tests(tests, enter_cases, NULL);
}
