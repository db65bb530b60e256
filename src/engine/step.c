/* One optimizer step: micro-batches forward and backward, one reduction, one update.
 *
 * Sums, not means: a rank's loss is the sum over its images times 1 / planned count of the step; the actual count
 * travels in the same reduction and the update multiplies by planned / actual. So unequal shares, short last batches
 * and ranks without images all give the gradient of the mean over the images that were really there.
 *
 * A rank that fails inside the step computes nothing more but still takes part in every collective, with its failure
 * counted in the sums; so all ranks leave at the same step. What a step decides (clipping, learning rate, whether it is
 * left out) is decided on the device; the host reads the record once, at the end.
 * SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "engine/engine_internal.h"
#include "optim/ema.h"

mu_vit_input mu_engine_input(const mural_engine *engine, const mural_data *data, const mu_batch *batch)
{
	size_t factor = mu_engine_resize_factor(engine, data);
	return (mu_vit_input){
	        .micro = batch->counts,
	        .pixels = batch->pixels,
	        .image_channels = factor > 1 ? mural_data_get_facts(data)->channels : 0,
	        .factor = factor,
	        .cut_B = batch->cut_B,
	        .mean_C = data->mean,
	        .std_C = data->std,
	        .stream_B = batch->stream_B,
	        .labels = batch->labels,
	        .loss_scale = &engine->ledger.record->carried.loss_scale,
	        .label_smoothing = engine->config.run.label_smoothing,
	};
}

/* A unit's span, while somebody watches. A card works on by itself, so it is waited for: a recorded step is no fast one there. */
static double mark(mural_engine *engine, mu_span_kind kind, size_t unit, double begin)
{
	if (engine->trace && engine->trace->recording && engine->device.table != &mu_device_host)
		engine->device.table->wait(engine->device.queue, NULL); /* what failed fails the next call */
	return mu_trace_span(engine->trace, kind, unit, begin);
}

static mural_status forward(mural_engine *engine, const mu_vit_input *input, mu_step_state *state, mural_error *err)
{
	double from = mu_now(), span = mu_trace_begin(engine->trace);
	for (size_t u = 0; u < engine->vit.n_units; u++) {
		mu_pulse_mark(&engine->pulse, "forward of unit", u);
		MU_TRY(mu_vit_forward_unit(engine->train_pass, u, mu_store_parameters(&engine->store, u), input, err));
		mu_pace_forward(&engine->pace, u);
		span = mark(engine, MU_SPAN_FORWARD, u, span);
	}
	MU_TRY(mu_vit_loss(engine->train_pass, input, &engine->ledger.record->sums, NULL, err));
	state->forward += mu_now() - from;
	return MURAL_OK;
}

/* empty: this rank has no images, and only tells the reducer. */
static mural_status backward(mural_engine *engine, const mu_vit_input *input, bool empty, bool last,
                             mu_step_state *state, mural_error *err)
{
	double from = mu_now(), span = mu_trace_begin(engine->trace);
	for (size_t u = engine->vit.n_units; u-- > engine->first_trained;) {
		mu_pulse_mark(&engine->pulse, "backward of unit", u);
		if (!empty) {
			MU_TRY(mu_vit_backward_unit(engine->train_pass, u, mu_store_parameters(&engine->store, u),
			                            mu_store_gradients(&engine->store, u), input, err));
			MU_TRY(mu_engine_accumulate(engine, u, err));
		}
		mu_pace_backward(&engine->pace, u);
		span = mark(engine, MU_SPAN_BACKWARD, u, span);
		if (last)
			MU_TRY(mu_reducer_ready(&engine->reducer, u, err));
	}
	state->backward += mu_now() - from;
	return MURAL_OK;
}

/* Forward and backward of one micro-batch, as work that can be replayed. */
typedef struct micro_work {
	mural_engine *engine;
	const mu_vit_input *input;
	mu_step_state *state;
	bool empty, last;
} micro_work;

static mural_status forward_and_backward(void *argument, mural_error *err)
{
	const micro_work *work = argument;
	if (!work->empty)
		MU_TRY(forward(work->engine, work->input, work->state, err));
	return backward(work->engine, work->input, work->empty, work->last, work->state, err);
}

/* Whether what is queued now is what every step queues: nobody looks at single units, no ranks meet in between. */
static bool is_every_step(const mural_engine *engine)
{
	return engine->can_replay && engine->ranks->size == 1 && !(engine->trace && engine->trace->recording);
}

