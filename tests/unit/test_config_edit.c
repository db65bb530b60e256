/* mural_config_save: what changes in a file and what stays. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files.h"
#include "support/config_text.h"

#define SAID 2048

static const char *const keys[] = {"train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps",
                                   "mural.threads", NULL};

/* Tunes a configuration to 128 = 16 x 4 x 2 ranks and 3 threads and saves it; the text that came out is the caller's to free, NULL
 * with the words in `said`. */
static char *save(const char *text, const char *options, const char *to, char said[SAID])
{
	mu_test_config c = mu_test_config_text(text, options, 2);
	char *found = NULL;
	size_t bytes;
	mural_error err = {0};
	assert_int_equal(c.status, MURAL_OK);
	c.config.batch = (mural_batch_config){128, 16, 4};
	c.config.run.threads = 3;
	const mural_config_edit edit = {
	        .config = &c.config, .report = c.report, .file = text ? "run.json" : NULL, .keys = keys};
	if (mural_config_save(to, &edit, &err) == MURAL_OK)
		assert_int_equal(mu_file_read(to, "result", 1 << 20, MURAL_FAILED, &found, &bytes, &err), MURAL_OK);
	snprintf(said, SAID, "%s %s", err.where, err.message);
	mu_test_config_free(&c);
	return found;
}

static void expect(const char *text, const char *options, const char *wanted)
{
	char said[SAID], *found = save(text, options, "tuned.json", said);
	if (!found)
		fail_msg("%s", said);
	assert_string_equal(found, wanted);
	free(found);
	unlink("tuned.json");
}

static void test_replaced(void **state)
{
	(void)state;
	expect("# mine\n{\n  train_batch_size: 64 # keep\n  /* so */ train_micro_batch_size_per_gpu: \"auto\"\n"
	       "  'gradient_accumulation_steps': 1,\n  mural: {\n\tthreads : 1\n  }\n}\n",
	       NULL,
	       "# mine\n{\n  train_batch_size: 128 # keep\n  /* so */ train_micro_batch_size_per_gpu: 16\n"
	       "  'gradient_accumulation_steps': 4,\n  mural: {\n\tthreads : 3\n  }\n}\n");
	expect("\xef\xbb\xbf{\"train_batch_size\": 64,\r\n\"mural\": {\"threads\":1,\"seed\":3}}", NULL,
	       "\xef\xbb\xbf{ \"gradient_accumulation_steps\": 4, \"train_micro_batch_size_per_gpu\": "
	       "16,\"train_batch_size\": "
	       "128,\r\n\"mural\": {\"threads\":3,\"seed\":3}}");
}

static void test_put_in(void **state)
{
	(void)state;
	/* plain JSON stays plain JSON */
	expect("{\n    \"train_batch_size\": 64,\n    \"mural\": {}\n}\n", NULL,
	       "{\n    \"gradient_accumulation_steps\": 4,\n    \"train_micro_batch_size_per_gpu\": 16,\n"
	       "    \"train_batch_size\": 128,\n    \"mural\": { \"threads\": 3 }\n}\n");
	/* a root without braces; a block that is not there */
	expect("train_batch_size: 64\ngradient_accumulation_steps: 2 # last", NULL,
	       "train_batch_size: 128\ngradient_accumulation_steps: 4 # last\n\"train_micro_batch_size_per_gpu\": 16\n"
	       "\"mural\": { \"threads\": 3 }\n");
}

/* What the command line said belongs to the configuration, and goes into the file. */
static void test_arguments(void **state)
{
	(void)state;
	expect("{\n\ttrain_micro_batch_size_per_gpu: 64\n\ttrain_batch_size: 128\n\tgradient_accumulation_steps: 1\n"
	       "\toptimizer: { type: AdamW\n\t}\n\tmural: {\n\t\tthreads: 0\n\t}\n}\n",
	       "--lr 0.5 --optimizer SGD --precision bf16",
	       "{\n\t\"bf16\": { \"enabled\": true },\n\t\"fp16\": { \"enabled\": false },\n"
	       "\ttrain_micro_batch_size_per_gpu: 16\n\ttrain_batch_size: 128\n\tgradient_accumulation_steps: 4\n"
	       "\toptimizer: { \"params\": { \"lr\": 0.5 }, type: \"SGD\"\n\t}\n\tmural: {\n\t\tthreads: 3\n\t}\n}\n");
}

/* Without a file everything in force is written, and reads back. */
static void test_no_file(void **state)
{
	(void)state;
	char said[SAID], *found = save(NULL, "--batch 64 --model vit_ti_16 --weight-decay 0.2", "tuned.json", said);
	assert_non_null(found);
	assert_non_null(strstr(found, "\"train_batch_size\": 128,"));
	assert_non_null(strstr(found, "\"weight_decay\": 0.2,"));
	mu_test_config c = mu_test_config_file("tuned.json", NULL, 2);
	assert_int_equal(c.status, MURAL_OK);
	assert_int_equal(c.config.batch.micro_batch, 16);
	assert_int_equal(c.config.run.threads, 3);
	mu_test_config_free(&c);
	free(found);
	unlink("tuned.json");
}

static void test_in_place_and_refused(void **state)
{
	(void)state;
	char said[SAID], *found = save("train_batch_size: 64\n", NULL, "run.json", said);
	assert_non_null(found);
	assert_non_null(strstr(found, "train_batch_size: 128\n"));
	free(found);
	assert_null(save("train_batch_size: 64\n", NULL, "/proc/tuned.json", said));
	assert_non_null(strstr(said, "/proc/tuned.json"));
}

/* An optimizer's block changes the default of the decay: it comes whole. */
static void test_block_that_matters(void **state)
{
	(void)state;
	char said[SAID], *found = save("train_batch_size: 64\n", "--lr 0.5", "tuned.json", said);
	if (!found)
		fail_msg("%s", said);
	mu_test_config c = mu_test_config_file("tuned.json", NULL, 2);
	assert_true(c.config.optimizer.lr == 0.5 && c.config.optimizer.weight_decay == 0.01);
	mu_test_config_free(&c);
	free(found);
	unlink("tuned.json");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_replaced),
	        cmocka_unit_test(test_put_in),
	        cmocka_unit_test(test_arguments),
	        cmocka_unit_test(test_no_file),
	        cmocka_unit_test(test_in_place_and_refused),
	        cmocka_unit_test(test_block_that_matters),
	};
	return cmocka_run_group_tests(tests, mu_test_config_enter, mu_test_config_leave);
}
