/* An evaluation from data to result. SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "comm/comm.h"
#include "engine/checkpoint.h"
#include "engine/class_report.h"
#include "engine/run_files.h"

typedef struct evaluation {
	const mural_config *config;
	const mural_config_report *report;
	const mural_run_options *options;
	mural_comm *comm;
	int rank, ranks;
	mural_data *data;
	mural_engine *engine;
	int32_t *best; /* [images] the class that each is taken for */
	mu_class_report classes; /* rank 0's */
} evaluation;

static mural_status open_data(evaluation *e, mural_split split, mural_error *err)
{
	const mural_model_config *m = &e->config->model;
	MU_TRY(mural_data_open(&e->data, &e->config->data, split, e->config->run.seed, m->channels, m->image_height,
	                       m->image_width, m->classes, err));
	e->best = malloc(mural_data_get_facts(e->data)->images * sizeof *e->best);
	if (!e->best)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the classes of %llu images",
		               (unsigned long long)mural_data_get_facts(e->data)->images);
	return MURAL_OK;
}

/* The set that options->checkpoint names; verified. */
static mural_status find_set(char set[MURAL_CHECKPOINT_PATH], const char *run_dir, const char *name, mural_error *err)
{
	static const char origin[] = "argument --checkpoint";
	bool best = strcmp(name, "best") == 0;
	mural_checkpoint_choice choice;
	char path[MURAL_CHECKPOINT_PATH];
	if (best)
		MU_TRY(mural_checkpoint_find_best(&choice, run_dir, err));
	else if (strcmp(name, "latest") == 0)
		MU_TRY(mural_checkpoint_find(&choice, run_dir, err));
	else if (strncmp(name, "step-", 5) == 0 && !strchr(name, '/') &&
	         snprintf(path, sizeof path, "%s/checkpoints/%s", run_dir, name) < (int)sizeof path)
		MU_TRY(mural_checkpoint_find(&choice, path, err));
	else
		return mu_fail(err, MURAL_USAGE, origin,
		               "expected best, latest or a set such as step-00000123, got '%.80s'", name);
	if (!choice.found)
		return mu_fail(err, MURAL_USAGE, origin, "there is no %s checkpoint in '%s'%s", best ? "best" : "such",
		               run_dir, best ? ": only runs with validation images (--val) keep one" : "");
	memcpy(set, choice.set, sizeof choice.set);
	return MURAL_OK;
}

/* On rank 0: the file of the weights, found in the run's folder where none was named. */
static mural_status find_weights(const evaluation *e, const char *weights, mural_evaluate_result *result,
                                 mural_error *err)
{
	const char *run_dir = e->config->run.run_dir;
	char set[MURAL_CHECKPOINT_PATH];
	if (weights) {
		snprintf(result->weights, sizeof result->weights, "%s", weights);
		return MURAL_OK;
	}
	if (!run_dir[0])
		return mu_fail(err, MURAL_USAGE, NULL, "there is nothing to evaluate: name weights or a run's folder");
	if (!e->options->checkpoint) {
		snprintf(result->weights, sizeof result->weights, "%s/weights.safetensors", run_dir);
		return MURAL_OK;
	}
	MU_TRY(find_set(set, run_dir, e->options->checkpoint, err));
	snprintf(result->weights, sizeof result->weights, "%s/%s", set, mu_checkpoint_evaluated(e->config));
	return MURAL_OK;
}

static mural_status evaluate(evaluation *e, mural_evaluate_result *result, mural_error *err)
{
	mural_engine_settings settings = {.config = e->config, .report = e->report, .comm = e->comm, .test = e->data};
	MU_TRY(mural_engine_create(&e->engine, &settings, err));
	MU_TRY(mural_engine_load_weights(e->engine, result->weights, err));
	return mural_engine_classify(e->engine, e->data, e->best, &result->all, err);
}

static mural_status write_result(evaluation *e, mural_evaluate_result *result, mural_error *err)
{
	MU_TRY(mu_class_report_make(&e->classes, e->data, e->best, err));
	result->n_worst = mu_class_report_worst(&e->classes, e->data, result->worst);
	if (!e->options->result_path)
		return MURAL_OK;
	return mu_write_evaluation(e->options->result_path, &result->all, &e->classes, e->data, result->weights,
	                           e->ranks, err);
}

mural_status mural_evaluate_run(const mural_config *config, const mural_config_report *report, mural_comm *comm,
                                const char *weights, mural_split split, const mural_run_options *options,
                                mural_evaluate_result *result, mural_error *err)
{
	const mural_comm_facts *ranks = mural_comm_get_facts(comm);
	evaluation e = {.config = config,
	                .report = report,
	                .options = options,
	                .comm = comm,
	                .rank = ranks->rank,
	                .ranks = ranks->size};
	*result = (mural_evaluate_result){0};
	mural_status status = e.rank == 0 ? mu_result_check(options->result_path, "", err) : MURAL_OK;
	if (status == MURAL_OK && e.rank == 0)
		status = find_weights(&e, weights, result, err);
	if (status == MURAL_OK)
		status = open_data(&e, split, err);
	status = mural_comm_agree(comm, status, err);
	if (status == MURAL_OK)
		status = evaluate(&e, result, err);
	if (status == MURAL_OK) {
		status = e.rank == 0 ? write_result(&e, result, err) : MURAL_OK;
		status = mural_comm_agree(comm, status, err);
	}
	mu_class_report_release(&e.classes);
	mural_engine_free(e.engine);
	mural_data_free(e.data);
	free(e.best);
	return status;
}
