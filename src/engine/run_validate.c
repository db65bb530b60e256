/* The validation images of a run: when they are looked at, which weights are best by them, when waiting for better ones ends.
 * And the test of the weights that stay: the last ones and the best ones.
 *
 * What is decided here is decided alike on all ranks, from sums that all ranks have. The test set decides nothing.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "comm/comm.h"
#include "engine/run_internal.h"

bool mu_run_validation_is_due(const mu_run *r, const mural_step_facts *step)
{
	uint64_t steps = r->config->validation.every_steps, epochs = r->config->run.eval_every;
	if (!r->validation)
		return false;
	return (steps > 0 && step->step % steps == 0) ||
	       (epochs > 0 && step->epoch_ends && (step->epoch + 1u) % epochs == 0) ||
	       step->step >= mural_engine_total_steps(r->engine);
}

/* By how much a is better than b; NaN, which is better than nothing, when a is not a number. */
static double gain(const mu_run *r, const mu_validated *a, const mu_validated *b)
{
	return r->config->validation.metric == MURAL_METRIC_LOSS ? b->loss - a->loss : a->top1 - b->top1;
}

static bool is_better(const mu_run *r, const mu_validated *now, const mu_validated *before, double delta)
{
	bool number = isfinite(now->loss);
	return before->step == 0 ? number : number && gain(r, now, before) > delta;
}

/* Returns whether these weights are the best so far. */
static bool take(const mu_run *r, mu_validation *validation, mu_validated now)
{
	bool best = is_better(r, &now, &validation->best, 0);
	validation->last = now;
	if (best)
		validation->best = now;
	if (is_better(r, &now, &validation->reference, r->config->validation.min_delta)) {
		validation->reference = now;
		validation->waited = 0;
	} else {
		validation->waited++;
	}
	return best;
}

mural_status mu_run_validate(mu_run *r, const mural_step_facts *step, bool *best, mural_error *err)
{
	mural_evaluation found;
	MU_TRY(mural_engine_evaluate(r->engine, r->validation, &found, err));
	r->totals.evaluation_seconds += found.seconds;
	*best = take(r, &r->totals.validation,
	             (mu_validated){.step = step->step, .loss = found.loss, .top1 = found.top1, .top5 = found.top5});
	if (!step->epoch_ends)
		mu_progress_line(&r->progress, "step %llu: val loss %.4f acc %.4f", (unsigned long long)step->step,
		                 found.loss, found.top1);
	mu_validation_row row = {
	        .step = step->step,
	        .epoch = step->epoch + 1u,
	        .loss = found.loss,
	        .accuracy = found.top1,
	        .top5 = found.top5,
	        .best = *best,
	        .seconds = found.seconds,
	};
	mural_status status = r->rank == 0 ? mu_validation_write(&r->files.validation, &row, err) : MURAL_OK;
	return mu_comm_agree(r->comm, status, err);
}

bool mu_run_waited_enough(const mu_run *r)
{
	uint32_t patience = r->config->validation.patience;
	return r->validation && patience > 0 && r->totals.validation.waited >= patience;
}

mural_status mu_run_test(mu_run *r, mu_tested *tested, mural_error *err)
{
	int32_t *best = malloc(mural_data_get_facts(r->test)->images * sizeof *best);
	mural_status status =
	        best ? MURAL_OK : mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory to test the weights");
	status = mu_comm_agree(r->comm, status, err);
	if (status == MURAL_OK)
		status = mural_engine_classify(r->engine, r->test, best, &tested->all, err);
	if (status == MURAL_OK) {
		r->totals.evaluation_seconds += tested->all.seconds;
		mu_class_report_release(&tested->classes);
		status = r->rank == 0 ? mu_class_report_make(&tested->classes, r->test, best, err) : MURAL_OK;
		status = mu_comm_agree(r->comm, status, err);
	}
	free(best);
	return status;
}

/* Verifies the best set and puts its weights into the engine. */
static mural_status load_best(mu_run *r, mural_error *err)
{
	char set[MURAL_CHECKPOINT_PATH], path[MU_CHECKPOINT_FILE];
	mural_status status = mu_checkpoint_path(set, r->folder, r->totals.validation.best.step, err);
	if (status == MURAL_OK && r->rank == 0)
		status = mural_checkpoint_verify(set, err);
	MU_TRY(mu_comm_agree(r->comm, status, err));
	snprintf(path, sizeof path, "%s/%s", set, mu_checkpoint_evaluated(r->config));
	return mural_engine_load_weights(r->engine, path, err);
}

mural_status mu_run_test_best(mu_run *r, mural_error *err)
{
	if (!r->validation || r->totals.validation.best.step == 0 ||
	    r->totals.validation.best.step == mural_engine_steps_done(r->engine))
		return MURAL_OK;
	mural_status status = load_best(r, err);
	if (status == MURAL_OK)
		status = mu_run_test(r, &r->tested_best, err);
	if (status != MURAL_OK)
		mu_context(err, "while testing the best weights; the last ones are in '%s/weights.safetensors'",
		           r->folder);
	return status;
}
