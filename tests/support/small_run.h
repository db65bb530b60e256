/* Small trainings for tests: one rank, made-up images, a tiny model with dropout, two micro-batches per step and a short
 * last batch. Every failure ends the test.
 *
 *     small_run t;
 *     small_run_start(&t, "--optimizer Lion --lr 1e-4", NULL, NULL);
 *     mural_step_facts facts = small_run_step(&t);
 *     small_run_stop(&t);
 * SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_SMALL_RUN_H
#define TESTS_SUPPORT_SMALL_RUN_H

#include "engine/engine_internal.h"

#define SMALL_RUN_IMAGES 22 /* steps of 6, 6, 6 and 4 */

typedef struct small_run {
	mural_comm *comm;
	mural_config config;
	mural_data *data; /* both for training and testing */
	mural_engine *engine;
} small_run;

/* options: as on a command line, separated by single spaces; "" for none. ops: NULL for the configuration's. set: a checkpoint
 * to go on from, or NULL. */
void small_run_start(small_run *t, const char *options, const mu_ops *ops, const char *set);
void small_run_stop(small_run *t);

mural_step_facts small_run_step(small_run *t);
mural_evaluation small_run_evaluate(small_run *t);

#endif
