/* --show-config resolves to the same configuration again, and docs/configuration.md is what the table says
 * (MURAL_WRITE_DOCS=1 writes it). SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/config_table.h"
#include "support/config_text.h"

/* Every field of the table by value: padding between fields does not count. */
static void expect_same(const mural_config *a, const mural_config *b, const char *what)
{
	for (size_t i = 0; i < mu_config_row_count; i++) {
		const mu_config_row *row = &mu_config_rows[i];
		if (row->size == 0 || row->offset + row->size > sizeof(mural_config))
			continue;
		const char *x = (const char *)a + row->offset, *y = (const char *)b + row->offset;
		int different = row->type == MU_CONFIG_TEXT ? strcmp(x, y) : memcmp(x, y, row->size);
		if (different)
			fail_msg("%s: %s came back different", what, row->key);
	}
	assert_string_equal(a->model.preset, b->model.preset);
	assert_string_equal(a->optimizer.name, b->optimizer.name);
	assert_int_equal(a->optimizer.kind, b->optimizer.kind);
	assert_int_equal(a->schedule.kind, b->schedule.kind);
	assert_int_equal(a->engine.precision, b->engine.precision);
	assert_int_equal(a->data.normalise_given, b->data.normalise_given);
	assert_int_equal(a->ranks, b->ranks);
}

static void round_trip(const char *text, const char *options, int ranks)
{
	mu_test_config first = mu_test_config_text(text, options, ranks);
	if (first.status != MURAL_OK)
		fail_msg("%s %s\n%s", text ? text : "", options ? options : "", first.said);
	mu_test_config again = mu_test_config_text(first.shown, NULL, ranks);
	if (again.status != MURAL_OK)
		fail_msg("%s\nrefused: %s", first.shown, again.said);
	expect_same(&first.config, &again.config, text ? text : options);
	mu_test_config_free(&first);
	mu_test_config_free(&again);
}

#define MICRO "train_micro_batch_size_per_gpu: 2\n"

static void shown_resolves_to_the_same(void **state)
{
	(void)state;
	round_trip(NULL, "--batch 6", 3);
	round_trip(NULL,
	           "--batch 6 --precision bf16 --model vit_s_16 --depth 3 --schedule cosine --warmup-epochs 0.1 "
	           "--min-lr 1e-7",
	           1);
	round_trip(NULL,
	           "--micro-batch 6 --mean 0.1,0.2,0.3 --std 0.4,0.5,0.6 --image-size 32x64 --lr 0.1 --beta1 "
	           "0.3333333333333333",
	           2);
	round_trip(NULL, "--micro-batch 6 --schedule WarmupCosineLR --data /a/\"b\\c --strict-config --eval-every 0",
	           1);
	static const char *const blocks[] = {
	        "scheduler: {type: \"WarmupLR\"}",
	        "scheduler: {type: \"WarmupDecayLR\", params: {total_num_steps: 9, warmup_type: \"linear\"}}",
	        "scheduler: {type: \"WarmupCosineLR\", params: {total_num_steps: \"auto\"}}",
	        "scheduler: {type: \"OneCycle\", params: {cycle_min_lr: 0.1, cycle_max_lr: 0.2, "
	        "cycle_first_stair_count: 3}}",
	        "scheduler: {type: \"LRRangeTest\", params: {lr_range_test_step_rate: 2.5}}",
	        "optimizer: {type: \"adam\", params: {adam_w_mode: false}}",
	        "optimizer: {type: \"Adam\"}",
	        "optimizer: {type: \"MuAdamW\", params: {lr: 3}}",
	        "optimizer: {type: \"Lamb\", params: {max_coeff: 3}}",
	        "optimizer: {type: \"RMSprop\", params: {alpha: 3}}",
	        "fp16: {enabled: true, loss_scale: 128, min_loss_scale: 4}",
	        "zero_optimization: {stage: 3, stage3_model_persistence_threshold: 9223372036854775807, overlap_comm: "
	        "false,\n"
	        "offload_param: {device: \"nvme\", nvme_path: \"a \\\"b\\\" \\u00e9\", buffer_count: 6}}",
	        "zero_optimization: true",
	        "flops_profiler: {enabled: true, output_file: null}\ncomms_logger: {prof_ops: [\"send\", "
	        "\"all_reduce\"]}\nhybrid_engine: {enabled: false}",
	        "tensorboard: {job_name: \"run #7\"}\namp: {enabled: false}\nmural: {class_token: false, pool: "
	        "\"mean\"}",
	};
	for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
		char text[512];
		snprintf(text, sizeof text, MICRO "%s", blocks[i]);
		round_trip(text, NULL, 2);
	}
}

