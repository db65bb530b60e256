/* Single settings of a configuration file: types, ranges, old names, "auto", null, kinds of optimizer and schedule, and
 * the inputs that must be refused. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/config_text.h"

#define MICRO "train_micro_batch_size_per_gpu: 1\n"

typedef struct line {
	const char *text, *expected;
} line;

/* Each text is refused, and what is said contains `expected`. */
static void all_refused(const line *lines, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		mu_test_config c = mu_test_config_text(lines[i].text, NULL, 1);
		if (c.status != MURAL_USAGE)
			fail_msg("accepted: %s", lines[i].text);
		if (!strstr(c.said, lines[i].expected) || !strstr(c.said, "run.json"))
			fail_msg("%s\nexpected: %s\ngot: %s", lines[i].text, lines[i].expected, c.said);
		mu_test_config_free(&c);
	}
}

/* Each text is accepted, and the warnings or the configuration contain `expected`. */
static void all_accepted(const line *lines, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		mu_test_config c = mu_test_config_text(lines[i].text, NULL, 1);
		if (c.status != MURAL_OK)
			fail_msg("refused: %s\n%s", lines[i].text, c.said);
		if (!strstr(c.said, lines[i].expected) && !strstr(c.shown, lines[i].expected))
			fail_msg("%s\nexpected: %s\ngot: %s%s", lines[i].text, lines[i].expected, c.said, c.shown);
		mu_test_config_free(&c);
	}
}

#define REFUSED(lines) all_refused(lines, sizeof lines / sizeof *lines)
#define ACCEPTED(lines) all_accepted(lines, sizeof lines / sizeof *lines)

static void triangle_values_to_refuse(void **state)
{
	(void)state;
	static const char *const keys[] = {"train_batch_size", "train_micro_batch_size_per_gpu",
	                                   "gradient_accumulation_steps"};
	static const char *const values[] = {"0",      "-8",  "2.5", "true", "null", "1e30",
	                                     "\"16\"", "[8]", "{}",  "auto", "1e400"};
	for (size_t i = 0; i < 3; i++)
		for (size_t j = 0; j < sizeof values / sizeof *values; j++) {
			char text[128];
			snprintf(text, sizeof text, "{\n%s\n\"%s\": %s\n}", i == 2 ? "\"train_batch_size\": 8," : "",
			         keys[i], values[j]);
			mu_test_config c = mu_test_config_text(text, NULL, 1);
			if (c.status != MURAL_USAGE || !strstr(c.said, "run.json:3:") || !strstr(c.said, keys[i]))
				fail_msg("%s\ngot: %s", text, c.said);
			mu_test_config_free(&c);
		}
}

static void triangle(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int ranks;
		uint64_t train, micro, accumulation;
	} good[] = {
	        {"train_batch_size: 24\n train_micro_batch_size_per_gpu: 2\n gradient_accumulation_steps: 4", 3, 24, 2,
	         4},
	        {"train_batch_size: 24\n train_micro_batch_size_per_gpu: 2", 3, 24, 2, 4},
	        {"train_batch_size: 24\n gradient_accumulation_steps: 4", 3, 24, 2, 4},
	        {"train_micro_batch_size_per_gpu: 2\n gradient_accumulation_steps: 4", 3, 24, 2, 4},
	        {"train_batch_size: 24", 3, 24, 8, 1},
	        {"train_micro_batch_size_per_gpu: 2", 3, 6, 2, 1},
	        {"train_batch_size: 24\n train_micro_batch_size_per_gpu: \"auto\"", 3, 24, 8, 1},
	        {"train_batch_size: \"auto\"\n train_micro_batch_size_per_gpu: 2\n gradient_accumulation_steps: "
	         "\"auto\"",
	         3, 6, 2, 1},
	};
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		mu_test_config c = mu_test_config_text(good[i].text, NULL, good[i].ranks);
		if (c.status != MURAL_OK)
			fail_msg("%s\n%s", good[i].text, c.said);
		assert_int_equal(c.config.batch.train_batch, good[i].train);
		assert_int_equal(c.config.batch.micro_batch, good[i].micro);
		assert_int_equal(c.config.batch.accumulation, good[i].accumulation);
		mu_test_config_free(&c);
	}
	static const line bad[] = {
	        {"train_batch_size: 18446744073709551615\ntrain_micro_batch_size_per_gpu: 4294967296\n"
	         "gradient_accumulation_steps: 4294967296",
	         "less than 2^64"},
	        {"train_micro_batch_size_per_gpu: 18446744073709551615\ngradient_accumulation_steps: 2",
	         "less than 2^64"},
	        {"gradient_accumulation_steps: 2", "got neither (only gradient_accumulation_steps 2 (line 1))"},
	        {"train_batch_size: 7\ngradient_accumulation_steps: 9223372036854775807", "expected a multiple"},
	        {"train_batch_size: 60\ntrain_micro_batch_size_per_gpu: 4\ngradient_accumulation_steps: 2",
	         "= 8, got 60; gradient_accumulation_steps 15 would fit, or train_micro_batch_size_per_gpu 30, or "
	         "train_batch_size 8"},
	        {"train_batch_size: 60\ntrain_micro_batch_size_per_gpu: 7\ngradient_accumulation_steps: 8",
	         "= 56, got 60; train_batch_size 56 would fit"},
	        {"train_batch_size: 60\ntrain_micro_batch_size_per_gpu: 8", "= 8, got 60; the nearest are 56 and 64"},
	        {"train_batch_size: 4\ntrain_micro_batch_size_per_gpu: 8", "= 8, got 4; the smallest is 8"},
	        {"train_batch_size: 18446744073709551615\ntrain_micro_batch_size_per_gpu: 9223372036854775808",
	         "; the nearest is 9223372036854775808"},
	};
	REFUSED(bad);
	mu_test_config c =
	        mu_test_config_text("train_batch_size: 7\ngradient_accumulation_steps: 9223372036854775808", NULL, 2);
	assert_non_null(strstr(c.said, "ranks (world size) 2 = 2^64 or more, got 7"));
	mu_test_config_free(&c);
}

