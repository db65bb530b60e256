/* Every image of a set exactly once, over all ranks. SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/clock.h"
#include "engine/engine_internal.h"

/* What one evaluation is about. */
typedef struct evaluation {
	mural_engine *engine;
	const mural_data *data;
	int32_t *marks; /* [images of the set], or NULL: 1 + best class of this rank's images, 0 for the others */
	int32_t *best_B,
	        *seen_B; /* best classes of one micro-batch, on the device and on the host; NULL without marks */
} evaluation;

static bool takes_average(const mural_engine *engine)
{
	return engine->store.average && engine->config.optimizer.ema_evaluate;
}

/* A narrow copy of the average lies where gradients are during steps. */
static mural_status round_average(mural_engine *engine, mural_error *err)
{
	const mu_store *store = &engine->store;
	const mu_cast call = {.n = store->elements,
	                      .from_type = MU_F32,
	                      .to_type = store->type,
	                      .from = store->average,
	                      .to = store->gradients};
	return takes_average(engine) && store->master ? engine->ops->cast(engine->context, &call, err) : MURAL_OK;
}

/* The weights, or their average where that is asked for. */
static mu_store evaluated(const mural_engine *engine)
{
	mu_store store = engine->store;
	if (takes_average(engine))
		store.parameters = store.master ? store.gradients : store.average;
	return store;
}

static mural_status evaluate_batch(evaluation *e, const mu_batch *at, mural_error *err)
{
	mural_engine *engine = e->engine;
	mu_vit_input input = mu_engine_input(engine, e->data, at);
	const mu_store store = evaluated(engine);
	input.label_smoothing = 0;
	for (size_t u = 0; u < engine->vit.n_units; u++)
		MU_TRY(mu_vit_forward_unit(engine->evaluate_pass, u, mu_store_parameters(&store, u), &input, err));
	return mu_vit_loss(engine->evaluate_pass, &input, &engine->ledger.record->sums, e->best_B, err);
}

/* Notes what the images of a batch, which the loader still holds, are taken for. */
static mural_status mark(evaluation *e, const mu_batch *batch, mural_error *err)
{
	const mu_device *device = &e->engine->device;
	if (!e->marks)
		return MURAL_OK;
	if (e->seen_B != e->best_B)
		MU_TRY(device->table->copy(device->queue, e->seen_B, e->best_B, batch->count * sizeof *e->seen_B, err));
	MU_TRY(device->table->wait(device->queue, err));
	for (size_t b = 0; b < batch->count; b++)
		e->marks[batch->index_B[b]] += e->seen_B[b] + 1;
	return MURAL_OK;
}

/* One pass of the loader over its set. */
static mural_status evaluate_epoch(evaluation *e, mu_loader *loader, mural_error *err)
{
	mural_engine *engine = e->engine;
	mu_loader_settings settings = mu_engine_loader_settings(engine, e->data, false);
	uint64_t steps = mu_sampler_steps(&settings.sampler);
	mural_status status = MURAL_OK;
	for (uint64_t step = 0; step < steps && status == MURAL_OK; step++) {
		mu_batch *batch;
		const mu_batch *at;
		double waited;
		mu_pulse_mark(&engine->pulse, "evaluation of micro-batch", step);
		MU_TRY_OUT(mu_loader_next(loader, &batch, &waited, err));
		const bool empty = batch->count == 0;
		status = mu_feed_batch(&engine->evaluate_feed, loader, batch, &at, err);
		if (status == MURAL_OK && !empty)
			status = evaluate_batch(e, at, err);
		if (status == MURAL_OK && !empty)
			status = mark(e, batch, err);
		mu_feed_used(&engine->evaluate_feed);
	}
out:
	if (status == MURAL_OK)
		status = engine->device.table->wait(engine->device.queue, err);
	mu_feed_give_back(&engine->evaluate_feed);
	return status;
}

static mural_status keep_loader(mural_engine *engine, mu_evaluated *evaluated, mural_error *err)
{
	if (!evaluated->data || evaluated->loader)
		return MURAL_OK;
	MU_TRY(mu_engine_check_resize(engine, evaluated->data, err));
	mu_loader_settings settings = mu_engine_loader_settings(engine, evaluated->data, false);
	settings.epochs = UINT32_MAX;
	settings.pulse = &engine->pulse;
	return mu_loader_create(&evaluated->loader, &settings, err);
}