/* What has no field survives as text: shown twice, it is the same but for its place. */
static void kept_as_text(void **state)
{
	(void)state;
	mu_test_config first = mu_test_config_text(MICRO "csv_monitor: {enabled: \"true\", output_path: "
	                                                 "'x//y'}\nautotuning: {arg_mappings: {a: [1, null]}}",
	                                           NULL, 1);
	assert_int_equal(first.status, MURAL_OK);
	assert_non_null(strstr(first.shown, "\"enabled\": true, # run.json:2:15: csv_monitor.enabled"));
	assert_non_null(strstr(first.shown, "\"output_path\": \"x//y\", # run.json"));
	assert_non_null(strstr(first.shown, "\"arg_mappings\": {\"a\": [1, null]}, # run.json"));
	mu_test_config again = mu_test_config_text(first.shown, NULL, 1);
	assert_int_equal(again.status, MURAL_OK);
	assert_non_null(strstr(again.shown, "\"arg_mappings\": {\"a\": [1, null]}, # run.json"));
	mu_test_config_free(&first);
	mu_test_config_free(&again);
}

static void printed_without_a_report(void **state)
{
	(void)state;
	mu_test_config c = mu_test_config_text(NULL, "--batch 1", 1);
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	mural_config_print(&c.config, NULL, out);
	fclose(out);
	mu_test_config again = mu_test_config_text(text, NULL, 1);
	assert_int_equal(again.status, MURAL_OK);
	expect_same(&c.config, &again.config, "no report");
	mu_test_config_free(&c);
	mu_test_config_free(&again);
	free(text);
}

/* The table itself: defaults fit their rows, blocks exist, names are unique. */
static void table_is_sound(void **state)
{
	(void)state;
	for (size_t i = 0; i < mu_config_row_count; i++) {
		const mu_config_row *row = &mu_config_rows[i];
		assert_int_equal(mu_config_find(row->key), i);
		assert_true(row->help && *row->help);
		if (strchr(row->key, '.'))
			assert_int_equal(mu_config_rows[mu_config_block_of(i)].type, MU_CONFIG_BLOCK);
		if (row->type == MU_CONFIG_CHOICE)
			assert_non_null(row->range);
		if (row->option)
			assert_true(row->size > 0);
	}
	for (size_t i = 0; i < mu_config_old_count; i++) {
		assert_int_equal(mu_config_find(mu_config_olds[i].key), MU_CONFIG_NO_ROW);
		if (mu_config_olds[i].now)
			assert_int_not_equal(mu_config_find(mu_config_olds[i].now), MU_CONFIG_NO_ROW);
	}
}

/* The caller frees *text. */
static void help_text(bool markdown, char **text)
{
	size_t bytes;
	FILE *out = open_memstream(text, &bytes);
	mural_config_help(out, markdown);
	fclose(out);
}

static void help_has_every_key(void **state)
{
	(void)state;
	char *plain = NULL, *markdown = NULL, line[128];
	help_text(false, &plain);
	help_text(true, &markdown);
	for (size_t i = 0; i < mu_config_row_count; i++) {
		snprintf(line, sizeof line, "%s\n    ", mu_config_rows[i].key);
		assert_non_null(strstr(plain, line));
		snprintf(line, sizeof line, "| `%s` | ", mu_config_rows[i].key);
		assert_non_null(strstr(markdown, line));
	}
	free(plain);
	free(markdown);
}

static void docs_are_made_from_the_table(void **state)
{
	(void)state;
	static const char path[] = MU_TEST_SOURCE_DIR "/../docs/configuration.md";
	char *expected = NULL;
	help_text(true, &expected);
	if (getenv("MURAL_WRITE_DOCS")) {
		FILE *out = fopen(path, "w");
		assert_non_null(out);
		fputs(expected, out);
		assert_int_equal(fclose(out), 0);
	}
	size_t bytes = strlen(expected);
	char *found = calloc(1, bytes + 2);
	FILE *in = fopen(path, "r");
	assert_non_null(in);
	size_t got = fread(found, 1, bytes + 1, in);
	fclose(in);
	if (got != bytes || strcmp(found, expected))
		fail_msg("docs/configuration.md is not what the table says: MURAL_WRITE_DOCS=1 ctest -R config_print");
	free(found);
	free(expected);
}

/* The example in the documentation is a configuration without a warning. */
static void example_resolves(void **state)
{
	(void)state;
	char *text = NULL;
	help_text(true, &text);
	char *begin = strstr(text, "```\n"), *end = begin ? strstr(begin + 4, "```\n") : NULL;
	assert_non_null(end);
	*end = '\0';
	mu_test_config c = mu_test_config_text(begin + 4, NULL, 2);
	assert_int_equal(c.status, MURAL_OK);
	assert_string_equal(c.said, "");
	assert_int_equal(c.config.schedule.kind, MURAL_SCHEDULE_COSINE);
	mu_test_config_free(&c);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(shown_resolves_to_the_same), cmocka_unit_test(kept_as_text),
	        cmocka_unit_test(printed_without_a_report),   cmocka_unit_test(table_is_sound),
	        cmocka_unit_test(help_has_every_key),         cmocka_unit_test(docs_are_made_from_the_table),
	        cmocka_unit_test(example_resolves),
	};
	return cmocka_run_group_tests(tests, mu_test_config_enter, mu_test_config_leave);
}