/* Nothing is trained: images at once are all that counts. */
static void evaluation(void **state)
{
	(void)state;
	mural_config config;
	mural_error err = {0};
	mural_config_sources sources = {.ranks = 3, .evaluation = true};
	assert_int_equal(mural_config_resolve(&config, NULL, &sources, &err), MURAL_OK);
	assert_int_equal(config.batch.micro_batch, 64);
	static const char *const argv[] = {"--micro-batch", "5", "--no-strict-config", "--depth=3", "--lr", "1"};
	sources.argv = argv;
	sources.argc = 4;
	assert_int_equal(mural_config_resolve(&config, NULL, &sources, &err), MURAL_OK);
	assert_int_equal(config.batch.micro_batch, 5);
	assert_int_equal(config.model.depth, 3);
	sources.argc = 6;
	assert_int_equal(mural_config_resolve(&config, NULL, &sources, &err), MURAL_USAGE);
	assert_string_equal(err.message,
	                    "--lr: does nothing in an evaluation; leave it out (`mural eval --help` lists what "
	                    "counts)");
	static const char *const training[] = {"--batch",   "--beta1", "--schedule",
	                                       "--dropout", "--keep",  "--val-nothing"};
	for (size_t i = 0; i < sizeof training / sizeof *training; i++) {
		err = (mural_error){0};
		sources.argv = &training[i];
		sources.argc = 1;
		assert_int_equal(mural_config_resolve(&config, NULL, &sources, &err), MURAL_USAGE);
		bool known = strcmp(training[i], "--val-nothing") != 0;
		assert_non_null(strstr(err.message, known ? "does nothing in an evaluation" : "unknown option"));
	}
}

/* --val is a share or a set, and the last word. */
static void validation(void **state)
{
	(void)state;
	static const char share[] = MICRO "mural: {data: {validation_fraction: 0.1}}",
	                  set[] = MICRO "mural: {data: {validation_path: \"some\"}}";
	static const struct {
		const char *text, *options;
		double fraction;
		const char *path;
	} good[] = {
	        {share, NULL, 0.1, ""},
	        {set, NULL, 0, "some"},
	        {share, "--val other", 0, "other"},
	        {set, "--val 0.25", 0.25, ""},
	        {set, "--val 0", 0, ""},
	        {share, "--val 0.2 --val b/0.3", 0, "b/0.3"},
	        {share, "--val x --val=0.5", 0.5, ""},
	        {set, "--val ./0.1", 0, "./0.1"},
	};
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		mu_test_config c = mu_test_config_text(good[i].text, good[i].options, 1);
		if (c.status != MURAL_OK)
			fail_msg("%zu: %s", i, c.said);
		if (c.config.data.validation_fraction != good[i].fraction ||
		    strcmp(c.config.data.validation_path, good[i].path) != 0)
			fail_msg("%zu: %g and '%s'", i, c.config.data.validation_fraction,
			         c.config.data.validation_path);
		mu_test_config_free(&c);
	}
	static const line bad[] = {
	        {MICRO "mural: {data: {validation_fraction: 1}}", "expected a number in [0, 1), got 1"},
	        {MICRO "mural: {data: {validation_fraction: -0.1}}", "got -0.1"},
	        {MICRO "mural: {data: {validation_fraction: 0.1, validation_path: \"x\"}}", "got both"},
	        {MICRO "mural: {early_stop: 3}", "mural.early_stop: needs validation images"},
	        {MICRO "mural: {eval_every_steps: 3}", "mural.eval_every_steps: needs validation images"},
	        {MICRO "mural: {early_stop: 3, eval_every: 0, data: {validation_fraction: 0.1}}",
	         "expected evaluations before the end"},
	        {MICRO "mural: {best_metric: top5}", "mural.best_metric"},
	        {MICRO "mural: {early_stop_delta: -1}", "mural.early_stop_delta"},
	};
	REFUSED(bad);
	static const char *const options[] = {
	        "--val 1", "--val -0.1", "--val 1.5", "--val=", "--val 1e99", "--val .5", "--val nan"};
	for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
		mu_test_config c = mu_test_config_text(share, options[i], 1);
		if (i != 3 && c.status != MURAL_USAGE)
			fail_msg("accepted: %s", options[i]);
		mu_test_config_free(&c);
	}
}

static void inputs_that_are_no_configuration(void **state)
{
	(void)state;
	static const line bad[] = {
	        {"", "got neither"},
	        {"# only\n/* comments */\n", "got neither"},
	        {"\xef\xbb\xbf", "got neither"},
	        {"{} /* never", "comment is not closed"},
	        {"{\"train_batch_size\": 1e400}", "1.8e308"},
	        {"{\"a\":1,,\"b\":2}", "second one"},
	        {"{\"a\":1 \"b\":2}", "a comma stands between"},
	        {"[1, 2]", "expected an object { ... }, got [1, 2]"},
	        {"42", "expected an object { ... }, got 42"},
	        {"{\n\"train_batch_size\": 8,\n\"fp16\": {\n", "opened on line 3 is not closed"},
	        {"{\n  \"train_batch_size\": 8,\n  \"bf16\": { \"enabled\": True }\n}", "run.json:3:24: bf16.enabled"},
	};
	REFUSED(bad);
	mu_test_config c = mu_test_config_file("missing.json", NULL, 1);
	assert_int_equal(c.status, MURAL_USAGE);
	assert_non_null(strstr(c.said, "missing.json"));
	c = mu_test_config_file("/tmp", NULL, 1);
	assert_int_equal(c.status, MURAL_USAGE);
}

