/* Plans a rank's memory with measuring arenas, then allocates exactly that and lays it out with the same code.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "data/resize.h"
#include "engine/checkpoint_image.h"
#include "engine/engine_internal.h"

#define BLOCKS 4

static void list_blocks(mural_engine *engine, mu_block *list[BLOCKS])
{
	list[0] = &engine->model;
	list[1] = &engine->step;
	list[2] = &engine->scratch;
	list[3] = &engine->exchange;
}

static mu_image_shape shape_of_model(const mural_engine *engine)
{
	const mural_model_config *model = &engine->config.model;
	return (mu_image_shape){model->channels, model->image_height, model->image_width};
}

static mu_image_shape shape_of_set(const mural_data *data)
{
	const mural_data_facts *facts = mural_data_get_facts(data);
	return (mu_image_shape){facts->channels, facts->height, facts->width};
}

size_t mu_engine_resize_factor(const mural_engine *engine, const mural_data *data)
{
	if (engine->config.data.resize_on == MURAL_RESIZE_ON_HOST)
		return 1;
	if (mural_data_get_facts(data)->any_size)
		return 0;
	return mu_resize_factor(&engine->config.data, shape_of_set(data), shape_of_model(engine));
}

mural_status mu_engine_check_resize(const mural_engine *engine, const mural_data *data, mural_error *err)
{
	const mural_data_facts *facts = mural_data_get_facts(data);
	const char *where = engine->report ? mural_config_origin(engine->report, "mural.data.resize_on") : NULL;
	if (mu_engine_resize_factor(engine, data) > 0)
		return MURAL_OK;
	if (facts->any_size)
		return mu_fail(
		        err, MURAL_USAGE, where,
		        "the files of %s have sizes of their own, and the device enlarges all images by one factor: "
		        "use mural.data.resize_on host",
		        facts->path);
	return mu_fail(err, MURAL_USAGE, where,
	               "the device enlarges images by one whole factor up to %d, bilinear and without a cut behind it: "
	               "%s has %zu x %zu pixels and the model %zu x %zu; use mural.data.resize_on host",
	               MU_ENLARGE_MOST, facts->name, facts->height, facts->width, engine->config.model.image_height,
	               engine->config.model.image_width);
}

/* A micro-batch of every rank: as many as it has room for. */
static uint64_t evaluated_at_once(const mural_engine *engine)
{
	const mu_sharing *sharing = &engine->sharing;
	uint64_t sum = 0;
	if (!sharing->capacity_R)
		return sharing->capacity * (uint64_t)engine->ranks->size;
	for (int r = 0; r < engine->ranks->size; r++)
		sum += (uint64_t)sharing->capacity_R[r];
	return sum;
}

mu_loader_settings mu_engine_loader_settings(const mural_engine *engine, const mural_data *data, bool training)
{
	const mural_config *config = &engine->config;
	const mu_sharing *sharing = &engine->sharing;
	uint64_t micro = sharing->capacity;
	bool enlarged = mu_engine_resize_factor(engine, data) > 1; /* by the device */
	mu_image_shape shape = enlarged ? shape_of_set(data) : shape_of_model(engine);
	return (mu_loader_settings){
	        .data = data,
	        .config = training ? &config->data : &engine->in_order,
	        .sampler =
	                {
	                        .images = mural_data_get_facts(data)->images,
	                        .train_batch = training ? config->batch.train_batch : evaluated_at_once(engine),
	                        .micro_batch = micro,
	                        .accumulation = training ? config->batch.accumulation : 1,
	                        .ranks = engine->ranks->size,
	                        .rank = engine->ranks->rank,
	                        .share_R = training ? sharing->share_R : sharing->capacity_R,
	                        .drop_last = training && config->data.drop_last,
	                },
	        .seed = config->run.seed,
	        .augment = training,
	        .divisor = mu_engine_divisor(config, engine->ranks->size),
	        .epochs = training ? config->run.epochs : 1,
	        .device = &engine->device,
	        .channels = shape.channels,
	        .height = shape.height,
	        .width = shape.width,
	};
}

