/* Loader threads around a ring of micro-batches.
 *
 * The micro-batches of a run are numbered from 0: their tickets. Ticket t lives in slot t % prefetch, so a slot is
 * claimed, filled, taken and given back in a circle, and order needs no queue. How many a step has depends on its share, so the step
 * and micro-batch of the next ticket are counted along (`at`):
 *
 *     FREE --claim--> FILLING --settle--> READY --next--> TAKEN --give back--> FREE
 *
 * Threads claim tickets in order under the lock, with the image indexes, which is all that needs the epoch's order: so
 * one order array serves, though the batches of two epochs may be in flight. Filling happens outside the lock. What a
 * batch holds is a function of its ticket alone; the number of threads changes nothing.
 *
 * A failure is kept for its ticket and no more tickets are claimed. All earlier ones were claimed before, so the trainer
 * gets them and then the failure with the lowest ticket, as it would have without threads.
 *
 * Everything lies in one pinned block, laid out by one function that also plans it: slots, order, and for sets whose
 * shape is not the model's the weights of resizing, and one spare image and scratch memory per thread.
 * SPDX-License-Identifier: MIT */
#include "data/loader.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "data/augment.h"
#include "data/batch.h"

#define MAX_THREADS 256 /* of one loader: more than any host's cores help decoding */

typedef enum slot_state { FREE, FILLING, READY, TAKEN } slot_state;

typedef struct slot {
	mu_batch batch; /* first: a batch is its slot */
	slot_state state;
} slot;

typedef struct worker {
	mu_loader *loader;
	mu_batch_tools tools; /* its own memory, and the resizing that all share */
	pthread_t thread;
} worker;

/* What the block is laid out into. */
typedef struct layout {
	slot *slots; /* [prefetch] */
	worker *workers; /* [max(1, loader_threads)] */
	uint32_t *order; /* [images] of `order_epoch` */
	int *share_R,
	        *next_share_R; /* [ranks], where shares are given: of the step at which tickets are claimed, and from next_from on */
	mu_resize *resize; /* NULL: images fit or are not to be resized */
} layout;

struct mu_loader {
	mu_loader_settings settings;
	void *block;
	size_t block_bytes;
	layout parts;
	uint64_t end; /* step of the run at which it ends */
	unsigned running; /* threads */

	/* Under the lock. */
	pthread_mutex_t lock;
	pthread_cond_t room, ready; /* a slot became FREE; READY or failed */
	uint64_t claimed, taken; /* tickets */
	mu_batch_at at; /* of the next ticket */
	mu_sampler sampler; /* with the shares of that step */
	uint64_t settled; /* steps before this one may be claimed */
	uint64_t next_from; /* 0: no other shares are to come */
	uint64_t failed; /* lowest ticket that failed, or UINT64_MAX */
	mural_error failure;
	uint32_t order_epoch;
	bool ordered;
	atomic_bool stopping; /* read between images without the lock */
};

static unsigned worker_count(const mu_loader_settings *s)
{
	return s->config->loader_threads ? s->config->loader_threads : 1;
}

/* A worker's memory. resize: as measured or as laid out, NULL without one. */
static mu_batch_tools take_tools(mu_arena *arena, const mu_loader_settings *s, const mu_resize *resize)
{
	mu_batch_tools tools = {0};
	if (!mu_batch_fits(s))
		tools.spare = mu_arena_take(arena, mu_image_bytes(mu_batch_shape_of_set(s)));
	if (resize)
		tools.scratch = mu_arena_take(arena, mu_resize_scratch_bytes(resize));
	return tools;
}

static mu_resize take_resize(mu_arena *arena, const mu_loader_settings *s)
{
	return mu_resize_take(arena, mu_batch_shape_of_set(s), mu_batch_shape_of_model(s),
	                      (mu_resize_wish){s->config->resize, s->config->filter, s->config->resize_side});
}

