/* Small trainings for tests. SPDX-License-Identifier: MIT */
#include "support/small_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "mural/checkpoint.h"

#define MOST 96

static const char *const task[] = {
        "--model",   "mu",  "--image-size", "8",         "--patch",        "4", "--channels",         "1",
        "--classes", "3",   "--data",       "synthetic", "--batch",        "6", "--micro-batch",      "3",
        "--dropout", "0.1", "--drop-path",  "0.1",       "--crop-padding", "1", "--synthetic-images", "22",
        "--epochs",  "9",   "--threads",    "1",         "--prefetch",     "2",
};
#define TASK (sizeof task / sizeof *task)

static void must(mural_status status, const mural_error *err)
{
	if (status != MURAL_OK)
		fail_msg("%s (%s)", err->message, err->where);
}

static void configure(small_run *t, const char *options)
{
	const char *argv[MOST];
	char text[1024];
	int argc = TASK;
	mural_error err = {0};
	memcpy(argv, task, sizeof task);
	assert_true(strlen(options) < sizeof text);
	strcpy(text, options);
	for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
		assert_true(argc < MOST);
		argv[argc++] = word;
	}
	const mural_config_sources sources = {.argc = argc, .argv = argv, .ranks = 1};
	must(mural_config_resolve(&t->config, NULL, &sources, &err), &err);
}

void small_run_start(small_run *t, const char *options, const mu_ops *ops, const char *set)
{
	mural_error err = {0};
	*t = (small_run){0};
	configure(t, options);
	const mural_model_config *m = &t->config.model;
	must(mural_comm_open(&t->comm, "self", &err), &err);
	must(mural_data_open(&t->data, &t->config.data, MURAL_SPLIT_TRAIN, t->config.run.seed, m->channels,
	                     m->image_height, m->image_width, m->classes, &err),
	     &err);
	const mural_engine_settings settings = {
	        .config = &t->config, .comm = t->comm, .training = true, .train = t->data, .test = t->data};
	must(mu_engine_create_on(&t->engine, &settings, ops, &err), &err);
	if (set)
		must(mural_checkpoint_load(t->engine, set, &err), &err);
	must(mural_engine_train_begin(t->engine, &err), &err);
	mural_memory_plan planned, used;
	mural_engine_memory(t->engine, &planned, &used);
	assert_memory_equal(&planned, &used, sizeof planned);
}

void small_run_stop(small_run *t)
{
	mural_engine_free(t->engine);
	mural_data_free(t->data);
	mural_comm_close(t->comm);
}

mural_step_facts small_run_step(small_run *t)
{
	mural_step_facts facts;
	mural_error err = {0};
	must(mural_engine_step(t->engine, &facts, &err), &err);
	assert_false(facts.finished);
	return facts;
}

mural_evaluation small_run_evaluate(small_run *t)
{
	mural_evaluation facts;
	mural_error err = {0};
	must(mural_engine_evaluate(t->engine, t->data, &facts, &err), &err);
	assert_int_equal(facts.images, SMALL_RUN_IMAGES);
	return facts;
}