static mural_status make_pass(mural_engine *engine, mu_use use, size_t capacity, mu_vit_pass **pass, mural_error *err)
{
	return mu_vit_pass_create(pass, &engine->vit, engine->ops, engine->context, engine->store.type, capacity,
	                          use == MU_USE_TRAIN, engine->config.run.seed, &engine->step.arena[use],
	                          &engine->scratch.arena[use], err);
}

static void take_feed(mural_engine *engine, mu_use use, size_t capacity, mu_feed *feed)
{
	const mu_image_shape shape = shape_of_model(engine);
	const mu_loader_settings settings = {.config = &engine->config.data,
	                                     .sampler.micro_batch = capacity,
	                                     .device = &engine->device,
	                                     .channels = shape.channels,
	                                     .height = shape.height,
	                                     .width = shape.width};
	mu_feed_take(feed, engine->shared, use == MU_USE_TRAIN, &settings, &engine->step.arena[use]);
}

mu_store_settings mu_engine_store_settings(const mural_config *config, bool training, int ranks)
{
	const mu_optimizer_needs needs = mu_update_needs(&config->optimizer);
	const mu_dtype gradient = mu_engine_gradient_type(config), wire = mu_engine_wire_type(config);
	return (mu_store_settings){.type = mu_engine_type(config),
	                           .gradient_type = gradient,
	                           .rule = mu_store_rule_for(config->engine.zero_stage),
	                           .training = training,
	                           .moments = needs.spans,
	                           .direction = needs.work,
	                           .average = config->optimizer.ema_decay > 0,
	                           .wire_type = wire,
	                           .wire = ranks > 1 && wire != gradient};
}

static void take_update(mural_engine *engine)
{
	mu_arena *scratch = &engine->scratch.arena[MU_USE_UPDATE];
	const mu_sum_squares norm = {.type = engine->store.settings.gradient_type, .n = engine->store.elements};
	const size_t update = mu_update_workspace(&engine->segments, &engine->config.optimizer,
	                                          engine->store.settings.gradient_type, engine->ops, engine->context);
	engine->norm_scratch = mu_arena_take(scratch, engine->ops->sum_squares_workspace(engine->context, &norm));
	engine->update_scratch = mu_arena_take(scratch, update);
}

/* Takes everything from the blocks' arenas, measuring or real. */
static mural_status lay_out(mural_engine *engine, size_t capacity, mural_error *err)
{
	const mu_store_settings settings =
	        mu_engine_store_settings(&engine->config, engine->training, engine->ranks->size);
	MU_TRY(mu_store_init(&engine->store, engine->vit.units, engine->vit.n_units, &settings,
	                     &engine->model.arena[MU_USE_TRAIN], err));
	mu_ledger_take(&engine->ledger, &engine->device, engine->shared, &engine->model.arena[MU_USE_TRAIN],
	               &engine->exchange.arena[MU_USE_TRAIN]);
	take_feed(engine, MU_USE_EVALUATE, capacity, &engine->evaluate_feed);
	MU_TRY(make_pass(engine, MU_USE_EVALUATE, capacity, &engine->evaluate_pass, err));
	if (!engine->training)
		return MURAL_OK;
	engine->staging = NULL;
	if (!engine->shared && engine->ranks->size > 1)
		engine->staging = mu_arena_take(&engine->exchange.arena[MU_USE_TRAIN],
		                                engine->store.elements * mu_dtype_bytes(settings.wire_type));
	take_feed(engine, MU_USE_TRAIN, capacity, &engine->train_feed);
	MU_TRY(make_pass(engine, MU_USE_TRAIN, capacity, &engine->train_pass, err));
	take_update(engine);
	return MURAL_OK;
}

static void forget_layout(mural_engine *engine)
{
	mu_vit_pass_free(engine->train_pass);
	mu_vit_pass_free(engine->evaluate_pass);
	engine->train_pass = engine->evaluate_pass = NULL;
	mu_store_release(&engine->store);
}