/* The one description of the block: run on a measuring arena it is the plan. */
static layout lay_out(mu_arena *arena, const mu_loader_settings *s)
{
	bool resizes = !mu_batch_fits(s) && s->config->resize != MURAL_RESIZE_NONE;
	mu_resize resize;
	unsigned prefetch = s->config->prefetch, workers = worker_count(s);
	layout parts = {
	        .slots = mu_arena_take(arena, prefetch * sizeof(slot)),
	        .workers = mu_arena_take(arena, workers * sizeof(worker)),
	        .order = mu_arena_take(arena, s->sampler.images * sizeof(uint32_t)),
	};
	if (s->sampler.share_R) {
		parts.share_R = mu_arena_take(arena, (size_t)s->sampler.ranks * sizeof(int));
		parts.next_share_R = mu_arena_take(arena, (size_t)s->sampler.ranks * sizeof(int));
	}
	for (unsigned i = 0; i < prefetch; i++) {
		mu_batch batch = mu_batch_take(arena, s);
		if (!arena->measuring)
			parts.slots[i] = (slot){.batch = batch, .state = FREE};
	}
	if (resizes) {
		parts.resize = mu_arena_take(arena, sizeof resize);
		resize = take_resize(arena, s);
		if (!arena->measuring)
			*parts.resize = resize;
	}
	for (unsigned i = 0; i < workers; i++) {
		mu_batch_tools tools = take_tools(arena, s, resizes ? &resize : NULL);
		tools.resize = parts.resize;
		if (!arena->measuring)
			parts.workers[i] = (worker){.tools = tools};
	}
	return parts;
}

size_t mu_loader_bytes(const mu_loader_settings *settings)
{
	mu_arena arena;
	mu_arena_measure(&arena, "loader");
	lay_out(&arena, settings);
	return arena.high;
}

static mural_status check_sizes(const mu_loader_settings *s, mural_error *err)
{
	uint64_t bytes;
	if (s->height > MU_MAX_SIDE || s->width > MU_MAX_SIDE || s->channels > MURAL_MAX_CHANNELS)
		return mu_fail(err, MURAL_USAGE, NULL,
		               "expected images of at most %d channels and sides of %d, found %zu x %zu x %zu",
		               MURAL_MAX_CHANNELS, MU_MAX_SIDE, s->channels, s->height, s->width);
	uint64_t image_bytes = mu_image_bytes(mu_batch_shape_of_model(s)) + 64; /* with its share of the other arrays */
	if (__builtin_mul_overflow(s->sampler.micro_batch, image_bytes, &bytes) ||
	    __builtin_mul_overflow(bytes, s->config->prefetch, &bytes) || bytes > SIZE_MAX / 2)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "%u micro-batches of %llu images exceed any memory",
		               s->config->prefetch, (unsigned long long)s->sampler.micro_batch);
	return mu_fit_check(mu_batch_shape_of_set(s), mu_batch_shape_of_model(s), err);
}

static mural_status check_settings(const mu_loader_settings *s, mural_error *err)
{
	MU_TRY(mu_sampler_check(&s->sampler, err));
	MU_TRY(mu_augment_check(s->config, err));
	if (s->config->prefetch == 0)
		return mu_fail(err, MURAL_USAGE, "data.prefetch", "expected at least 1 micro-batch, found 0");
	if (s->config->loader_threads > MAX_THREADS)
		return mu_fail(err, MURAL_USAGE, "data.loader_threads", "expected at most %d threads, found %u",
		               MAX_THREADS, s->config->loader_threads);
	if (s->sampler.images != s->data->facts.images)
		return mu_bug(err, "the sampler counts other images than the data set");
	if (s->first_step > mu_sampler_steps(&s->sampler))
		return mu_bug(err, "a loader that starts behind the end of an epoch");
	MU_TRY(mu_resize_check(s->config, s->height, s->width, err));
	return check_sizes(s, err);
}

/* Where the run begins and ends. Steps of an epoch and epochs are below 2^32 each. */
static void set_range(mu_loader *loader)
{
	const mu_loader_settings *s = &loader->settings;
	uint64_t steps = mu_sampler_steps(&s->sampler);
	loader->at.step = s->first_epoch * steps + s->first_step;
	loader->end = s->epochs * steps;
	loader->settled = s->settled ? s->settled : UINT64_MAX;
}

static slot *slot_of(mu_loader *loader, uint64_t ticket)
{
	return &loader->parts.slots[ticket % loader->settings.config->prefetch];
}

static bool at_end(const mu_loader *loader)
{
	return loader->at.step >= loader->end;
}

static bool claimable(mu_loader *loader)
{
	return !at_end(loader) && loader->at.step < loader->settled && slot_of(loader, loader->claimed)->state == FREE;
}

