/* A small training in this process for tests. Whatever fails ends the suite with its words.
 *
 *     test_training t;
 *     test_training_configure(&t, TEST_TRAINING_TINY " --dropout 0.1");
 *     test_training_open(&t);
 *     mural_engine_train_begin(t.engine, &err); ...
 *     test_training_close(&t);
 * SPDX-License-Identifier: MIT */
#ifndef MU_TESTS_TRAINING_H
#define MU_TESTS_TRAINING_H

#include "mural/engine.h"

/* Everything is odd: sides, a short last batch, several micro-batches. 30 training images, 4 steps per epoch. */
#define TEST_TRAINING_TINY                                                                                         \
	"--model mu --image-size 12x20 --patch 4 --channels 3 --classes 5 --data synthetic --synthetic-images 30 " \
	"--batch 8 --micro-batch 4 --dropout 0.1 --drop-path 0.1 --crop-padding 1"

typedef struct test_training {
	mural_config config;
	mural_comm *comm; /* self */
	mural_data *train, *test;
	mural_engine *engine;
} test_training;

/* options: as `mural train` takes them, separated by spaces. */
void test_training_configure(test_training *t, const char *options);
/* Opens comm, data and engine by t->config. */
void test_training_open(test_training *t);
/* The next step; false when there is none. */
bool test_training_step(test_training *t, mural_step_facts *facts);
/* All steps that are left. */
void test_training_run(test_training *t);
void test_training_close(test_training *t);

#endif