static void types_and_ranges(void **state)
{
	(void)state;
	static const line bad[] = {
	        {MICRO "gradient_clipping: -1", "gradient_clipping: expected a number of 0 or more, got -1"},
	        {MICRO "gradient_clipping: true", "expected a number of 0 or more, got true"},
	        {MICRO "wall_clock_breakdown: 1", "expected true or false, got 1"},
	        {MICRO "wall_clock_breakdown: \"false\"",
	         "expected true or false, got the string \"false\"; drop the quotes"},
	        {MICRO "bf16: {\nenabled: True\n}", "run.json:3:1: bf16.enabled"},
	        {MICRO "zero_optimization: {stage: 4}",
	         "zero_optimization.stage: expected a whole number in [0, 3], got 4"},
	        {MICRO "zero_optimization: {stage: 1.5}", "expected a whole number in [0, 3], got 1.5"},
	        {MICRO "zero_optimization: null", "expected an object"},
	        {MICRO "zero_optimization: {offload_param: {device: \"disk\"}}",
	         "expected none, cpu or nvme, got the string \"disk\""},
	        {MICRO "zero_optimization: {stage: \"two\"}", "got the string \"two\""},
	        {MICRO "fp16: {min_loss_scale: 0.5}", "expected a whole number above 0, got 0.5"},
	        {MICRO "fp16: {opt_level: \"O2\"}", "fp16.opt_level: expected one of enabled, auto_cast"},
	        {MICRO "zero_optimization: {grad_hooks: true}", "expected a known key, got this unknown key"},
	        {MICRO "zero_optimization: {reduce_bucket: 5}", "did you mean reduce_bucket_size?"},
	        {MICRO "zero_optimization: {fp16: {}}", "it belongs in the top level"},
	        {MICRO "gradient_allreduce_op: \"max\"", "expected mean or sum"},
	        {MICRO "mural: {image_size: [224, 224, 3]}", "got [224, 224, 3]"},
	        {MICRO "mural: {image_size: 0}", "got 0"},
	        {MICRO "mural: {data: {mean: [0.5, 0.5], std: [0.5, 0.5]}}",
	         "expected a number per channel (3), got 2"},
	        {MICRO "mural: {data: {mean: [0.5, 0.5, 0.5]}}", "expected mean and std together, got mean alone"},
	        {MICRO "mural: {data: {mean: [0, 0, 0], std: [1, 1, 0]}}",
	         "mural.data.std: expected 1 to 16 numbers above 0"},
	        {MICRO "mural: {data: {mean: [0, 0, 0], std: [1, 1, 1e-60]}}", "mural.data.std"},
	        {MICRO "mural: {data: {mean: [0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}}", "1 to 16 numbers"},
	        {MICRO "mural: {epoch: 3}",
	         "mural.epoch: expected a known key, got this unknown key; did you mean epochs?"},
	        {MICRO "mural: {seed: 4294967296}", "in [0, 4294967295], got 4294967296"},
	        {MICRO "mural: {model: \"vit_x_16\"}", "mural.model: unknown model preset"},
	        {MICRO "mural: {image_size: 100}", "patch 16 does not divide"},
	        {MICRO "mural: {heads: 7}", "7 heads do not divide"},
	        {MICRO "mural: {ops: \"gpu\"}", "expected auto, mixed, cpu, cuda or reference"},
	        {MICRO "mural: {ops: \"cuda,auto\"}", "expected auto, mixed, cpu, cuda or reference"},
	        {MICRO "mural: {ops: \"cuda,\"}", "expected auto, mixed, cpu, cuda or reference"},
	        {MICRO "mural: {ops: \"cpu:1\"}", "expected auto, mixed, cpu, cuda or reference"},
	        {MICRO "mural: {ops: \"cuda:x\"}", "expected auto, mixed, cpu, cuda or reference"},
	        {MICRO "mural: {pool: token,\n}", "got `token`; text without quotes runs to the end of its line"},
	        {MICRO "mural: []", "expected an object such as"},
	};
	REFUSED(bad);
	char long_path[1200], text[1400];
	memset(long_path, 'p', sizeof long_path - 1);
	long_path[sizeof long_path - 1] = '\0';
	snprintf(text, sizeof text, MICRO "mural: {run_dir: \"%s\"}", long_path);
	line too_long[] = {{text, "at most 1023 bytes"}};
	REFUSED(too_long);
}

static void accepted_values(void **state)
{
	(void)state;
	static const line good[] = {
	        {MICRO "_comment: {anything: [\"goes\"]}\n\"_x\": 1", "\"train_batch_size\": 1,"},
	        {MICRO "steps_per_print: null", "\"steps_per_print\": 0, # default"},
	        {MICRO "zero_optimization: {overlap_comm: null, offload_param: null}",
	         "\"overlap_comm\": true, # default"},
	        {MICRO "zero_optimization: {prefetch_bucket_size: 7}", "\"stage3_prefetch_bucket_size\": 7,"},
	        {MICRO "zero_optimization: {stage: \"auto\"}",
	         "\"stage\": 0, # default, for \"auto\" at run.json:2:21: zero_optimization.stage"},
	        {MICRO "bf16: {enabled: 0}", "W-COERCED: run.json:2:8: bf16.enabled"},
	        {MICRO "bf16: {enabled: \"False\"}", "W-COERCED"},
	        {MICRO "zero_optimization: {stage: true}", "\"stage\": 1,"},
	        {MICRO "tensorboard: {\njob_name: run 7\n}", "W-COERCED: run.json:3:1: tensorboard.job_name"},
	        {MICRO "tensorboard: {\njob_name: run 7\n}", "\"job_name\": \"run 7\""},
	        {MICRO "communication_data_type: \"FP32\"", "\"communication_data_type\": \"fp32\""},
	        {MICRO "mural: {image_size: [32, 64.0]}", "\"image_size\": [32, 64],"},
	        {MICRO "mural: {image_size: 32}", "\"image_size\": [32, 32],"},
	        {MICRO "mural: {_note: 1, data: {mean: [0, 0.25, 0], std: [1, 2, 0.5]}}", "\"mean\": [0, 0.25, 0],"},
	        {MICRO "mural: {ops: \"cuda,cpu,cuda:1\"}", "\"ops\": \"cuda,cpu,cuda:1\", # run.json"},
	        {MICRO "mural: {ops: \"auto\", comm: \"self\"}", "\"ops\": \"auto\", # run.json"},
	        {MICRO "enabled: true", "W-MISPLACED: run.json:2:1: enabled: belongs in fp16, bf16 or tensorboard"},
	        {MICRO "zero_optimisation: {stage: 3}",
	         "W-UNKNOWN: run.json:2:1: zero_optimisation: not a known key, ignored, got an "
	         "object; did you mean zero_optimization?"},
	        {MICRO "train_micro_batch_size: 4", "did you mean train_micro_batch_size_per_gpu?"},
	        {MICRO "data_types: {grad_acum_dtype: \"fp32\"}",
	         "W-UNKNOWN: run.json:2:14: data_types.grad_acum_dtype"},
	        {MICRO "xyzzy: 1", "W-UNKNOWN: run.json:2:1: xyzzy: not a known key, ignored, got 1\n"},
	        {MICRO "zero_optimization: {cpu_offload_use_pin_memory: true}", "W-DEPRECATED"},
	        {MICRO "zero_optimization: {cpu_offload: false}", "\"device\": \"none\", # run.json"},
	        {MICRO "zero_optimization: false", "\"stage\": 0, # run.json"},
	        {MICRO "allgather_size: 5", "W-UNKNOWN: run.json:2:1: allgather_size"},
	        {MICRO "timers: {throughput: {synchronized: false}}",
	         "W-UNSUPPORTED: run.json:2:23: timers.throughput.synchronized"},
	        {MICRO "zero_optimization: {offload_optimizer: {device: \"cpu\"}}", "W-NOEFFECT: run.json:2:41"},
	        {MICRO "fp16: {initial_scale_power: 4}", "W-NOEFFECT: run.json:2:1: fp16: does nothing without"},
	        {MICRO "comms_logger: {verbose: true}",
	         "W-NOEFFECT: run.json:2:1: comms_logger: does nothing without \"enabled\": true\n"},
	        {MICRO "fp16: {enabled: true, loss_scale: 128, hysteresis: 4}",
	         "W-NOEFFECT: run.json:2:40: fp16.hysteresis: is for a dynamic scale, and fp16.loss_scale 128"},
	        {MICRO "prescale_gradients: true\ngradient_predivide_factor: 4",
	         "W-NOEFFECT: run.json:3:1: gradient_predivide_factor: prescale_gradients true divides by the ranks"},
	};
	ACCEPTED(good);
	static const line silent[] = {
	        {MICRO "activation_checkpointing: {profile: false}", ""},
	        {MICRO "comms_logger: {enabled: false}", ""},
	        {MICRO "zero_optimization: {contiguous_gradients: true, reduce_scatter: true}", ""},
	        {MICRO "zero_optimization: {offload_optimizer: {device: \"none\"}}", ""},
	        {MICRO "autotuning: {enabled: false, fast: true}", ""},
	};
	for (size_t i = 0; i < sizeof silent / sizeof *silent; i++) {
		mu_test_config c = mu_test_config_text(silent[i].text, NULL, 1);
		assert_int_equal(c.status, MURAL_OK);
		assert_string_equal(c.said, "");
		mu_test_config_free(&c);
	}
}

