/* Training inside a program of your own, step by step: a small Vision Transformer on images that the library makes up.
 *
 * The program owns the loop. It decides what it shows, when it tests, and when it has seen enough; the engine plans the
 * memory, feeds itself and does the steps. Where whole runs with their folders and files are wanted, mural_train_run
 * (examples/train.c) is shorter.
 *
 *     cmake -S embed -B build -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build && build/embed
 *     cc embed/embed.c $(pkg-config --cflags --libs mural) -o embed && ./embed
 *     mpirun -n 2 ./embed                    the same losses, on two ranks
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include <mural/engine.h>

#define GOOD_ENOUGH 0.9 /* share of test images; there are four classes */

/* Any option of `mural train --help` may stand here; a configuration file, too. */
static const char *const options[] = {"--model",    "mu",   "--image-size",       "16",      "--patch",  "8",
                                      "--channels", "1",    "--classes",          "4",       "--data",   "synthetic",
                                      "--batch",    "32",   "--synthetic-images", "2048",    "--epochs", "20",
                                      "--lr",       "3e-3", "--schedule",         "constant"};

/* What lives until the end. Zero-initialise; everything in it may be released in that state. */
typedef struct training {
	mural_config config;
	mural_comm *comm;
	mural_data *train, *test;
	mural_engine *engine;
} training;

static mural_status open_all(training *t, mural_error *err)
{
	mural_status status = mural_comm_open(&t->comm, "auto", err);
	if (status != MURAL_OK)
		return status;
	const mural_config_sources sources = {.argc = (int)(sizeof options / sizeof *options),
	                                      .argv = options,
	                                      .ranks = mural_comm_get_facts(t->comm)->size};
	status = mural_config_resolve(&t->config, NULL, &sources, err);
	const mural_model_config *m = &t->config.model;
	for (int split = 0; split < 2 && status == MURAL_OK; split++)
		status = mural_data_open(split ? &t->test : &t->train, &t->config.data,
		                         split ? MURAL_SPLIT_TEST : MURAL_SPLIT_TRAIN, t->config.run.seed, m->channels,
		                         m->image_height, m->image_width, m->classes, err);
	status = mural_comm_agree(t->comm, status, err); /* a rank that failed takes the others along */
	const mural_engine_settings settings = {
	        .config = &t->config, .comm = t->comm, .training = true, .train = t->train, .test = t->test};
	if (status == MURAL_OK)
		status = mural_engine_create(&t->engine, &settings, err);
	return status == MURAL_OK ? mural_engine_train_begin(t->engine, err) : status;
}

static void close_all(training *t)
{
	mural_engine_free(t->engine);
	mural_data_free(t->train);
	mural_data_free(t->test);
	mural_comm_close(t->comm);
}

/* Steps until the end of an epoch, a test, and on until that is good. */
static mural_status train(training *t, mural_error *err)
{
	const bool speaks = mural_comm_get_facts(t->comm)->rank == 0;
	mural_evaluation test = {0};
	while (test.top1 < GOOD_ENOUGH) {
		mural_step_facts step;
		mural_status status = mural_engine_step(t->engine, &step, err);
		if (status == MURAL_OK && !step.finished && step.epoch_ends)
			status = mural_engine_evaluate(t->engine, t->test, &test, err);
		if (status != MURAL_OK || step.finished)
			return status;
		if (speaks && step.epoch_ends)
			printf("epoch %u: loss %.4f, accuracy %.4f on %llu test images\n", step.epoch + 1, step.loss,
			       test.top1, (unsigned long long)test.images);
	}
	return mural_engine_save_weights(t->engine, "embed.safetensors", err);
}

int main(void)
{
	mural_error err = {0};
	training t = {0};
	mural_status status = open_all(&t, &err);
	if (status == MURAL_OK)
		status = train(&t, &err);
	if (status != MURAL_OK && status != MURAL_PEER) /* one rank tells */
		mural_error_print(&err, stderr);
	close_all(&t);
	return mural_exit_code(status);
}