mural_status mu_engine_keep_loaders(mural_engine *engine, mural_error *err)
{
	for (size_t i = 0; i < MU_EVALUATED; i++)
		MU_TRY(keep_loader(engine, &engine->evaluated[i], err));
	return MURAL_OK;
}

static mural_status evaluate_share(evaluation *e, mural_error *err)
{
	mu_feed_leave_stage(&e->engine->train_feed);
	MU_TRY(mu_engine_check_resize(e->engine, e->data, err));
	MU_TRY(mu_ledger_clear(&e->engine->ledger, err));
	MU_TRY(round_average(e->engine, err));
	for (size_t i = 0; i < MU_EVALUATED; i++) {
		mu_evaluated *evaluated = &e->engine->evaluated[i];
		if (evaluated->data != e->data)
			continue;
		MU_TRY(keep_loader(e->engine, evaluated, err));
		return evaluate_epoch(e, evaluated->loader, err);
	}
	mu_loader_settings settings = mu_engine_loader_settings(e->engine, e->data, false);
	settings.pulse = &e->engine->pulse;
	mu_loader *loader;
	MU_TRY(mu_loader_create(&loader, &settings, err));
	mural_status status = evaluate_epoch(e, loader, err);
	mu_loader_free(loader);
	return status;
}

/* All ranks: every image was seen by one rank, once. status: how it went so far on this rank. */
static mural_status evaluate(evaluation *e, mural_status status, mural_evaluation *facts, mural_error *err)
{
	mural_engine *engine = e->engine;
	const mural_data_facts *set = mural_data_get_facts(e->data);
	double from = mu_now();
	if (status == MURAL_OK)
		status = evaluate_share(e, err);
	mu_pulse_rest(&engine->pulse);
	MU_TRY(mu_ledger_sum(&engine->ledger, engine->comm, status, false, err));
	MU_TRY(mu_engine_read(engine, status, err));
	const mu_step_sums *all = &engine->ledger.seen->sums;
	if (all->label_range > 0) {
		status = mu_fail(err, MURAL_DATA, set->path, "a label is outside 0 .. %zu, the model's classes",
		                 engine->config.model.classes - 1);
		return mu_comm_agree(engine->comm, status, err); /* all ranks know; one of them speaks */
	}
	*facts = (mural_evaluation){
	        .images = (uint64_t)all->count,
	        .loss = all->loss / all->count,
	        .top1 = all->top1 / all->count,
	        .top5 = all->top5 / all->count,
	        .seconds = mu_now() - from,
	};
	return facts->images == set->images ? MURAL_OK : mu_bug(err, "an evaluation that did not see every image once");
}

mural_status mural_engine_evaluate(mural_engine *engine, const mural_data *data, mural_evaluation *facts,
                                   mural_error *err)
{
	evaluation e = {.engine = engine, .data = data};
	return evaluate(&e, MURAL_OK, facts, err);
}

/* All ranks: everybody's marks become classes. */
static mural_status gather(evaluation *e, mural_error *err)
{
	uint64_t images = mural_data_get_facts(e->data)->images;
	MU_TRY(mu_comm_all_reduce(e->engine->comm, e->marks, images, MU_I32, MU_SUM, err));
	for (uint64_t i = 0; i < images; i++)
		if (--e->marks[i] < 0)
			return mu_bug(err, "an evaluation that left out an image");
	return MURAL_OK;
}

mural_status mural_engine_classify(mural_engine *engine, const mural_data *data, int32_t *best, mural_evaluation *facts,
                                   mural_error *err)
{
	const mu_device *device = &engine->device;
	size_t bytes = engine->sharing.capacity * sizeof *best;
	void *there = NULL, *here = NULL;
	mural_status status = device->table->allocate(device->handle, MU_MEMORY_DEVICE, bytes, &there, err);
	if (status == MURAL_OK && !engine->shared)
		status = device->table->allocate(device->handle, MU_MEMORY_PINNED, bytes, &here, err);
	evaluation e = {.engine = engine, .data = data, .marks = best, .best_B = there, .seen_B = here ? here : there};
	memset(best, 0, mural_data_get_facts(data)->images * sizeof *best);
	status = evaluate(&e, status, facts, err);
	if (status == MURAL_OK)
		status = gather(&e, err);
	device->table->release(device->handle, MU_MEMORY_PINNED, here, bytes);
	device->table->release(device->handle, MU_MEMORY_DEVICE, there, bytes);
	return status;
}