static mural_status compute(mural_engine *engine, micro_work *work, mural_error *err)
{
	return mu_replay_run(&engine->replayed_micro, &engine->device, is_every_step(engine) && !work->empty,
	                     forward_and_backward, work, err);
}

static mural_status micro_step(mural_engine *engine, mu_step_state *state, mural_error *err)
{
	mu_batch *batch;
	const mu_batch *at;
	double waited;
	double span = mu_trace_begin(engine->trace);
	mu_pulse_mark(&engine->pulse, "reading images for the micro-batch", state->micro++);
	MU_TRY(mu_feed_next(&engine->train_feed, engine->loader, &batch, &waited, err));
	if (!batch)
		return mu_bug(err, "the loader ended before the run did");
	mu_trace_span_of(engine->trace, MU_SPAN_DATA, batch->count, span);
	mu_pace_begin(&engine->pace, batch->count);
	state->data += waited;
	state->images += batch->count;
	state->planned = batch->planned;
	state->epoch = batch->epoch;
	state->step_in_epoch = batch->step;
	state->last = batch->micro + 1 == batch->micros;
	const bool empty = batch->count == 0;
	MU_TRY(mu_feed_batch(&engine->train_feed, engine->loader, batch, &at, err));
	state->counts = at->counts;
	state->empty = empty;
	mu_vit_input input = mu_engine_input(engine, engine->train, at);
	/* Where shares follow speed, a smaller one must take less time; elsewhere all micro-batches have the same shape. */
	if (mu_sharing_moves(&engine->sharing) && !empty)
		mu_vit_pass_images(engine->train_pass, batch->count);
	MU_TRY(compute(engine, &(micro_work){engine, &input, state, empty, state->last}, err));
	mu_pace_end(&engine->pace);
	mu_feed_used(&engine->train_feed);
	if (!state->last)
		mu_feed_ahead(&engine->train_feed, engine->loader, &state->data);
	return MURAL_OK;
}

mural_status mu_engine_read(mural_engine *engine, mural_status status, mural_error *err)
{
	if (status == MURAL_OK)
		status = mu_ledger_read(&engine->ledger, err);
	if (status != MURAL_OK || engine->ledger.seen->sums.failed > 0)
		return mu_comm_agree(engine->comm, status, err);
	return MURAL_OK;
}

/* Zero gradients are left to the step that needs them, so that those of the last one can be looked at. */
static mural_status begin_step(mural_engine *engine, mural_error *err)
{
	const mu_store *store = &engine->store;
	MU_TRY(engine->leaving);
	MU_TRY(mu_ledger_refill(&engine->ledger, &engine->schedule, &engine->config.optimizer, err));
	MU_TRY(mu_ledger_clear(&engine->ledger, err));
	return engine->device.table->zero(engine->device.queue, store->gradients,
	                                  store->elements * mu_dtype_bytes(store->settings.gradient_type), err);
}

mural_status mu_engine_gradients(mural_engine *engine, mu_step_state *state, mural_error *err)
{
	const double begun = mu_now();
	*state = (mu_step_state){0};
	atomic_store(&engine->pulse.step, engine->steps_done + 1);
	mural_status status = begin_step(engine, err);
	while (status == MURAL_OK && !state->last)
		status = micro_step(engine, state, err);
	if (status == MURAL_OK)
		status = mu_pace_end_step(&engine->pace, err);
	state->own = mu_now() - begun;
	double span = mu_trace_begin(engine->trace);
	mu_reducer_times times;
	MU_TRY(mu_reducer_finish(&engine->reducer, &status, &times, err));
	state->own += times.arriving; /* a card works on by itself */
	double from = mu_now();
	const bool out = mu_sharing_is_out(&engine->sharing);
	if (!out) /* whoever reduces sums */
		MU_TRY(mu_ledger_sum(&engine->ledger, engine->reducer.comm, status, engine->stop_asked, err));
	mu_trace_span(engine->trace, MU_SPAN_WAIT, 0, span);
	state->exposed = times.exposed + mu_now() - from;
	state->hidden = times.hidden;
	if (status == MURAL_OK)
		return MURAL_OK;
	if (!engine->sharing.any_out)
		return mu_comm_agree(engine->comm, status, err);
	if (!out)
		return mu_engine_tell(engine, status, err);
	mu_news_fail(&engine->news, status, err);
	return MURAL_OK;
}

