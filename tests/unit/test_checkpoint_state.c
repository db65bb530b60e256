/* state.json: what is written is read; without any one of its keys, or with something else for a block, it is refused by
 * name and nothing worse. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/files.h"
#include "engine/checkpoint.h"
#include "support/data_files.h"

static char *folder;
static char path[1024];
static const mu_match matches[] = {{"mural.model", "vit_b_16"}, {"mural.seed", "0"}};

static int enter(void **state)
{
	(void)state;
	folder = test_folder_create();
	snprintf(path, sizeof path, "%s/state.json", folder);
	return 0;
}

static int leave(void **state)
{
	(void)state;
	test_folder_remove(folder);
	return 0;
}

/* A state in which no number is 0, as text. */
static char *written(size_t *bytes)
{
	mu_epoch_row rows[2] = {
	        {.epoch = 1, .train_loss = 2.5, .train_accuracy = 0.25, .test_loss = 2.25, .seconds = 10},
	        {.epoch = 2, .train_loss = 1.5, .train_accuracy = 0.75, .test_accuracy = 0.625, .seconds = 11}};
	const mu_carried carried = {.loss_scale = 8.5, .clean = 3, .hysteresis = 2, .applied = 11, .skipped = 1};
	mu_checkpoint_state out = {.step = 12, .carried = carried, .epoch = 2, .step_in_epoch = 3, .ranks = 4};
	out.totals = (mu_run_totals){.epoch = {5, 6.5, 7.5, 8.5, {9.5, 10.5}},
	                             .images = 13,
	                             .seconds = 14.5,
	                             .evaluation_seconds = 15.5,
	                             .joules = {16.5, 17.5},
	                             .train_loss = 18.5,
	                             .train_accuracy = 0.5,
	                             .test_loss = 19.5,
	                             .test_accuracy = 0.25,
	                             .test_top5 = 0.125,
	                             .epochs = rows,
	                             .n_epochs = 2};
	for (int phase = 0; phase < MU_PHASE_COUNT; phase++)
		out.totals.phase_seconds[phase] = phase + 1;
	char *text;
	assert_int_equal(mu_checkpoint_state_write(path, &out, matches, 2, NULL), MURAL_OK);
	assert_int_equal(mu_file_read(path, "state", 1 << 20, MURAL_DATA, &text, bytes, NULL), MURAL_OK);
	return text;
}

static mural_status read_back(mu_checkpoint_state *in, mural_error *err)
{
	*err = (mural_error){0};
	return mu_checkpoint_state_read(path, in, matches, 2, err);
}

static void what_is_written_is_read(void **state)
{
	(void)state;
	size_t bytes;
	mu_checkpoint_state in;
	mural_error err;
	free(written(&bytes));
	assert_int_equal(read_back(&in, &err), MURAL_OK);
	assert_true(in.step == 12 && in.carried.applied == 11 && in.carried.skipped == 1 &&
	            in.carried.loss_scale == 8.5 && in.carried.clean == 3 && in.carried.hysteresis == 2 &&
	            in.epoch == 2 && in.step_in_epoch == 3);
	assert_int_equal(in.ranks, 4);
	const mu_run_totals *t = &in.totals;
	assert_true(t->epoch.images == 5 && t->epoch.loss == 6.5 && t->epoch.top1 == 7.5 && t->epoch.seconds == 8.5);
	assert_true(t->epoch.joules.processor == 9.5 && t->epoch.joules.gpu == 10.5);
	assert_true(t->images == 13 && t->seconds == 14.5 && t->evaluation_seconds == 15.5);
	assert_true(t->joules.processor == 16.5 && t->joules.gpu == 17.5);
	assert_true(t->train_loss == 18.5 && t->train_accuracy == 0.5 && t->test_loss == 19.5);
	assert_true(t->test_accuracy == 0.25 && t->test_top5 == 0.125);
	assert_int_equal(t->n_epochs, 2);
	assert_true(t->epochs[1].epoch == 2 && t->epochs[1].test_accuracy == 0.625 && t->epochs[1].seconds == 11);
	free(in.totals.epochs);
}