/* Blocks of what Mural does not have are looked into all the same: a mistake there is a mistake. */
static void blocks_are_looked_into(void **state)
{
	(void)state;
	static const line bad[] = {
	        {MICRO "compile: {deepcompil: true}",
	         "compile.deepcompil: expected a known key, got this unknown key; did "
	         "you mean deepcompile?"},
	        {MICRO "compile: {free_activation_threshold: -1}",
	         "compile.free_activation_threshold: expected a whole"},
	        {MICRO "tensor_parallel: {autotp: 2}", "tensor_parallel.autotp: expected one of autotp_size"},
	        {MICRO "zero_optimization: {leaf_module: {clases: []}}", "did you mean classes?"},
	        {MICRO "zero_optimization: {mics_shard_size: 1.5}",
	         "zero_optimization.mics_shard_size: expected a whole"},
	        {MICRO "flops_profiler: {module_depth: \"all\"}",
	         "flops_profiler.module_depth: expected a whole number"},
	        {MICRO "autotuning: {tuner_type: \"bayes\"}", "expected gridsearch, random or model_based"},
	        {MICRO "aio: {queue_depth: 0}", "aio.queue_depth: expected a whole number"},
	        {MICRO "curriculum_learning: {enabled: 1}",
	         "curriculum_learning.enabled: expected true or false, got 1"},
	        {MICRO "checkpoint: {writer: {type: \"SLOW\"}}",
	         "checkpoint.writer.type: expected FAST, PYTHON or MOCK"},
	};
	REFUSED(bad);
	static const line good[] = {
	        {MICRO "activation_checkpointing: {cpu_checkpoint: true}",
	         "activation_checkpointing.cpu_checkpoint: not a known key, ignored, got true; did you mean "
	         "cpu_checkpointing?"},
	        {MICRO "activation_checkpointing: {cpu_checkpointing: true}", "W-UNSUPPORTED: run.json:2:1"},
	        {MICRO "data_efficiency: {enabled: false, data_sampling: {enbled: true}}",
	         "data_efficiency.data_sampling.enbled: not a known key, ignored, got true; did you mean enabled?"},
	        {MICRO "compression_training: {weight_quantisation: {}}", "did you mean weight_quantization?"},
	        {MICRO "autotuning: {enabled: true, fats: false}", "autotuning.fats: not a known key"},
	        {MICRO "autotuning: {enabled: true, fats: false}", "W-UNSUPPORTED: run.json:2:1: autotuning"},
	        {MICRO "aio: {thread_count: 2}", "W-UNKNOWN: run.json:2:7: aio.thread_count"},
	        {MICRO "compile: {deepcompile: true}", "W-UNSUPPORTED: run.json:2:1: compile"},
	        {MICRO "progressive_layer_drop: {theta: 0.5}",
	         "W-NOEFFECT: run.json:2:1: progressive_layer_drop: does nothing without \"enabled\": true"},
	};
	ACCEPTED(good);
}

static void one_name_only(void **state)
{
	(void)state;
	static const line bad[] = {
	        {MICRO "bf16: {}\nbfloat16: {}",
	         "bfloat16: expected either this old name or bf16, got both: bf16 is on line 2"},
	        {MICRO "zero_optimization: {cpu_offload: true, offload_optimizer: {}}", "got both"},
	        {MICRO "zero_optimization: {cpu_offload_param: true, offload_param: {}}", "got both"},
	        {MICRO "zero_optimization: {stage3_gather_fp16_weights_on_model_save: true,\n"
	               "stage3_gather_16bit_weights_on_model_save: true}",
	         "got both"},
	        {MICRO "zero_optimization: {prefetch_bucket_size: 1,\nstage3_prefetch_bucket_size: 1}",
	         "run.json:3:1: zero_optimization.stage3_prefetch_bucket_size"},
	        {MICRO "zero_optimization: {cpu_offload: 3}", "expected true or false, got 3"},
	        {MICRO "scheduler: {type: \"WarmupLR\"}\nmural: {schedule: \"cosine\"}", "expected one schedule"},
	};
	REFUSED(bad);
}