/* What the step came to, on all ranks. status: of this rank's update. */
static mural_status read_step(mural_engine *engine, mural_status status, mural_error *err)
{
	if (!engine->sharing.any_out)
		return mu_engine_read(engine, status, err);
	if (status == MURAL_OK && !mu_sharing_is_out(&engine->sharing))
		status = mu_ledger_read(&engine->ledger, err);
	return mu_engine_tell(engine, status, err);
}

static mural_status add_squares(mural_engine *engine, size_t offset, size_t elements, mural_error *err)
{
	const mu_store *store = &engine->store;
	const mu_dtype type = store->settings.gradient_type;
	const mu_sum_squares call = {.type = type,
	                             .n = elements,
	                             .x = (const char *)store->gradients + offset * mu_dtype_bytes(type),
	                             .sum = &engine->ledger.record->squares,
	                             .scratch = engine->norm_scratch};
	return engine->ops->sum_squares(engine->context, &call, err);
}

/* Of what is trained: frozen tensors of units that go backward have gradients too, which nobody follows. */
static mural_status gradient_squares(mural_engine *engine, mural_error *err)
{
	if (!engine->any_frozen)
		return add_squares(engine, 0, engine->store.elements, err);
	for (size_t i = 0; i < engine->segments.count; i++) {
		const mu_segment *segment = &engine->segments.list[i];
		MU_TRY(add_squares(engine, segment->offset, segment->elements, err));
	}
	return MURAL_OK;
}

static mural_status average(mural_engine *engine, mural_error *err)
{
	const mu_store *store = &engine->store;
	const mu_ema call = {.type = store->type,
	                     .n = store->elements,
	                     .at = &engine->ledger.record->decision,
	                     .parameter = store->parameters,
	                     .master = store->master,
	                     .average = store->average};
	return store->average ? mu_ema_apply(&call, engine->ops, engine->context, err) : MURAL_OK;
}

/* From the summed gradient to new weights, all on the device. */
typedef struct update_work {
	mural_engine *engine;
	const mu_step_state *state;
} update_work;

static mural_status apply_update(void *argument, mural_error *err)
{
	const update_work *work = argument;
	mural_engine *engine = work->engine;
	const mu_step_state *state = work->state;
	const mural_optimizer_config *optimizer = &engine->config.optimizer;
	mu_step_record *record = engine->ledger.record;
	const mu_settle settle = {.clipping = optimizer->clipping,
	                          .bias_correction = optimizer->bias_correction,
	                          .ema_decay = optimizer->ema_decay,
	                          .ema_warm_up = optimizer->ema_warm_up,
	                          .scaling = mu_engine_loss_scaling(&engine->config),
	                          .micro = state->counts,
	                          .rates = engine->ledger.rates,
	                          .n_rates = MU_LEDGER_RATES,
	                          .record = record};
	const mu_update call = mu_engine_update(engine);
	MU_TRY(gradient_squares(engine, err));
	MU_TRY(engine->ops->settle(engine->context, &settle, err));
	MU_TRY(mu_update_apply(&engine->segments, optimizer, &call, engine->ops, engine->context, err));
	if (call.type != engine->store.type)
		MU_TRY(mu_engine_round_masters(engine, err));
	return average(engine, err);
}

static mural_status update(mural_engine *engine, const mu_step_state *state, mural_error *err)
{
	return mu_replay_run(&engine->replayed_update, &engine->device, is_every_step(engine), apply_update,
	                     &(update_work){engine, state}, err);
}

/* An overflow that is left out, as mixed precision has them now and then. In fp32 nothing gets better by itself, and a loss
 * that is not finite is no matter of scale outside of fp16. */
static bool may_skip(const mural_engine *engine)
{
	const mural_precision precision = engine->config.engine.precision;
	return precision == MURAL_FP16 || (precision == MURAL_BF16 && engine->config.engine.skip_overflow &&
	                                   engine->ledger.seen->sums.non_finite == 0);
}

