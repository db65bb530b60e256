/* One optimizer step: micro-batches forward and backward, one reduction, one update.
 *
 * Sums, not means: a rank's loss is the sum over its images times 1 / planned count of the step; the actual count
 * travels in the same reduction and the update multiplies by planned / actual. So unequal shares, short last batches
 * and ranks without images all give the gradient of the mean over the images that were really there.
 *
 * A rank that fails inside the step computes nothing more but still takes part in every collective, with its failure
 * counted in the sums; so all ranks leave at the same step.
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "base/clock.h"
#include "engine/engine_internal.h"

mu_vit_input mu_engine_input(const mural_engine *engine, const mural_data *data, const mu_batch *batch)
{
	return (mu_vit_input){
	        .count = batch->count,
	        .pixels = batch->pixels,
	        .cut_B = batch->cut_B,
	        .mean_C = data->mean,
	        .std_C = data->std,
	        .stream_B = batch->stream_B,
	        .labels = batch->labels,
	        .loss_scale = 1 / (double)batch->planned,
	        .label_smoothing = engine->config.run.label_smoothing,
	};
}

static mural_status forward(mural_engine *engine, const mu_vit_input *input, mu_step_state *state, mural_error *err)
{
	double from = mu_now();
	for (size_t u = 0; u < engine->vit.n_units; u++)
		MU_TRY(mu_vit_forward_unit(engine->train_pass, u, mu_store_parameters(&engine->store, u), input, err));
	MU_TRY(mu_vit_loss(engine->train_pass, input, &state->images, &state->flags, NULL, err));
	state->forward += mu_now() - from;
	return MURAL_OK;
}

static mural_status backward(mural_engine *engine, const mu_vit_input *input, bool last, mu_step_state *state,
                             mural_error *err)
{
	double from = mu_now();
	for (size_t u = engine->vit.n_units; u-- > 0;) {
		if (input->count > 0)
			MU_TRY(mu_vit_backward_unit(engine->train_pass, u, mu_store_parameters(&engine->store, u),
			                            mu_store_gradients(&engine->store, u), input, err));
		if (last)
			MU_TRY(mu_reducer_ready(&engine->reducer, u, err));
	}
	state->backward += mu_now() - from;
	return MURAL_OK;
}

static mural_status micro_step(mural_engine *engine, bool last, mu_step_state *state, mural_error *err)
{
	mu_batch *batch;
	double waited;
	MU_TRY(mu_loader_next(engine->loader, &batch, &waited, err));
	if (!batch)
		return mu_bug(err, "the loader ended before the run did");
	state->data += waited;
	state->planned = batch->planned;
	state->epoch = batch->epoch;
	state->step_in_epoch = batch->step;
	mu_vit_input input = mu_engine_input(engine, engine->train, batch);
	mural_status status = MURAL_OK;
	if (batch->count > 0)
		status = forward(engine, &input, state, err);
	if (status == MURAL_OK)
		status = backward(engine, &input, last, state, err);
	mu_loader_give_back(engine->loader, batch);
	return status;
}

mural_status mu_engine_sum(mural_engine *engine, mural_status status, const mu_loss_sums *mine, uint32_t flags,
                           mu_step_sums *all, mural_error *err)
{
	*all = (mu_step_sums){
	        .images = *mine,
	        .failed = status != MURAL_OK,
	        .non_finite = !!(flags & MU_FLAG_NON_FINITE),
	        .label_range = !!(flags & MU_FLAG_LABEL_RANGE),
	        .stop_asked = engine->stop_asked,
	};
	MU_TRY(mu_comm_all_reduce(engine->comm, all, sizeof *all / sizeof(double), MU_F64, MU_SUM, err));
	if (all->failed > 0)
		return mu_comm_agree(engine->comm, status, err);
	return MURAL_OK;
}

/* Every rank finds the same in these sums: they fail together, and one of them speaks. */
static mural_status check_sums(const mural_engine *engine, const mu_step_state *state, const mu_step_sums *all,
                               mural_error *err)
{
	unsigned long long step = engine->steps_done + 1;
	if (all->label_range > 0)
		return mu_fail(err, MURAL_DATA, NULL,
		               "a label is outside 0 .. %zu, the model's classes (step %llu, epoch %u)",
		               engine->config.model.classes - 1, step, state->epoch + 1);
	if (all->non_finite > 0)
		return mu_fail(err, MURAL_FAILED, NULL,
		               "the loss is not finite at step %llu (epoch %u); a lower learning rate, warm-up or "
		               "clipping may help",
		               step, state->epoch + 1);
	return MURAL_OK;
}