static size_t high_water(const mu_block *block)
{
	size_t high = 0;
	for (int use = 0; use < MU_USE_COUNT; use++)
		if (block->arena[use].high > high)
			high = block->arena[use].high;
	return high;
}

static size_t loader_bytes(const mural_engine *engine, const mural_data *data, bool training, size_t capacity)
{
	if (!data)
		return 0;
	mu_loader_settings settings = mu_engine_loader_settings(engine, data, training);
	settings.sampler.micro_batch = capacity;
	return mu_loader_bytes(&settings);
}

/* The files that a checkpoint in the background is copied into, for the store as it is laid out. */
static mural_status measure_copy(mural_engine *engine, mural_error *err)
{
	mu_images images;
	mural_status status = mu_images_make(&images, engine, &engine->store, err);
	engine->copy_bytes = mu_images_bytes(&images);
	mu_images_release(&images);
	return status;
}

static mural_memory_plan total_up(const mural_engine *engine, size_t capacity, size_t activations, size_t scratch,
                                  size_t exchange)
{
	mural_memory_plan plan = {
	        .parameters = engine->store.bytes.parameters,
	        .gradients = engine->store.bytes.gradients,
	        .optimizer = engine->store.bytes.optimizer + engine->ledger.bytes,
	        .activations = activations,
	        .scratch = scratch,
	        .checkpoint = engine->copies ? engine->copy_bytes : 0,
	        .loader = loader_bytes(engine, engine->train, true, capacity) + exchange,
	};
	/* training is interrupted by evaluations, which have rings of their own */
	for (size_t i = 0; i < MU_EVALUATED; i++)
		plan.loader += loader_bytes(engine, engine->evaluated[i].data, false, capacity);
	plan.total = plan.parameters + plan.gradients + plan.optimizer + plan.activations + plan.scratch + plan.loader +
	             plan.checkpoint;
	return plan;
}

mural_status mu_engine_measure(mural_engine *engine, size_t capacity, mural_memory_plan *plan, mural_error *err)
{
	mu_block *list[BLOCKS];
	list_blocks(engine, list);
	for (int b = 0; b < BLOCKS; b++)
		for (int use = 0; use < MU_USE_COUNT; use++)
			mu_arena_measure(&list[b]->arena[use], list[b]->name);
	mural_status status = lay_out(engine, capacity, err);
	if (status == MURAL_OK) {
		for (int b = 0; b < BLOCKS; b++)
			list[b]->bytes = high_water(list[b]);
		if (engine->copies)
			status = measure_copy(engine, err);
		*plan = total_up(engine, capacity, engine->step.bytes, engine->scratch.bytes, engine->exchange.bytes);
	}
	forget_layout(engine);
	return status;
}

size_t mu_engine_largest_fit(mural_engine *engine, size_t limit, size_t fails)
{
	size_t fits = 0;
	while (fails - fits > 1) {
		size_t middle = fits + (fails - fits) / 2;
		mural_memory_plan plan;
		if (mu_engine_measure(engine, middle, &plan, NULL) != MURAL_OK || plan.total > limit)
			fails = middle;
		else
			fits = middle;
	}
	return fits;
}

static mural_status check_fit(mural_engine *engine, mural_error *err)
{
	mu_device_facts facts;
	MU_TRY(engine->device.table->facts(engine->device.handle, &facts, err));
	size_t share = facts.free_bytes;
	if (engine->shared)
		share /= (size_t)engine->ranks->local_size;
	else if (engine->card_ranks > 1)
		share = engine->free_bytes / (size_t)engine->card_ranks;
	if (engine->plan.total > share) { /* checkpoints can do without */
		engine->plan.total -= engine->plan.checkpoint;
		engine->plan.checkpoint = 0;
		engine->copies = false;
	}
	if (engine->plan.total <= share)
		return MURAL_OK;
	size_t needed = engine->plan.total, largest = mu_engine_largest_fit(engine, share, engine->sharing.capacity);
	if (largest > 0 && engine->sharing.kind != MU_SHARES_EQUAL) { /* smaller micro-batches, and more of them */
		engine->sharing.capacity = largest;
		return mu_engine_measure(engine, largest, &engine->plan, err);
	}
	char where[512] = "";
	if (engine->report)
		snprintf(where, sizeof where, "%s = %llu",
		         mural_config_origin(engine->report, "train_micro_batch_size_per_gpu"),
		         (unsigned long long)engine->config.batch.micro_batch);
	if (largest == 0)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, where,
		               "this rank needs %s and has %s; not even one image at a time fits: use a "
		               "smaller model or image",
		               MU_SIZE(needed), MU_SIZE(share));
	return mu_fail(err, MURAL_OUT_OF_MEMORY, where,
	               "this rank needs %s and has %s; largest micro-batch that fits: %zu", MU_SIZE(needed),
	               MU_SIZE(share), largest);
}

