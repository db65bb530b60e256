/* Making an engine: model, device, operations, memory, first weights. SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "engine/checkpoint.h"
#include "engine/devices.h"
#include "engine/engine_internal.h"
#include "engine/mirror.h"
#include "engine/run_length.h"
#include "engine/weights.h"

mural_status mural_config_share(mural_config *config, mural_comm *comm, mural_status status, mural_error *err)
{
	MU_TRY(mu_comm_agree(comm, status, err));
	return mu_comm_broadcast(comm, config, sizeof *config, 0, err);
}

/* All ranks. Nobody takes memory of a card before everybody who shares it has seen what is free. */
static mural_status open_device(mural_engine *engine, mural_error *err)
{
	mural_status status = engine->ops ? MURAL_OK : mu_engine_choose_device(engine, err);
	if (status == MURAL_OK)
		status = mu_engine_open_device(engine, err);
	return mu_comm_agree(engine->comm, status, err);
}

static mural_status create_parts(mural_engine *engine, const mural_engine_settings *settings, mural_error *err)
{
	const mural_config *config = &engine->config;
	MU_TRY(mural_model_config_check(&config->model, err));
	MU_TRY(mu_vit_init(&engine->vit, &config->model, err));
	MU_TRY(mu_engine_check_types(engine, err));
	MU_TRY(mu_engine_apply_rules(engine, err));
	MU_TRY(mu_sharing_init(&engine->sharing, config, engine->ranks, engine->training, err));
	MU_TRY(mu_engine_allocate(engine, err));
	if (!engine->training)
		return MURAL_OK;
	MU_TRY(mu_pace_init(&engine->pace, settings->device, &engine->vit, err));
	const mu_reducer_settings buckets = {.first_unit = engine->first_trained,
	                                     .bucket_elements = config->engine.reduce_bucket,
	                                     .overlap = config->engine.overlap_comm,
	                                     .wire_type = engine->store.settings.wire_type,
	                                     .wire = engine->store.wire,
	                                     .ops = engine->ops,
	                                     .context = engine->context,
	                                     .device = engine->staging ? &engine->device : NULL,
	                                     .host = engine->staging};
	return mu_reducer_init(&engine->reducer, &engine->store, engine->comm, &buckets, err);
}

static mural_status initialise(mural_engine *engine, const mu_store *store, mural_error *err)
{
	for (size_t u = 0; u < engine->vit.n_units; u++)
		MU_TRY(mu_vit_initialise(&engine->vit, u, engine->config.run.seed, store->type,
		                         mu_store_parameters(store, u), err));
	return MURAL_OK;
}

/* What follows from new weights: their narrow copy; and the average begins with them. */
static mural_status follow_weights(mural_engine *engine, mural_error *err)
{
	const mu_store *store = &engine->store;
	MU_TRY(mu_engine_round_masters(engine, err));
	if (!store->average)
		return MURAL_OK;
	return engine->device.table->copy(engine->device.queue, store->average, mu_store_weights(store),
	                                  store->elements * sizeof(float), err);
}

/* Weights of a file, and how they may differ from the model. */
typedef struct source {
	const char *path;
	mu_weights_wish wish;
	char *notes;
} source;

static mural_status load_from(mural_engine *engine, const mu_store *store, const source *from, mural_error *err)
{
	char path[MU_WEIGHTS_PATH];
	MU_TRY(mu_weights_locate(path, from->path, err));
	return mu_weights_load(&engine->vit, store, path, from->wish, from->notes, err);
}

/* All ranks: rank 0's weights, made here or from a file, to everybody. from: NULL for first weights. */
static mural_status share_weights(mural_engine *engine, const source *from, mural_error *err)
{
	mu_mirror mirror;
	bool keeps_head = from && from->wish.new_head;
	mural_status status = mu_mirror_open(&mirror, &engine->store, &engine->device, engine->shared,
	                                     MU_MIRROR_WEIGHTS, keeps_head, err);
	mu_store weights = mu_store_view(&mirror.store, mu_store_weights(&mirror.store));
	if (status == MURAL_OK && engine->ranks->rank == 0)
		status = from ? load_from(engine, &weights, from, err) : initialise(engine, &weights, err);
	MU_TRY_OUT(mu_comm_agree(engine->comm, status, err));
	MU_TRY_OUT(mu_comm_broadcast(engine->comm, weights.parameters, weights.elements * sizeof(float), 0, err));
	status = mu_mirror_write(&mirror, err);
	if (status == MURAL_OK)
		status = follow_weights(engine, err);
	status = mu_comm_agree(engine->comm, status, err);
out:
	mu_mirror_close(&mirror);
	return status;
}