static bool finished(const mu_loader *loader)
{
	return loader->stopping || loader->failed != UINT64_MAX || at_end(loader);
}

/* The shares of the step that begins. Under the lock. */
static void take_shares(mu_loader *loader)
{
	if (loader->next_from == 0 || loader->at.step < loader->next_from)
		return;
	memcpy(loader->parts.share_R, loader->parts.next_share_R, (size_t)loader->sampler.ranks * sizeof(int));
	loader->next_from = 0;
}

/* The place behind a ticket that was claimed. Under the lock. */
static void step_on(mu_loader *loader, const mu_batch *claimed)
{
	if (++loader->at.micro < claimed->micros)
		return;
	loader->at = (mu_batch_at){.step = loader->at.step + 1};
	take_shares(loader);
}

/* The next ticket's slot, with its place in the run and its image indexes. Under the lock. */
static slot *claim(mu_loader *loader, uint64_t *ticket)
{
	const mu_loader_settings *s = &loader->settings;
	slot *claimed = slot_of(loader, loader->claimed);
	mu_batch *batch = &claimed->batch;
	*ticket = loader->claimed++;
	mu_batch_place(batch, s, &loader->sampler, loader->at);
	step_on(loader, batch);
	if (!loader->ordered || loader->order_epoch != batch->epoch) {
		mu_sampler_order(s->sampler.images, s->seed, batch->epoch, s->config->shuffle, loader->parts.order);
		loader->order_epoch = batch->epoch;
		loader->ordered = true;
	}
	memcpy(batch->index_B, loader->parts.order + batch->first, batch->count * sizeof *batch->index_B);
	claimed->state = FILLING;
	return claimed;
}

/* Under the lock. */
static void settle(mu_loader *loader, slot *filled, uint64_t ticket, mural_status status, const mural_error *failure)
{
	filled->state = READY;
	if (status != MURAL_OK && ticket < loader->failed) {
		loader->failed = ticket;
		loader->failure = *failure;
	}
	pthread_cond_signal(&loader->ready);
}

/* Claims, fills and settles one ticket. Under the lock, which it gives up for the filling. */
static void load_one(worker *self)
{
	mu_loader *loader = self->loader;
	uint64_t ticket;
	slot *filling = claim(loader, &ticket);
	pthread_mutex_unlock(&loader->lock);
	mural_error failure = {0};
	mural_status status =
	        mu_batch_fill(&filling->batch, &loader->settings, &self->tools, &loader->stopping, &failure);
	pthread_mutex_lock(&loader->lock);
	settle(loader, filling, ticket, status, &failure);
}

static void *work(void *argument)
{
	worker *self = argument;
	mu_loader *loader = self->loader;
	pthread_mutex_lock(&loader->lock);
	while (!finished(loader))
		if (claimable(loader))
			load_one(self);
		else
			pthread_cond_wait(&loader->room, &loader->lock);
	pthread_mutex_unlock(&loader->lock);
	return NULL;
}

/* Signals are the trainer's: the threads block them all. */
static mural_status start_threads(mu_loader *loader, mural_error *err)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int failed = 0;
	for (unsigned i = 0; i < loader->settings.config->loader_threads && !failed; i++) {
		worker *self = &loader->parts.workers[i];
		failed = pthread_create(&self->thread, NULL, work, self);
		if (failed)
			break;
		pthread_setname_np(self->thread, "mural-loader");
		loader->running++;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failed)
		return mu_fail(err, MURAL_FAILED, "data.loader_threads", "the system gave %u of %u loader threads: %s",
		               loader->running, loader->settings.config->loader_threads, strerror(failed));
	return MURAL_OK;
}

static mural_status prepare(mu_loader *loader, mural_error *err)
{
	const mu_device *device = loader->settings.device;
	size_t bytes = mu_loader_bytes(&loader->settings);
	MU_TRY(device->table->allocate(device->handle, MU_MEMORY_PINNED, bytes, &loader->block, err));
	loader->block_bytes = bytes;
	mu_arena arena;
	mu_arena_reserve(&arena, "loader", loader->block, bytes);
	loader->parts = lay_out(&arena, &loader->settings);
	if (loader->parts.resize)
		mu_resize_prepare(loader->parts.resize);
	if (loader->parts.share_R) {
		memcpy(loader->parts.share_R, loader->sampler.share_R, (size_t)loader->sampler.ranks * sizeof(int));
		loader->sampler.share_R = loader->parts.share_R;
	}
	set_range(loader);
	for (unsigned i = 0; i < worker_count(&loader->settings); i++)
		loader->parts.workers[i].loader = loader;
	return start_threads(loader, err);
}