/* Energy and loss scale are younger than the first states, which lack them: not known, and no reason to refuse them. */
static bool is_optional(const char *key)
{
	return strncmp(key, "processor_joules", 16) == 0 || strncmp(key, "loss_scale", 10) == 0;
}

/* The file with the key at this place called something else. */
static void rename_key(const char *text, size_t bytes, size_t key)
{
	char *changed = malloc(bytes);
	assert_non_null(changed);
	memcpy(changed, text, bytes);
	changed[key] = 'x';
	test_file_write(folder, "state.json", changed, bytes);
	free(changed);
}

static void every_key_is_needed(void **state)
{
	(void)state;
	size_t bytes, keys = 0;
	char *text = written(&bytes);
	for (size_t i = 1; i + 1 < bytes; i++) {
		if (text[i - 1] != '"' || (text[i - 2] != ' ' && text[i - 2] != '{'))
			continue;
		size_t length = strcspn(text + i, "\"");
		if (text[i + length + 1] != ':')
			continue; /* a value */
		if (strncmp(text + i, "mural_version", 13) == 0)
			continue; /* for people */
		mu_checkpoint_state in;
		mural_error err;
		rename_key(text, bytes, i);
		mural_status status = read_back(&in, &err);
		free(in.totals.epochs);
		bool fine = is_optional(text + i);
		if (fine ? status != MURAL_OK : status != MURAL_DATA && status != MURAL_USAGE)
			fail_msg("without %.*s: %d %s", (int)length, text + i, (int)status, err.message);
		assert_true(fine || (err.message[0] && err.where[0]));
		keys++;
	}
	assert_true(keys > 40);
	free(text);
}

static void blocks_may_be_anything(void **state)
{
	(void)state;
	static const char *const values[] = {"null", "true", "7", "\"text\"", "[]", "{}", "[[]]", "[null, 1]"};
	static const char *const blocks[] = {"must_match",    "running_epoch", "totals",
	                                     "phase_seconds", "epochs",        "ranks"};
	for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++)
		for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
			char text[512];
			mu_checkpoint_state in;
			mural_error err;
			snprintf(text, sizeof text,
			         "{\"format\": \"mural-state\", \"version\": 1, \"step\": 1, "
			         "\"must_match\": {\"mural.model\": \"vit_b_16\", \"mural.seed\": \"0\"}, \"x\": 1}");
			char *at = strstr(text, "\"x\"");
			snprintf(at, sizeof text - (size_t)(at - text), "\"%s\": %s}", blocks[b], values[v]);
			test_file_write(folder, "state.json", text, strlen(text));
			mural_status status = read_back(&in, &err);
			free(in.totals.epochs);
			if (status != MURAL_DATA && status != MURAL_USAGE)
				fail_msg("%s: %d %s", text, (int)status, err.message);
		}
}

static void numbers_have_limits(void **state)
{
	(void)state;
	size_t bytes;
	char *text = written(&bytes);
	mu_checkpoint_state in;
	mural_error err;
	char *ranks = strstr(text, "\"ranks\": 4");
	assert_non_null(ranks);
	char *changed = malloc(bytes + 32);
	int n = snprintf(changed, bytes + 32, "%.*s\"ranks\": 5000000000%s", (int)(ranks - text), text, ranks + 10);
	test_file_write(folder, "state.json", changed, (size_t)n);
	assert_int_equal(read_back(&in, &err), MURAL_DATA);
	assert_non_null(strstr(err.message, "'ranks'"));
	free(in.totals.epochs);
	free(changed);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(what_is_written_is_read, enter, leave),
	        cmocka_unit_test_setup_teardown(every_key_is_needed, enter, leave),
	        cmocka_unit_test_setup_teardown(blocks_may_be_anything, enter, leave),
	        cmocka_unit_test_setup_teardown(numbers_have_limits, enter, leave),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