/* Every rank finds the same in the record: they fail together, with the same words, and one of them speaks. */
static mural_status not_finite(mural_engine *engine, const mu_step_state *state, mural_error *err)
{
	const mu_step_record seen = *engine->ledger.seen;
	const unsigned long long step = engine->steps_done + 1;
	char fault[MU_FAULT_TEXT];
	MU_TRY(mu_engine_find_fault(engine, state, fault, err));
	if (seen.decision.exhausted != 0)
		return mu_fail(
		        err, MURAL_FAILED, NULL,
		        "the gradient overflows fp16 at step %llu (epoch %u) though the loss scale is at its floor of "
		        "%g (fp16.min_loss_scale)%s; a lower learning rate, clipping or bf16 may help",
		        step, state->epoch + 1, engine->config.engine.min_loss_scale, fault);
	if (engine->skipped_in_a_row >= MU_MOST_SKIPPED)
		return mu_fail(err, MURAL_FAILED, NULL,
		               "%u steps in a row were skipped because the gradient is not finite, up to step %llu "
		               "(epoch %u)%s",
		               engine->skipped_in_a_row, step, state->epoch + 1, fault);
	return mu_fail(
	        err, MURAL_FAILED, NULL,
	        "the %s is not finite at step %llu (epoch %u)%s; a lower learning rate, warm-up or clipping may help",
	        seen.sums.non_finite > 0 ? "loss" : "gradient", step, state->epoch + 1, fault);
}

static mural_status check_record(mural_engine *engine, const mu_step_state *state, mural_error *err)
{
	const mu_step_record *seen = engine->ledger.seen;
	if (seen->sums.label_range > 0)
		return mu_fail(
		        err, MURAL_DATA, NULL, "a label is outside 0 .. %zu, the model's classes (step %llu, epoch %u)",
		        engine->config.model.classes - 1, (unsigned long long)engine->steps_done + 1, state->epoch + 1);
	engine->skipped_in_a_row = seen->decision.skip != 0 ? engine->skipped_in_a_row + 1 : 0;
	const bool given_up = seen->decision.exhausted != 0 || engine->skipped_in_a_row >= MU_MOST_SKIPPED;
	if (given_up || (seen->decision.skip != 0 && !may_skip(engine)))
		return not_finite(engine, state, err);
	return MURAL_OK;
}

static void fill_facts(const mural_engine *engine, const mu_step_state *state, mural_step_facts *facts)
{
	const mu_step_record *seen = engine->ledger.seen;
	const mu_step_sums *sums = &seen->sums;
	facts->epoch = state->epoch;
	facts->step = engine->steps_done;
	facts->epoch_ends = state->step_in_epoch + 1 == engine->steps_per_epoch;
	facts->stop_asked = sums->stop_asked > 0;
	facts->images = (uint64_t)sums->count;
	facts->loss = sums->loss / sums->count;
	facts->top1 = sums->top1 / sums->count;
	facts->top5 = sums->top5 / sums->count;
	facts->learning_rate = seen->decision.lr;
	facts->gradient_norm = seen->decision.norm;
	facts->loss_scale = seen->decision.loss_scale;
	facts->skipped = seen->decision.skip != 0;
	facts->applied_steps = (uint64_t)seen->carried.applied;
	facts->skipped_steps = (uint64_t)seen->carried.skipped;
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
	mu_trace_step(engine->trace, engine->steps_done + 1);
	double from = mu_now();
	mu_step_state state;
	mu_stall_step_begins(&engine->stall);
	MU_TRY(mu_engine_gradients(engine, &state, err));
	double update_from = mu_now();
	mu_pulse_mark(&engine->pulse, "optimizer", 0);
	mural_status status = mu_sharing_is_out(&engine->sharing) ? MURAL_OK : update(engine, &state, err);
	if (status == MURAL_OK)
		mu_feed_ahead(&engine->train_feed, engine->loader, &state.data); /* while the device works */
	MU_TRY(read_step(engine, status, err));
	mu_feed_give_back(&engine->train_feed);
	status = check_record(engine, &state, err);
	if (status != MURAL_OK)
		return mu_comm_agree(engine->comm, status, err);
	engine->steps_done++;
	MU_TRY(mu_engine_share(engine, &state, err));
	mu_pulse_rest(&engine->pulse);
	mu_stall_step_ends(&engine->stall);
	fill_facts(engine, &state, facts);
	double end = mu_now();
	mu_trace_add(engine->trace, MU_SPAN_OPTIMIZER, 0, 0, update_from, end);
	mu_trace_add(engine->trace, MU_SPAN_STEP, 0, 0, from, end);
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
