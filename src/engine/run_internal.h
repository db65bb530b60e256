/* A training run, shared by the files that make it up.
 *
 *     run.c          from data to result
 *     run_resume.c   where a run goes on from, and in which folder
 *     run_train.c    steps, epochs, checkpoints, stopping
 *     run_validate.c validation images, best weights, early stopping, the tests at the end
 *     run_emulate.c  the cluster that it stands for
 *     run_load.c  how evenly the ranks were loaded
 *     run_stall.c    a rank that stalls
 *     run_balance.h  unequal shares, as people see them
 * SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_RUN_INTERNAL_H
#define MU_ENGINE_RUN_INTERNAL_H

#include "engine/checkpoint.h"
#include "engine/class_report.h"
#include "engine/run_load.h"
#include "engine/run_energy.h"
#include "engine/observe.h"
#include "engine/run_files.h"
#include "monitor/host_stats.h"
#include "monitor/progress.h"

/* The test of some weights; all.images 0: they were not tested. */
typedef struct mu_tested {
	mural_evaluation all;
	mu_class_report classes; /* rank 0's */
} mu_tested;

/* Everything that lives as long as the run. */
typedef struct mu_run {
	const mural_config *config;
	const mural_config_report *report; /* rank 0's; may be NULL */
	const mural_run_options *options;
	mural_comm *comm; /* what it communicates through: the caller's, or one around it */
	mural_comm *emulated; /* NULL: the links are as they are */
	mural_cluster_device device; /* to emulate, where there is a cluster */
	mu_observe observe;
	int rank, ranks;
	double begun; /* mu_now() */
	mural_data *train, *test, *validation; /* validation: NULL if there is none */
	mural_engine *engine;
	char set[MURAL_CHECKPOINT_PATH]; /* the checkpoint that it goes on from; "" = it begins. The same on all ranks */
	char folder[MURAL_CHECKPOINT_PATH]; /* the run's; on all ranks once mu_run_open_files is through */
	mu_run_files files; /* rank 0's */
	char weights_notes[MURAL_WEIGHTS_NOTES]; /* rank 0's: how the first weights were adapted; lines */
	mu_progress progress;
	mu_host_stats host;
	mu_run_energy energy;
	mu_run_load load;
	mu_run_totals totals; /* epochs has room for the whole run */
	mu_tested tested, tested_best; /* of the last weights; of the best ones, when they are others */
} mu_run;

/* All ranks: sets r->set from the options; rank 0 looks, verifies and warns of what it refused. */
mural_status mu_run_choose_start(mu_run *r, mural_error *err);
/* All ranks, with the engine's steps known: rank 0 opens the folder and its tables. */
mural_status mu_run_open_files(mu_run *r, mural_error *err);
/* Shall the validation images be looked at after this step? */
bool mu_run_validation_is_due(const mu_run *r, const mural_step_facts *step);
/* All ranks: looks. *best: no weights were better so far. */
mural_status mu_run_validate(mu_run *r, const mural_step_facts *step, bool *best, mural_error *err);
/* Early stopping: there was nothing better for as long as was asked for. */
bool mu_run_waited_enough(const mu_run *r);
/* All ranks: the engine's weights on the test set. */
mural_status mu_run_test(mu_run *r, mu_tested *tested, mural_error *err);
/* All ranks, when the last weights are kept: takes the best ones into the engine and tests them, if they are others. */
mural_status mu_run_test_best(mu_run *r, mural_error *err);
/* All ranks: with a cluster to emulate, sets r->comm, r->emulated and r->device; rank 0 reads its file. */
mural_status mu_run_emulate(mu_run *r, mural_error *err);
/* Rank 0, at the end: how well this machine kept up with it; result.json's member. */
void mu_run_tell_emulation(mu_run *r);
/* With the folder open: says from now on who is waited for. */
void mu_run_watch_stalls(mu_run *r);
/* All ranks: until the last step. MURAL_STOPPED, on all ranks, with a checkpoint written. */
mural_status mu_run_train(mu_run *r, mural_error *err);

#endif