/* DeepSpeed's names, defaults and order of precedence. */
static void parameters_of_optimizers(void **state)
{
	(void)state;
	mu_test_config c = mu_test_config_text(MICRO "optimizer: {type: \"Muon\"}", NULL, 1);
	const mural_optimizer_config *o = &c.config.optimizer;
	assert_true(o->lr == 0.02 && o->adam_lr == 3e-4 && o->momentum == 0.95 && o->nesterov && o->bias_correction);
	assert_true(o->beta1 == 0.9 && o->beta2 == 0.95);
	mu_test_config_free(&c);
	c = mu_test_config_text(MICRO "optimizer: {type: \"Muon\", params: {lr: 0.5, adam_lr: 0.25}}", NULL, 1);
	assert_true(o->lr == 0.5 && o->adam_lr == 0.25);
	mu_test_config_free(&c);
	c = mu_test_config_text(MICRO "optimizer: {type: \"Muon\", params: {lr: 0.5, muon_lr: 0.125}}", NULL, 1);
	assert_true(o->lr == 0.125 && o->adam_lr == 0.5);
	mu_test_config_free(&c);
	c = mu_test_config_text(MICRO "optimizer: {type: \"SGD\", params: {momentum: 0.5, dampening: 0.25}}", NULL, 1);
	assert_true(o->momentum == 0.5 && o->dampening == 0.25 && !o->nesterov);
	mu_test_config_free(&c);
	c = mu_test_config_text(MICRO "optimizer: {type: \"Lamb\", params: {max_coeff: 5, eps_inside_sqrt: true}}",
	                        NULL, 1);
	assert_true(o->max_coeff == 5 && o->min_coeff == 0.01 && o->eps_inside_sqrt && o->bias_correction);
	mu_test_config_free(&c);
	c = mu_test_config_text(MICRO "mural: {layer_decay: 0.75, freeze: \"embed\", ema: {decay: 0.5, warm_up: true}}",
	                        "--model mu", 1);
	assert_true(o->layer_decay == 0.75 && o->ema_decay == 0.5 && o->ema_warm_up && !o->ema_evaluate);
	assert_string_equal(o->freeze, "embed");
	mu_test_config_free(&c);
	static const line bad[] = {
	        {MICRO "optimizer: {type: \"SGD\", params: {nesterov: true}}",
	         "expected a momentum above 0 and a dampening of 0 with it, got 0 and 0"},
	        {MICRO "optimizer: {type: \"SGD\", params: {nesterov: true, momentum: 0.5, dampening: 0.5}}",
	         "run.json:2:35: optimizer.params.nesterov"},
	        {MICRO "optimizer: {type: \"Lamb\", params: {min_coeff: 20}}", "expected at most max_coeff 10, got 20"},
	        {MICRO "mural: {ema: {evaluate: true}}", "expected mural.ema.decay above 0 with it, got 0"},
	        {MICRO "mural: {ema: {decay: 1}}", "expected a number in [0, 1), got 1"},
	        {MICRO "mural: {layer_decay: 0}", "expected a number in (0, 1], got 0"},
	        {MICRO "mural: {freeze: \"blocks.40\"}", "'blocks.40' cannot be frozen"},
	        {MICRO "mural: {freeze: \"bloks\"}", "run.json:2:9: mural.freeze"},
	};
	REFUSED(bad);
	c = mu_test_config_text(MICRO "optimizer: {type: \"Lamb\", params: {max_grad_norm: 1}}", NULL, 1);
	mural_error err = {0};
	assert_int_equal(mural_config_check_supported(&c.config, c.report, &err), MURAL_USAGE);
	assert_non_null(strstr(err.message, "optimizer.params.max_grad_norm 1 is not supported"));
	mu_test_config_free(&c);
}

static void optimizers(void **state)
{
	(void)state;
	static const struct {
		const char *block;
		mural_optimizer_kind kind;
		const char *name;
		double lr, eps, decay;
	} good[] = {
	        {"{type: \"Adam\"}", MURAL_OPTIMIZER_ADAMW, "adam", 1e-3, 1e-8, 0},
	        {"{type: \"adam\", params: {adam_w_mode: false, lr: 2}}", MURAL_OPTIMIZER_ADAM, "adam", 2, 1e-8, 0},
	        {"{type: \"ADAMW\", params: {weight_decay: 0.1, eps: 1e-6, torch_adam: true}}", MURAL_OPTIMIZER_ADAMW,
	         "adamw", 1e-3, 1e-6, 0.1},
	        {"{type: \"Adagrad\", params: {}}", MURAL_OPTIMIZER_OTHER, "adagrad", 1e-2, 1e-10, 0},
	        {"{type: \"Lamb\", params: {max_coeff: 5, min_coeff: 0.1, eps_inside_sqrt: false}}",
	         MURAL_OPTIMIZER_LAMB, "lamb", 1e-3, 1e-8, 0},
	        {"{type: \"Lion\", params: {betas: [0.9, 0.99]}}", MURAL_OPTIMIZER_LION, "lion", 1e-3, 0, 0},
	        {"{type: \"ZeroOneAdam\", params: {var_freeze_step: 5, local_step_clipper: 2}}", MURAL_OPTIMIZER_OTHER,
	         "zerooneadam", 1e-3, 1e-8, 0},
	        {"{type: \"OneBitLamb\", params: {coeff_beta: 0.5, factor_max: 3}}", MURAL_OPTIMIZER_OTHER,
	         "onebitlamb", 1e-3, 1e-8, 0},
	        {"{type: \"Muon\", params: {muon_lr: 0.1, momentum: 0.9}}", MURAL_OPTIMIZER_MUON, "muon", 0.1, 1e-10,
	         0},
	        {"{type: \"SGD\", params: {lr: 0.1, momentum: 0.9, nesterov: true}}", MURAL_OPTIMIZER_SGD, "sgd", 0.1,
	         0, 0},
	        {"{type: \"RMSprop\", params: {alpha: 0.9, centered: true}}", MURAL_OPTIMIZER_OTHER, "rmsprop", 1e-3, 0,
	         0},
	        {"{}", MURAL_OPTIMIZER_ADAMW, "adamw", 1e-3, 1e-8, 0},
	};
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		char text[256];
		snprintf(text, sizeof text, MICRO "optimizer: %s", good[i].block);
		mu_test_config c = mu_test_config_text(text, NULL, 1);
		if (c.status != MURAL_OK)
			fail_msg("%s\n%s", text, c.said);
		const mural_optimizer_config *o = &c.config.optimizer;
		assert_int_equal(o->kind, good[i].kind);
		assert_string_equal(o->name, good[i].name);
		assert_true(o->lr == good[i].lr);
		assert_true(o->eps == good[i].eps);
		assert_true(o->weight_decay == good[i].decay);
		mural_error err = {0};
		mural_status supported = mural_config_check_supported(&c.config, c.report, &err);
		assert_int_equal(supported, good[i].kind == MURAL_OPTIMIZER_OTHER ? MURAL_USAGE : MURAL_OK);
		if (supported != MURAL_OK)
			assert_non_null(strstr(err.where, "run.json:2:13: optimizer.type"));
		mu_test_config_free(&c);
	}
	static const line bad[] = {
	        {MICRO "optimizer: {type: \"AdmaW\"}", "did you mean AdamW?"},
	        {MICRO "optimizer: {type: \"sgd\"}", "did you mean SGD?"},
	        {MICRO "optimizer: {params: {lr: 1}}", "run.json:2:1: optimizer"},
	        {MICRO "optimizer: {params: {freeze_step: 3}, type: \"Adam\"}",
	         "freeze_step: not a parameter of Adam: expected one of lr"},
	        {MICRO "optimizer: {type: \"Adam\", params: {beta: 3}}", "expected one of lr, betas, eps"},
	        {MICRO "optimizer: {type: \"Adam\", params: {max_grad_norm: 1}}", "gradient_clipping"},
	        {MICRO "optimizer: {type: \"Adam\", params: {betas: [0.9]}}",
	         "expected 2 numbers in [0, 1), got [0.9]"},
	        {MICRO "optimizer: {type: \"Adam\", params: {betas: [0.9, 1]}}", "expected 2 numbers in [0, 1)"},
	        {MICRO "optimizer: {type: \"Adam\", params: {lr: 0}}", "expected a number above 0, got 0"},
	        {MICRO "optimizer: {type: \"Adam\", params: {lr: 1e-4, lr: 1e-3}}", "expected each key once"},
	        {MICRO "optimizer: {type: \"ZeroOneAdam\"}\nzero_optimization: {stage: 2}",
	         "expected zero_optimization.stage 0, got 2"},
	};
	REFUSED(bad);
	static const line warned[] = {
	        {MICRO "optimizer: {type: \"AdamW\", params: {adam_w_mode: false}}",
	         "W-NOEFFECT: run.json:2:37: optimizer.params.adam_w_mode"},
	};
	ACCEPTED(warned);
	mu_test_config c = mu_test_config_text(MICRO, NULL, 1);
	assert_true(c.config.optimizer.weight_decay == 0.01);
	mu_test_config_free(&c);
}