static mural_status gradient_norm(mural_engine *engine, double *norm, mural_error *err)
{
	double squares = 0;
	mu_sum_squares call = {
	        .type = engine->store.type,
	        .n = engine->store.elements,
	        .x = engine->store.gradients,
	        .sum = &squares,
	        .scratch = engine->norm_scratch,
	};
	MU_TRY(engine->ops->sum_squares(engine->context, &call, err));
	*norm = sqrt(squares);
	return MURAL_OK;
}

/* Clips, updates, and leaves zero gradients for the next step. */
static mural_status update(mural_engine *engine, double planned_over_actual, mural_step_facts *facts, mural_error *err)
{
	const mural_optimizer_config *optimizer = &engine->config.optimizer;
	MU_TRY(gradient_norm(engine, &facts->gradient_norm, err));
	facts->gradient_norm *= planned_over_actual;
	if (!isfinite(facts->gradient_norm)) {
		mural_status status =
		        mu_fail(err, MURAL_FAILED, NULL,
		                "the gradient is not finite at step %llu; a lower learning rate, warm-up or clipping "
		                "may help",
		                (unsigned long long)engine->steps_done + 1);
		return mu_comm_agree(engine->comm, status, err);
	}
	mu_update call = {
	        .type = engine->store.type,
	        .parameters = engine->store.parameters,
	        .m = engine->store.m,
	        .v = engine->store.v,
	        .gradients = engine->store.gradients,
	        .gradient_scale = planned_over_actual * mu_clip_factor(facts->gradient_norm, optimizer->clipping),
	        .number = engine->updates_applied + 1,
	};
	mu_schedule_point at = mu_schedule_at(&engine->schedule, optimizer, call.number);
	MU_TRY(mu_update_apply(&engine->segments, optimizer, at, &call, engine->ops, engine->context, err));
	engine->updates_applied++;
	facts->learning_rate = at.lr;
	return engine->device.table->zero(engine->device.queue, engine->store.gradients,
	                                  engine->store.elements * mu_dtype_bytes(engine->store.type), err);
}

mural_status mu_engine_gradients(mural_engine *engine, mu_step_state *state, mu_step_sums *all, mural_error *err)
{
	*state = (mu_step_state){0};
	uint64_t accumulation = engine->config.batch.accumulation;
	mural_status status = engine->leaving;
	for (uint64_t micro = 0; micro < accumulation && status == MURAL_OK; micro++)
		status = micro_step(engine, micro + 1 == accumulation, state, err);
	mu_reducer_times times;
	MU_TRY(mu_reducer_finish(&engine->reducer, &times, err));
	double from = mu_now();
	MU_TRY(mu_engine_sum(engine, status, &state->images, state->flags, all, err));
	state->exposed = times.exposed + mu_now() - from;
	state->hidden = times.hidden;
	status = check_sums(engine, state, all, err);
	return status == MURAL_OK ? MURAL_OK : mu_comm_agree(engine->comm, status, err);
}

static void fill_facts(const mural_engine *engine, const mu_step_state *state, const mu_loss_sums *images,
                       mural_step_facts *facts)
{
	facts->epoch = state->epoch;
	facts->step = engine->steps_done;
	facts->epoch_ends = state->step_in_epoch + 1 == engine->steps_per_epoch;
	facts->images = (uint64_t)images->count;
	facts->loss = images->loss / images->count;
	facts->top1 = images->top1 / images->count;
	facts->top5 = images->top5 / images->count;
	facts->data_seconds = state->data;
	facts->forward_seconds = state->forward;
	facts->backward_seconds = state->backward;
	facts->exposed_seconds = state->exposed;
	facts->hidden_seconds = state->hidden;
}

mural_status mural_engine_step(mural_engine *engine, mural_step_facts *facts, mural_error *err)
{
	*facts = (mural_step_facts){0};
	if (!engine->loader)
		return mu_fail(err, MURAL_USAGE, NULL, "mural_engine_step was called before mural_engine_train_begin");
	if (engine->steps_done >= engine->total_steps) {
		facts->finished = true;
		return MURAL_OK;
	}
	double from = mu_now();
	mu_step_state state;
	mu_step_sums all;
	MU_TRY(mu_engine_gradients(engine, &state, &all, err));
	double update_from = mu_now();
	MU_TRY(update(engine, (double)state.planned / all.images.count, facts, err));
	engine->steps_done++;
	fill_facts(engine, &state, &all.images, facts);
	facts->stop_asked = all.stop_asked > 0;
	double end = mu_now();
	facts->optimizer_seconds = end - update_from;
	facts->seconds = end - from;
	return MURAL_OK;
}

void mural_engine_leave(mural_engine *engine, mural_status status)
{
	if (engine->leaving == MURAL_OK)
		engine->leaving = status;
}

void mural_engine_ask_stop(mural_engine *engine)
{
	engine->stop_asked = true;
}
