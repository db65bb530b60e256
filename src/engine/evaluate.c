/* Every image of a set exactly once, over all ranks. SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "engine/engine_internal.h"

static mural_status evaluate_batch(mural_engine *engine, const mural_data *data, const mu_batch *batch,
                                   mu_loss_sums *sums, uint32_t *flags, mural_error *err)
{
	if (batch->count == 0)
		return MURAL_OK;
	mu_vit_input input = mu_engine_input(engine, data, batch);
	input.label_smoothing = 0;
	for (size_t u = 0; u < engine->vit.n_units; u++)
		MU_TRY(mu_vit_forward_unit(engine->evaluate_pass, u, mu_store_parameters(&engine->store, u), &input,
		                           err));
	return mu_vit_loss(engine->evaluate_pass, &input, sums, flags, NULL, err);
}

/* One pass of the loader over its set. */
static mural_status evaluate_epoch(mural_engine *engine, const mural_data *data, mu_loader *loader, mu_loss_sums *sums,
                                   uint32_t *flags, mural_error *err)
{
	mu_loader_settings settings = mu_engine_loader_settings(engine, data, false);
	uint64_t steps = mu_sampler_steps(&settings.sampler);
	for (uint64_t step = 0; step < steps; step++) {
		mu_batch *batch;
		double waited;
		MU_TRY(mu_loader_next(loader, &batch, &waited, err));
		mural_status status = evaluate_batch(engine, data, batch, sums, flags, err);
		mu_loader_give_back(loader, batch);
		MU_TRY(status);
	}
	return MURAL_OK;
}

mural_status mu_engine_keep_test_loader(mural_engine *engine, mural_error *err)
{
	if (!engine->test || engine->test_loader)
		return MURAL_OK;
	mu_loader_settings settings = mu_engine_loader_settings(engine, engine->test, false);
	settings.epochs = UINT32_MAX;
	return mu_loader_create(&engine->test_loader, &settings, err);
}

static mural_status evaluate_share(mural_engine *engine, const mural_data *data, mu_loss_sums *sums, uint32_t *flags,
                                   mural_error *err)
{
	if (data == engine->test) {
		MU_TRY(mu_engine_keep_test_loader(engine, err));
		return evaluate_epoch(engine, data, engine->test_loader, sums, flags, err);
	}
	mu_loader_settings settings = mu_engine_loader_settings(engine, data, false);
	mu_loader *loader;
	MU_TRY(mu_loader_create(&loader, &settings, err));
	mural_status status = evaluate_epoch(engine, data, loader, sums, flags, err);
	mu_loader_free(loader);
	return status;
}

mural_status mural_engine_evaluate(mural_engine *engine, const mural_data *data, mural_evaluation *facts,
                                   mural_error *err)
{
	double from = mu_now();
	mu_loss_sums mine = {0};
	uint32_t flags = 0;
	mural_status status = evaluate_share(engine, data, &mine, &flags, err);
	mu_step_sums all;
	MU_TRY(mu_engine_sum(engine, status, &mine, flags, &all, err));
	if (all.label_range > 0) {
		status = mu_fail(err, MURAL_DATA, mural_data_get_facts(data)->path,
		                 "a label is outside 0 .. %zu, the model's classes", engine->config.model.classes - 1);
		return mu_comm_agree(engine->comm, status, err); /* all ranks know; one of them speaks */
	}
	*facts = (mural_evaluation){
	        .images = (uint64_t)all.images.count,
	        .loss = all.images.loss / all.images.count,
	        .top1 = all.images.top1 / all.images.count,
	        .top5 = all.images.top5 / all.images.count,
	        .seconds = mu_now() - from,
	};
	return MURAL_OK;
}
