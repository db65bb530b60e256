/* A small training in this process for tests. SPDX-License-Identifier: MIT */
#include "support/training.h"

#include <stdlib.h>
#include <string.h>

static void must(mural_status status, const mural_error *err)
{
	if (status == MURAL_OK)
		return;
	mural_error_print(err, stderr);
	abort();
}

void test_training_configure(test_training *t, const char *options)
{
	const char *argv[64];
	int argc = 0;
	mural_error err = {0};
	char *copy = strdup(options), *rest = NULL;
	for (char *word = strtok_r(copy, " ", &rest); word && argc < 64; word = strtok_r(NULL, " ", &rest))
		argv[argc++] = word;
	const mural_config_sources sources = {.argc = argc, .argv = argv, .ranks = 1};
	*t = (test_training){0};
	must(mural_config_resolve(&t->config, NULL, &sources, &err), &err);
	free(copy);
}

void test_training_open(test_training *t)
{
	const mural_model_config *m = &t->config.model;
	mural_data **const splits[] = {&t->train, &t->test};
	mural_error err = {0};
	must(mural_comm_open(&t->comm, "self", &err), &err);
	for (int s = 0; s < 2; s++)
		must(mural_data_open(splits[s], &t->config.data, (mural_split)s, t->config.run.seed, m->channels,
		                     m->image_height, m->image_width, m->classes, &err),
		     &err);
	const mural_engine_settings settings = {
	        .config = &t->config, .comm = t->comm, .training = true, .train = t->train, .test = t->test};
	must(mural_engine_create(&t->engine, &settings, &err), &err);
}

bool test_training_step(test_training *t, mural_step_facts *facts)
{
	mural_error err = {0};
	must(mural_engine_step(t->engine, facts, &err), &err);
	return !facts->finished;
}

void test_training_run(test_training *t)
{
	mural_error err = {0};
	mural_step_facts facts;
	must(mural_engine_train_begin(t->engine, &err), &err);
	while (test_training_step(t, &facts))
		;
}

void test_training_close(test_training *t)
{
	mural_engine_free(t->engine);
	mural_data_free(t->train);
	mural_data_free(t->test);
	mural_comm_close(t->comm);
}