static void schedules(void **state)
{
	(void)state;
	mu_test_config c = mu_test_config_text(
	        MICRO "scheduler: {type: \"WarmupLR\"}\noptimizer: {type: \"Adam\", params: {lr: 0.25}}", NULL, 1);
	const mural_schedule_config *s = &c.config.schedule;
	assert_int_equal(s->kind, MURAL_SCHEDULE_WARMUP);
	assert_true(s->max_lr == 0.25 && s->min_lr == 0 && s->warmup_steps == 1000 && s->warmup_log);
	assert_string_equal(mural_config_origin(c.report, "scheduler.params.warmup_max_lr"), "the optimizer's lr");
	mu_test_config_free(&c);

	c = mu_test_config_text(
	        MICRO "scheduler: {type: \"WarmupDecayLR\", params: {total_num_steps: 50, warmup_num_steps: 5, "
	              "warmup_type: \"linear\", warmup_min_lr: 1e-5}}",
	        NULL, 1);
	assert_int_equal(s->kind, MURAL_SCHEDULE_WARMUP_DECAY);
	assert_true(s->max_lr == 0.001 && s->min_lr == 1e-5 && s->warmup_steps == 5 && s->total_steps == 50 &&
	            !s->warmup_log);
	mu_test_config_free(&c);

	c = mu_test_config_text(MICRO "scheduler: {type: \"WarmupDecayLR\", params: {total_num_steps: \"auto\", "
	                              "warmup_max_lr: \"auto\"}}\noptimizer: {type: \"Adam\", params: {lr: 0.125}}",
	                        NULL, 1);
	assert_true(s->max_lr == 0.125 && s->total_steps == 0);
	mu_test_config_free(&c);

	c = mu_test_config_text(MICRO "scheduler: {type: \"WarmupCosineLR\", params: {total_num_steps: \"auto\"}}",
	                        NULL, 1);
	assert_int_equal(s->kind, MURAL_SCHEDULE_WARMUP_COSINE);
	assert_true(s->total_steps == 0 && s->cos_min_ratio == 1e-4 && s->warmup_min_ratio == 0);
	mu_test_config_free(&c);

	c = mu_test_config_text(MICRO "scheduler: {type: \"OneCycle\", params: {cycle_min_lr: 0.01, cycle_max_lr: 0.1, "
	                              "cycle_first_step_size: 4, cycle_first_stair_count: 2}}",
	                        NULL, 1);
	assert_int_equal(s->kind, MURAL_SCHEDULE_ONE_CYCLE);
	assert_true(s->cycle_min_lr == 0.01 && s->max_lr == 0.1 && s->cycle_first_steps == 4 &&
	            s->cycle_second_steps == 4);
	assert_true(s->cycle_second_stairs == 2 && s->cycle_momentum && s->cycle_max_momentum == 0.9);
	mu_test_config_free(&c);

	c = mu_test_config_text(MICRO "scheduler: {type: \"LRRangeTest\", params: {lr_range_test_staircase: true}}",
	                        NULL, 1);
	assert_int_equal(s->kind, MURAL_SCHEDULE_RANGE_TEST);
	assert_true(s->range_min_lr == 1e-3 && s->range_steps == 2000 && s->range_rate == 1 && s->range_staircase);
	mu_test_config_free(&c);

	c = mu_test_config_text(MICRO "mural: {schedule: \"cosine\", warmup_epochs: 0.5, min_lr: 1e-6}", NULL, 1);
	assert_int_equal(s->kind, MURAL_SCHEDULE_COSINE);
	assert_true(s->warmup_epochs == 0.5 && s->min_lr == 1e-6 && s->warmup_steps == 0);
	mu_test_config_free(&c);

	static const line bad[] = {
	        {MICRO "scheduler: {type: \"warmuplr\"}",
	         "expected WarmupLR, WarmupDecayLR, WarmupCosineLR, OneCycle or LRRangeTest"},
	        {MICRO "scheduler: {params: {}}", "expected a type such as \"WarmupLR\""},
	        {MICRO "scheduler: {type: \"WarmupDecayLR\", params: {}}", "run.json:2:36: scheduler.params"},
	        {MICRO "scheduler: {type: \"WarmupDecayLR\"}",
	         "scheduler.params.total_num_steps: expected a whole number above 0 in this block, got nothing"},
	        {MICRO "scheduler: {type: \"OneCycle\", params: {cycle_min_lr: 1}}", "run.json:2:31: scheduler.params"},
	        {MICRO "scheduler: {type: \"OneCycle\", params: {cycle_min_lr: 1, cycle_max_lr: 0.5}}",
	         "expected at most cycle_max_lr 0.5"},
	        {MICRO "scheduler: {type: \"WarmupLR\", params: {total_num_steps: 4}}", "not a parameter of WarmupLR"},
	        {MICRO "scheduler: {type: \"WarmupLR\", params: {warmup_steps: 4}}", "expected one of warmup_min_lr"},
	        {MICRO "scheduler: {type: \"WarmupLR\", params: {warmup_num_steps: 0}}",
	         "expected a whole number above 0, got 0"},
	        {MICRO "scheduler: {type: \"WarmupLR\", params: {warmup_min_lr: 0.1, warmup_max_lr: 0.01}}",
	         "run.json:2:40: scheduler.params.warmup_min_lr"},
	        {MICRO
	         "scheduler: {type: \"OneCycle\", params: {cycle_min_lr: 1, cycle_max_lr: 2, cycle_min_mom: 0.95}}",
	         "scheduler.params.cycle_min_mom: expected at most cycle_max_mom 0.9, got 0.95"},
	        {MICRO "scheduler: {params: {warmup_num_steps: 4}}",
	         "belongs to no schedule: expected scheduler.type (WarmupLR, "},
	};
	REFUSED(bad);
	static const line idle[] = {
	        {MICRO "mural: {warmup_steps: 4}", "W-NOEFFECT: run.json:2:9: mural.warmup_steps"},
	        {MICRO "scheduler: {type: \"WarmupDecayLR\", params: {total_num_steps: 5, warmup_num_steps: 50}}",
	         "W-NOEFFECT: run.json:2:45: scheduler.params.total_num_steps: the 5 steps end before the warm-up of "
	         "50 does"},
	};
	ACCEPTED(idle);
}