/* Zero moments: what the first update starts from. Zero gradients too, so that no page of them is new to a step. */
static mural_status clear_state(mural_engine *engine, mural_error *err)
{
	const mu_store *store = &engine->store;
	const struct {
		void *span;
		size_t bytes;
	} spans[] = {{store->gradients, mu_dtype_bytes(store->settings.gradient_type)},
	             {store->partial, mu_dtype_bytes(store->type)},
	             {store->m, sizeof(float)},
	             {store->v, sizeof(float)},
	             {store->direction, sizeof(float)}};
	for (size_t i = 0; i < sizeof spans / sizeof *spans; i++)
		if (spans[i].span)
			MU_TRY(engine->device.table->zero(engine->device.queue, spans[i].span,
			                                  store->elements * spans[i].bytes, err));
	return MURAL_OK;
}

static mural_status start_ledger(mural_engine *engine, mural_error *err)
{
	const mu_carried carried = mu_engine_first_carried(&engine->config);
	return mu_ledger_start(&engine->ledger, &carried, err);
}

static mural_status first_state(mural_engine *engine, mural_error *err)
{
	mural_status status = start_ledger(engine, err);
	if (status == MURAL_OK && engine->training)
		status = clear_state(engine, err);
	MU_TRY(mu_comm_agree(engine->comm, status, err));
	return share_weights(engine, NULL, err);
}

/* From here on the other ranks can tell whether this one lives. */
static void begin_watch(mural_engine *engine)
{
	mu_device_facts facts = {0};
	mu_comm_watch watch = {.seconds = engine->config.run.hang_seconds,
	                       .pulse = &engine->pulse,
	                       .stalled = mu_stall_hear,
	                       .argument = &engine->stall};
	if (engine->device.table->facts(engine->device.handle, &facts, NULL) == MURAL_OK)
		snprintf(engine->pulse.device, sizeof engine->pulse.device, "%s", facts.name);
	engine->comm->table->watch(engine->comm, &watch);
}

static mural_engine *make(const mural_engine_settings *settings, const mu_ops *ops)
{
	mural_engine *engine = calloc(1, sizeof *engine);
	if (!engine)
		return NULL;
	engine->config = *settings->config;
	engine->in_order = engine->config.data;
	engine->in_order.shuffle = false;
	mu_stall_init(&engine->stall, engine->config.run.hang_seconds);
	engine->report = settings->report;
	engine->comm = settings->comm;
	engine->ranks = settings->comm->table->facts(settings->comm);
	engine->training = settings->training;
	engine->ops = ops;
	engine->card = MU_NO_CARD;
	engine->train = settings->train;
	engine->evaluated[MU_EVALUATED_TEST].data = settings->test;
	engine->evaluated[MU_EVALUATED_VALIDATION].data = settings->validation;
	return engine;
}

mural_status mural_engine_create(mural_engine **created, const mural_engine_settings *settings, mural_error *err)
{
	return mu_engine_create_on(created, settings, NULL, err);
}

mural_status mu_engine_create_on(mural_engine **created, const mural_engine_settings *settings, const mu_ops *ops,
                                 mural_error *err)
{
	*created = NULL;
	mural_engine *engine = make(settings, ops);
	mural_status status = engine ? MURAL_OK : mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the engine");
	status = mu_comm_agree(settings->comm, status, err);
	if (engine && status == MURAL_OK)
		status = open_device(engine, err);
	if (engine && status == MURAL_OK)
		status = mu_comm_agree(settings->comm, create_parts(engine, settings, err), err);
	if (engine && status == MURAL_OK) {
		begin_watch(engine);
		status = mu_sharing_introduce(&engine->sharing, engine->comm, err);
	}
	if (engine && status == MURAL_OK) {
		status = first_state(engine, err);
	}
	if (status == MURAL_OK)
		*created = engine;
	else
		mural_engine_free(engine);
	return status;
}

void mural_engine_free(mural_engine *engine)
{
	if (!engine)
		return;
	mu_news_release(&engine->news, engine->comm); /* while somebody still watches whether it comes */
	engine->comm->table->watch(engine->comm, NULL);
	mu_saving_free(engine->saving);
	mu_feed_release(&engine->train_feed);
	mu_loader_free(engine->loader);
	for (size_t i = 0; i < MU_EVALUATED; i++)
		mu_loader_free(engine->evaluated[i].loader);
	mu_reducer_release(&engine->reducer);
	mu_engine_close_group(engine);
	mu_segments_release(&engine->segments);
	mu_pace_release(&engine->pace);
	mu_replay_release(&engine->replayed_micro, &engine->device);
	mu_replay_release(&engine->replayed_update, &engine->device);
	mu_engine_release_memory(engine);
	mu_sharing_release(&engine->sharing);
	mu_stall_release(&engine->stall);
	mu_probe_release(&engine->probe);
	if (engine->context)
		engine->ops->close(engine->context);
	mu_device_close(&engine->device);
	mu_vit_release(&engine->vit);
	free(engine);
}

static mural_status check_shape(const mural_engine *engine, const mural_data *data, mural_error *err)
{
	const mural_data_facts *facts = mural_data_get_facts(data);
	MU_TRY(mu_engine_check_resize(engine, data, err));
	if (facts->classes > engine->config.model.classes)
		return mu_fail(err, MURAL_DATA, facts->path,
		               "the data has %zu classes and the model's head only %zu; set --classes %zu",
		               facts->classes, engine->config.model.classes, facts->classes);
	return MURAL_OK;
}