static mural_status allocate(mural_engine *engine, mu_block *block, mural_error *err)
{
	MU_TRY(engine->device.table->allocate(engine->device.handle, block->kind, block->bytes, &block->memory, err));
	for (int use = 0; use < MU_USE_COUNT; use++)
		mu_arena_reserve(&block->arena[use], block->name, block->memory, block->bytes);
	return MURAL_OK;
}

/* Rank 0 of a run that will write checkpoints: regularly, or the best by validation. */
static bool wants_copy(const mural_engine *engine)
{
	const mural_checkpoint_config *c = &engine->config.checkpoint;
	bool writes = c->every_steps > 0 || c->every_epochs > 0 || engine->evaluated[MU_EVALUATED_VALIDATION].data;
	return engine->training && engine->ranks->rank == 0 && c->background && writes;
}

/* The pages are touched now: the first checkpoint shall not wait for them. */
static mural_status allocate_copy(mural_engine *engine, mural_error *err)
{
	if (!engine->copies)
		return MURAL_OK;
	size_t bytes = (size_t)engine->plan.checkpoint;
	MU_TRY(engine->device.table->allocate(engine->device.handle, MU_MEMORY_PINNED, bytes, &engine->copy, err));
	memset(engine->copy, 0, bytes);
	return MURAL_OK;
}

void mu_engine_prepare_plan(mural_engine *engine)
{
	engine->copies = engine->wants_copy = wants_copy(engine);
	engine->model.name = "model";
	engine->step.name = "step";
	engine->scratch.name = "scratch";
	engine->exchange.name = "exchange";
	engine->exchange.kind = MU_MEMORY_PINNED;
}

mural_status mu_engine_allocate(mural_engine *engine, mural_error *err)
{
	mu_engine_prepare_plan(engine);
	MU_TRY(mu_engine_measure(engine, engine->sharing.capacity, &engine->plan, err));
	MU_TRY(check_fit(engine, err));
	mu_block *list[BLOCKS];
	list_blocks(engine, list);
	for (int b = 0; b < BLOCKS; b++)
		MU_TRY(allocate(engine, list[b], err));
	MU_TRY(lay_out(engine, engine->sharing.capacity, err));
	for (int b = 0; b < BLOCKS; b++)
		for (int use = 0; use < MU_USE_COUNT; use++)
			MU_TRY(mu_arena_check(&list[b]->arena[use], err));
	return allocate_copy(engine, err);
}

void mu_engine_release_memory(mural_engine *engine)
{
	forget_layout(engine);
	if (engine->copy)
		engine->device.table->release(engine->device.handle, MU_MEMORY_PINNED, engine->copy,
		                              (size_t)engine->plan.checkpoint);
	engine->copy = NULL;
	mu_block *list[BLOCKS];
	list_blocks(engine, list);
	for (int b = 0; b < BLOCKS; b++) {
		if (list[b]->memory)
			engine->device.table->release(engine->device.handle, list[b]->kind, list[b]->memory,
			                              list[b]->bytes);
		list[b]->memory = NULL;
	}
}

void mural_engine_memory(const mural_engine *engine, mural_memory_plan *planned, mural_memory_plan *used)
{
	*planned = engine->plan;
	*used = total_up(engine, engine->sharing.capacity, high_water(&engine->step), high_water(&engine->scratch),
	                 high_water(&engine->exchange));
}