/* Two rates in one file: the schedule's is used, and that is said. */
static void schedule_overrides_rate(void **state)
{
	(void)state;
	static const line good[] = {
	        {MICRO "optimizer: {type: \"Adam\", params: {lr: 0.01}}\n"
	               "scheduler: {type: \"WarmupLR\", params: {warmup_max_lr: 0.1}}",
	         "W-NOEFFECT: run.json:3:40: scheduler.params.warmup_max_lr: the schedule peaks at 0.1, and "
	         "optimizer.params.lr 0.01 (run.json:2:36: optimizer.params.lr) is not used"},
	        {MICRO "optimizer: {type: \"Adam\", params: {lr: 0.01}}\n"
	               "scheduler: {type: \"WarmupDecayLR\", params: {total_num_steps: 2000}}",
	         "W-NOEFFECT: run.json:3:1: scheduler: the schedule peaks at 0.001"},
	        {MICRO "optimizer: {type: \"Adam\", params: {lr: 0.01}}\n"
	               "scheduler: {type: \"LRRangeTest\", params: {}}",
	         "W-NOEFFECT: run.json:3:1: scheduler: the schedule begins at 0.001"},
	        {MICRO "optimizer: {type: \"Adam\", params: {lr: 0.01}}\n"
	               "scheduler: {type: \"OneCycle\", params: {cycle_min_lr: 0.001, cycle_max_lr: 0.5}}",
	         "the schedule peaks at 0.5"},
	};
	ACCEPTED(good);
	static const char *const silent[] = {
	        "scheduler: {type: \"WarmupLR\", params: {warmup_max_lr: 0.1}}",
	        "optimizer: {type: \"Adam\", params: {lr: 0.1}}\nscheduler: {type: \"WarmupLR\"}",
	        "optimizer: {type: \"Adam\", params: {lr: 0.1}}\nscheduler: {type: \"WarmupLR\", params: "
	        "{warmup_max_lr: 0.1}}",
	        "optimizer: {type: \"Adam\", params: {lr: 0.1}}\nscheduler: {type: \"WarmupDecayLR\", params: "
	        "{total_num_steps: 2000, warmup_max_lr: \"auto\"}}",
	        "optimizer: {type: \"Adam\", params: {lr: 0.1}}\nscheduler: {type: \"WarmupCosineLR\", params: "
	        "{total_num_steps: 2000}}",
	};
	for (size_t i = 0; i < sizeof silent / sizeof *silent; i++) {
		char text[256];
		snprintf(text, sizeof text, MICRO "%s", silent[i]);
		mu_test_config c = mu_test_config_text(text, NULL, 1);
		assert_int_equal(c.status, MURAL_OK);
		assert_string_equal(c.said, "");
		mu_test_config_free(&c);
	}
	mu_test_config c = mu_test_config_text(
	        MICRO "scheduler: {type: \"WarmupDecayLR\", params: {total_num_steps: 9}}", "--lr 0.5", 1);
	assert_non_null(strstr(c.said, "optimizer.params.lr 0.5 (argument --lr) is not used"));
	mu_test_config_free(&c);
}

static void types_of_numbers(void **state)
{
	(void)state;
	mu_test_config c = mu_test_config_text(
	        MICRO "bf16: {enabled: true}\ndata_types: {grad_accum_dtype: \"fp32\", param_dtype: \"bf16\"}\n"
	              "communication_data_type: \"FP16\"",
	        NULL, 1);
	if (c.status != MURAL_OK)
		fail_msg("%s", c.said);
	const mural_engine_config *e = &c.config.engine;
	assert_true(e->precision == MURAL_BF16 && e->grad_accum_type == MURAL_TYPE_FP32);
	assert_true(e->communication_type == MURAL_TYPE_FP16);
	assert_int_equal(mural_config_check_supported(&c.config, c.report, NULL), MURAL_OK);
	mu_test_config_free(&c);
	c = mu_test_config_text(MICRO "data_types: {grad_accum_dtype: null}", "--fp16", 1);
	assert_true(e->precision == MURAL_FP16 && e->grad_accum_type == MURAL_TYPE_MODEL);
	mu_test_config_free(&c);
	static const line bad[] = {
	        {MICRO "data_types: {grad_accum_dtype: \"bf16\"}",
	         "data_types.grad_accum_dtype: expected fp32, the type of the model's parameters, got bf16"},
	        {MICRO "bf16: {enabled: true}\ndata_types: {grad_accum_dtype: \"fp16\"}",
	         "expected bf16 or fp32, the type of the model's parameters, got fp16"},
	        {MICRO "fp16: {enabled: true}\ndata_types: {param_dtype: \"fp32\"}",
	         "run.json:3:14: data_types.param_dtype"},
	        {MICRO "communication_data_type: \"int8\"", "run.json:2:1: communication_data_type"},
	};
	REFUSED(bad);
}