mural_status mu_loader_create(mu_loader **loader, const mu_loader_settings *settings, mural_error *err)
{
	*loader = NULL;
	MU_TRY(check_settings(settings, err));
	mu_loader *created = calloc(1, sizeof *created);
	if (!created)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for a loader");
	created->settings = *settings;
	created->sampler = settings->sampler;
	created->failed = UINT64_MAX;
	pthread_mutex_init(&created->lock, NULL);
	pthread_cond_init(&created->room, NULL);
	pthread_cond_init(&created->ready, NULL);
	mural_status status = prepare(created, err);
	if (status != MURAL_OK)
		mu_loader_free(created);
	else
		*loader = created;
	return status;
}

void mu_loader_free(mu_loader *loader)
{
	if (!loader)
		return;
	pthread_mutex_lock(&loader->lock);
	loader->stopping = true;
	pthread_cond_broadcast(&loader->room);
	pthread_mutex_unlock(&loader->lock);
	for (unsigned i = 0; i < loader->running; i++)
		pthread_join(loader->parts.workers[i].thread, NULL);
	pthread_cond_destroy(&loader->ready);
	pthread_cond_destroy(&loader->room);
	pthread_mutex_destroy(&loader->lock);
	const mu_device *device = loader->settings.device;
	device->table->release(device->handle, MU_MEMORY_PINNED, loader->block, loader->block_bytes);
	free(loader);
}

/* The slot of the next ticket once it is READY. Under the lock. */
static mural_status await(mu_loader *loader, slot **next, mural_error *err)
{
	*next = slot_of(loader, loader->taken);
	if ((*next)->state == TAKEN)
		return mu_bug(err, "the trainer asks for a batch while it holds all of them");
	while ((*next)->state != READY) {
		if (loader->taken == loader->claimed && loader->at.step >= loader->settled)
			return mu_bug(err, "the trainer asks for a batch whose shares are not settled");
		if (loader->running)
			pthread_cond_wait(&loader->ready, &loader->lock);
		else
			load_one(&loader->parts.workers[0]);
	}
	if (loader->taken == loader->failed) {
		if (err && err->status == MURAL_OK)
			*err = loader->failure;
		return loader->failure.status;
	}
	return MURAL_OK;
}

mural_status mu_loader_next(mu_loader *loader, mu_batch **batch, double *waited_seconds, mural_error *err)
{
	double start = mu_now();
	mural_status status = MURAL_OK;
	*batch = NULL;
	pthread_mutex_lock(&loader->lock);
	if (loader->taken < loader->claimed || !at_end(loader)) {
		slot *next;
		status = await(loader, &next, err);
		if (status == MURAL_OK) {
			next->state = TAKEN;
			loader->taken++;
			*batch = &next->batch;
		}
	}
	pthread_mutex_unlock(&loader->lock);
	*waited_seconds = mu_now() - start;
	return status;
}

mural_status mu_loader_share(mu_loader *loader, uint64_t from, const int *share_R, uint64_t settled, mural_error *err)
{
	mural_status status = MURAL_OK;
	pthread_mutex_lock(&loader->lock);
	if (settled < loader->settled || (share_R && (from < loader->settled || from > settled || loader->next_from)))
		status = mu_bug(err, "shares change where batches may have been read already");
	if (status == MURAL_OK && share_R) {
		memcpy(loader->parts.next_share_R, share_R, (size_t)loader->sampler.ranks * sizeof(int));
		loader->next_from = from;
		take_shares(loader);
	}
	if (status == MURAL_OK)
		loader->settled = settled;
	pthread_cond_broadcast(&loader->room);
	pthread_mutex_unlock(&loader->lock);
	return status;
}

void mu_loader_give_back(mu_loader *loader, mu_batch *batch)
{
	pthread_mutex_lock(&loader->lock);
	((slot *)(void *)batch)->state = FREE;
	pthread_cond_broadcast(&loader->room);
	pthread_mutex_unlock(&loader->lock);
}