static mural_status begin_on_this_rank(mural_engine *engine, mural_error *err)
{
	if (!engine->training || !engine->train)
		return mu_fail(err, MURAL_USAGE, NULL, "this engine was created without training data");
	MU_TRY(check_shape(engine, engine->train, err));
	mu_loader_settings settings = mu_engine_loader_settings(engine, engine->train, true);
	uint64_t images = settings.sampler.images;
	if (images < (uint64_t)engine->ranks->size)
		return mu_fail(err, MURAL_USAGE, mural_data_get_facts(engine->train)->path,
		               "there are more ranks (%d) than training images (%llu); use at most %llu rank%s",
		               engine->ranks->size, (unsigned long long)images, (unsigned long long)images,
		               images == 1 ? "" : "s");
	if (engine->sharing.kind == MU_SHARES_EQUAL && settings.sampler.accumulation > images)
		return mu_fail(err, MURAL_USAGE, mural_data_get_facts(engine->train)->path,
		               "gradient_accumulation_steps %llu is more than there are training images (%llu): most "
		               "micro-batches would be empty; use a smaller --batch or --accumulation",
		               (unsigned long long)settings.sampler.accumulation, (unsigned long long)images);
	engine->steps_per_epoch = mu_sampler_steps(&settings.sampler);
	if (engine->steps_per_epoch == 0)
		return mu_fail(err, MURAL_USAGE, NULL,
		               "an epoch has no full batch: %llu training images, batch %llu, and the short last one "
		               "is dropped; use a smaller --batch, or no --drop-last",
		               (unsigned long long)images, (unsigned long long)settings.sampler.train_batch);
	engine->total_steps = mu_run_length(&engine->config, engine->steps_per_epoch, &engine->schedule);
	settings.first_epoch = (uint32_t)(engine->steps_done / engine->steps_per_epoch);
	settings.first_step = engine->steps_done % engine->steps_per_epoch;
	settings.pulse = &engine->pulse;
	MU_TRY(mu_engine_keep_loaders(engine, err));
	MU_TRY(mu_feed_open(&engine->train_feed, err));
	return mu_engine_make_loader(engine, &settings, err);
}

mural_status mural_engine_train_begin(mural_engine *engine, mural_error *err)
{
	MU_TRY(mu_engine_begin_sharing(engine, err));
	return mu_comm_agree(engine->comm, begin_on_this_rank(engine, err), err);
}

/* The average where it is what is evaluated. */
static float *saved_weights(const mural_engine *engine, const mu_store *mirror)
{
	return mirror->average && engine->config.optimizer.ema_evaluate ? mirror->average : mu_store_weights(mirror);
}

mural_status mural_engine_save_weights(mural_engine *engine, const char *path, mural_error *err)
{
	mural_status status = MURAL_OK;
	if (engine->ranks->rank == 0) {
		mu_mirror mirror;
		status = mu_mirror_open(&mirror, &engine->store, &engine->device, engine->shared, MU_MIRROR_ALL, true,
		                        err);
		if (status == MURAL_OK) {
			mu_store weights = mu_store_view(&mirror.store, saved_weights(engine, &mirror.store));
			status = mu_engine_write_weights(engine, &weights, path, err);
		}
		mu_mirror_close(&mirror);
	}
	return mu_comm_agree(engine->comm, status, err);
}

mural_status mural_engine_load_weights(mural_engine *engine, const char *path, mural_error *err)
{
	return share_weights(engine, &(source){.path = path}, err);
}

mural_status mural_engine_init_weights(mural_engine *engine, const char *path, bool ignore_unmatched,
                                       char notes[MURAL_WEIGHTS_NOTES], mural_error *err)
{
	const source from = {.path = path,
	                     .wish = {.new_head = true, .new_positions = true, .ignore_unmatched = ignore_unmatched},
	                     .notes = notes};
	notes[0] = '\0';
	return share_weights(engine, &from, err);
}

uint64_t mural_engine_steps_per_epoch(const mural_engine *engine)
{
	return engine->steps_per_epoch;
}

uint64_t mural_engine_images_per_epoch(const mural_engine *engine)
{
	return engine->train ? mural_data_get_facts(engine->train)->images : 0;
}

uint64_t mural_engine_steps_done(const mural_engine *engine)
{
	return engine->steps_done;
}

uint64_t mural_engine_total_steps(const mural_engine *engine)
{
	return engine->total_steps;
}

double mural_engine_flops_per_image(const mural_engine *engine)
{
	return 3 * mu_vit_forward_flops(&engine->vit);
}

mural_pace_facts mural_engine_pace(const mural_engine *engine)
{
	return engine->pace.facts;
}

uint64_t mural_engine_parameters(const mural_engine *engine)
{
	return engine->vit.parameters;
}

unsigned mural_engine_threads(const mural_engine *engine)
{
	return engine->threads;
}

const char *mural_engine_ops(const mural_engine *engine)
{
	return engine->ops->name;
}
