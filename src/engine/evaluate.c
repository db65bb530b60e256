/* Every image of a set exactly once, over all ranks. SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "engine/engine_internal.h"

static mural_status evaluate_batch(mural_engine *engine, const mural_data *data, const mu_batch *at, mural_error *err)
{
	mu_vit_input input = mu_engine_input(engine, data, at);
	input.label_smoothing = 0;
	for (size_t u = 0; u < engine->vit.n_units; u++)
		MU_TRY(mu_vit_forward_unit(engine->evaluate_pass, u, mu_store_parameters(&engine->store, u), &input,
		                           err));
	return mu_vit_loss(engine->evaluate_pass, &input, &engine->ledger.record->sums, NULL, err);
}

/* One pass of the loader over its set. */
static mural_status evaluate_epoch(mural_engine *engine, const mural_data *data, mu_loader *loader, mural_error *err)
{
	mu_loader_settings settings = mu_engine_loader_settings(engine, data, false);
	uint64_t steps = mu_sampler_steps(&settings.sampler);
	mural_status status = MURAL_OK;
	for (uint64_t step = 0; step < steps && status == MURAL_OK; step++) {
		mu_batch *batch;
		const mu_batch *at;
		double waited;
		MU_TRY_OUT(mu_loader_next(loader, &batch, &waited, err));
		const bool empty = batch->count == 0;
		status = mu_feed_batch(&engine->evaluate_feed, loader, batch, &at, err);
		if (status == MURAL_OK && !empty)
			status = evaluate_batch(engine, data, at, err);
		mu_feed_used(&engine->evaluate_feed);
	}
out:
	if (status == MURAL_OK)
		status = engine->device.table->wait(engine->device.queue, err);
	mu_feed_give_back(&engine->evaluate_feed);
	return status;
}

mural_status mu_engine_keep_test_loader(mural_engine *engine, mural_error *err)
{
	if (!engine->test || engine->test_loader)
		return MURAL_OK;
	mu_loader_settings settings = mu_engine_loader_settings(engine, engine->test, false);
	settings.epochs = UINT32_MAX;
	return mu_loader_create(&engine->test_loader, &settings, err);
}

static mural_status evaluate_share(mural_engine *engine, const mural_data *data, mural_error *err)
{
	MU_TRY(mu_ledger_clear(&engine->ledger, err));
	if (data == engine->test) {
		MU_TRY(mu_engine_keep_test_loader(engine, err));
		return evaluate_epoch(engine, data, engine->test_loader, err);
	}
	mu_loader_settings settings = mu_engine_loader_settings(engine, data, false);
	mu_loader *loader;
	MU_TRY(mu_loader_create(&loader, &settings, err));
	mural_status status = evaluate_epoch(engine, data, loader, err);
	mu_loader_free(loader);
	return status;
}

mural_status mural_engine_evaluate(mural_engine *engine, const mural_data *data, mural_evaluation *facts,
                                   mural_error *err)
{
	double from = mu_now();
	mural_status status = evaluate_share(engine, data, err);
	MU_TRY(mu_ledger_sum(&engine->ledger, engine->comm, status, false, err));
	MU_TRY(mu_engine_read(engine, status, err));
	const mu_step_sums *all = &engine->ledger.seen->sums;
	if (all->label_range > 0) {
		status = mu_fail(err, MURAL_DATA, mural_data_get_facts(data)->path,
		                 "a label is outside 0 .. %zu, the model's classes", engine->config.model.classes - 1);
		return mu_comm_agree(engine->comm, status, err); /* all ranks know; one of them speaks */
	}
	*facts = (mural_evaluation){
	        .images = (uint64_t)all->count,
	        .loss = all->loss / all->count,
	        .top1 = all->top1 / all->count,
	        .top5 = all->top5 / all->count,
	        .seconds = mu_now() - from,
	};
	return MURAL_OK;
}