static void refused_before_training(void **state)
{
	(void)state;
	static const line bad[] = {
	        {MICRO "gradient_allreduce_op: \"sum\"", "gradient_allreduce_op \"sum\" is not supported"},
	        {MICRO "sequence_parallel_size: 2", "sequence_parallel_size 2 is not supported"},
	        {MICRO "amp: {enabled: true}", "amp {\"enabled\": true} is not supported"},
	        {MICRO "compression_training: {sparse_pruning: {shared_parameters: {enabled: true}}}",
	         "compression_training"},
	        {MICRO "progressive_layer_drop: {enabled: true, theta: 0.5, gamma: 0.01}",
	         "progressive_layer_drop.enabled true is not supported"},
	        {MICRO "data_efficiency: {enabled: true, data_routing: {enabled: true}}",
	         "data_efficiency.enabled true is not supported"},
	        {MICRO "curriculum_learning: {enabled: true}", "curriculum_learning.enabled true is not supported"},
	        {MICRO "elasticity: {enabled: true, max_train_batch_size: 8, micro_batch_sizes: [1, 2]}",
	         "elasticity.enabled true is not supported"},
	        {MICRO "torch_autocast: {enabled: true, dtype: \"bfloat16\"}",
	         "torch_autocast.enabled true is not supported"},
	        {MICRO "tensor_parallel: {autotp_size: 2}", "tensor_parallel.autotp_size 2 is not supported"},
	        {MICRO "optimizer: {type: \"Adam\", params: {amsgrad: true}}",
	         "optimizer.params.amsgrad true is not supported"},
	        {MICRO "zero_optimization: {stage: 0, zero_quantized_weights: \"true\"}",
	         "zero_quantized_weights true is not supported"},
	        {MICRO "zero_optimization: {stage: 1}", "zero_optimization.stage 1 is not supported"},
	        {MICRO "zero_optimization: {stage: 0, offload_optimizer: {device: \"cpu\"}}",
	         "offload_optimizer.device cpu"},
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		mu_test_config c = mu_test_config_text(bad[i].text, NULL, 1);
		mural_error err = {0};
		if (c.status != MURAL_OK)
			fail_msg("%s\n%s", bad[i].text, c.said);
		if (mural_config_check_supported(&c.config, c.report, &err) != MURAL_USAGE)
			fail_msg("supported? %s", bad[i].text);
		if (!strstr(err.message, bad[i].expected) || !strstr(err.where, "run.json:2:"))
			fail_msg("%s\nexpected: %s\ngot: %s (%s)", bad[i].text, bad[i].expected, err.message,
			         err.where);
		mu_test_config_free(&c);
	}
	static const char *const good[] = {"amp: {enabled: false}",
	                                   "communication_data_type: null",
	                                   "compression_training: {}",
	                                   "prescale_gradients: true\ngradient_predivide_factor: 4",
	                                   "bf16: {enabled: true, check_grad_overflow: false}",
	                                   "elasticity: {enabled: false, version: 0.2}",
	                                   "progressive_layer_drop: {theta: 0.5, gamma: 0.01}",
	                                   "data_efficiency: {enabled: false, data_sampling: {enabled: true}}",
	                                   "tensor_parallel: {autotp_size: 0}",
	                                   "compile: {deepcompile: true}"};
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		char text[128];
		mural_error err = {0};
		snprintf(text, sizeof text, MICRO "%s", good[i]);
		mu_test_config c = mu_test_config_text(text, NULL, 1);
		assert_int_equal(c.status, MURAL_OK);
		if (mural_config_check_supported(&c.config, c.report, &err) != MURAL_OK)
			fail_msg("%s: %s", good[i], err.message);
		mu_test_config_free(&c);
	}
}

static void strict_makes_warnings_errors(void **state)
{
	(void)state;
	mu_test_config c = mu_test_config_text(MICRO "xyzzy: 1\nplugh: 2\nmural: {strict: true}", NULL, 1);
	assert_int_equal(c.status, MURAL_USAGE);
	assert_non_null(strstr(c.said, "2 warnings"));
	assert_non_null(strstr(c.said, "W-UNKNOWN: run.json:2:1: xyzzy"));
	assert_non_null(strstr(c.said, "W-UNKNOWN: run.json:3:1: plugh"));
	c = mu_test_config_text(MICRO "mural: {strict: true}", NULL, 1);
	assert_int_equal(c.status, MURAL_OK);
	mu_test_config_free(&c);
}

/* A large file of the wrong kind is refused at once, not explained key by key. */
static void not_a_configuration(void **state)
{
	(void)state;
	for (int same = 0; same < 2; same++) {
		FILE *out = fopen("run.json", "wb");
		assert_non_null(out);
		for (int i = 0; i < 50000; i++)
			fprintf(out, "key_%d: 1\n", same ? 7 : i);
		assert_int_equal(fclose(out), 0);
		mu_test_config c = mu_test_config_file("run.json", NULL, 1);
		assert_int_equal(c.status, MURAL_USAGE);
		assert_non_null(strstr(c.said, same ? "expected each key once" : "more than 100 unknown keys"));
	}
	FILE *out = fopen("run.json", "wb");
	assert_non_null(out);
	assert_int_equal(fseek(out, 2 << 20, SEEK_SET), 0);
	fputs("}", out);
	assert_int_equal(fclose(out), 0);
	mu_test_config c = mu_test_config_file("run.json", NULL, 1);
	assert_int_equal(c.status, MURAL_USAGE);
	assert_non_null(strstr(c.said, "run.json"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(triangle_values_to_refuse),
	        cmocka_unit_test(triangle),
	        cmocka_unit_test(evaluation),
	        cmocka_unit_test(validation),
	        cmocka_unit_test(inputs_that_are_no_configuration),
	        cmocka_unit_test(types_and_ranges),
	        cmocka_unit_test(accepted_values),
	        cmocka_unit_test(blocks_are_looked_into),
	        cmocka_unit_test(one_name_only),
	        cmocka_unit_test(optimizers),
	        cmocka_unit_test(parameters_of_optimizers),
	        cmocka_unit_test(schedules),
	        cmocka_unit_test(schedule_overrides_rate),
	        cmocka_unit_test(types_of_numbers),
	        cmocka_unit_test(refused_before_training),
	        cmocka_unit_test(strict_makes_warnings_errors),
	        cmocka_unit_test(not_a_configuration),
	};
	return cmocka_run_group_tests(tests, mu_test_config_enter, mu_test_config_leave);
}
