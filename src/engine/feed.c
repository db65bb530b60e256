/* Micro-batches on their way to the device. SPDX-License-Identifier: MIT */
#include "engine/feed.h"

#include "data/batch.h"

void mu_feed_take(mu_feed *feed, bool shared, bool ahead, const mu_loader_settings *settings, mu_arena *step)
{
	*feed = (mu_feed){.device = *settings->device,
	                  .shared = shared,
	                  .most_held = settings->config->prefetch > 1 ? settings->config->prefetch - 1 : 1};
	if (feed->most_held > MU_FEED_HELD)
		feed->most_held = MU_FEED_HELD;
	feed->has_stage = ahead && !shared && feed->most_held > 1;
	if (shared)
		feed->place.counts = mu_arena_take(step, sizeof(mu_micro));
	else
		feed->place = mu_batch_take(step, settings);
	if (feed->has_stage) {
		feed->stage = mu_batch_take(step, settings);
		feed->most_held--; /* one slot is ahead */
	}
}

mural_status mu_feed_open(mu_feed *feed, mural_error *err)
{
	const mu_device *device = &feed->device;
	if (!feed->has_stage || feed->taken)
		return MURAL_OK;
	MU_TRY(device->table->queue_create(device->handle, &feed->copies, err));
	MU_TRY(device->table->event_create(device->handle, &feed->arrived, err));
	return device->table->event_create(device->handle, &feed->taken, err);
}

void mu_feed_release(mu_feed *feed)
{
	const mu_device_table *table = feed->device.table;
	if (!feed->copies)
		return;
	table->wait(feed->copies, NULL); /* the loader's memory may go next */
	table->event_free(feed->arrived);
	table->event_free(feed->taken);
	table->queue_free(feed->copies);
	feed->copies = NULL;
	feed->arrived = feed->taken = NULL;
	feed->ahead = NULL;
}

static mural_status copy_arrays(mu_feed *feed, mu_queue *queue, const mu_batch *to, const mu_batch *batch,
                                mural_error *err)
{
	const size_t n = batch->capacity;
	const struct {
		void *to;
		const void *from;
		size_t bytes;
	} arrays[] = {{to->counts, batch->counts, sizeof *batch->counts},
	              {to->pixels, batch->pixels, n * batch->image_bytes},
	              {to->cut_B, batch->cut_B, n * sizeof *batch->cut_B},
	              {to->stream_B, batch->stream_B, n * sizeof *batch->stream_B},
	              {to->labels, batch->labels, n * sizeof *batch->labels}};
	for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
		MU_TRY(feed->device.table->copy(queue, arrays[i].to, arrays[i].from, arrays[i].bytes, err));
	return MURAL_OK;
}

/* The stage is free for the copy queue once the device's queue has emptied it. */
static mural_status send_ahead(mu_feed *feed, const mu_batch *batch, mural_error *err)
{
	const mu_device_table *table = feed->device.table;
	MU_TRY(table->queue_wait_event(feed->copies, feed->taken, err));
	MU_TRY(copy_arrays(feed, feed->copies, &feed->stage, batch, err));
	return table->event_record(feed->arrived, feed->copies, err);
}

void mu_feed_ahead(mu_feed *feed, mu_loader *loader, double *waited_seconds)
{
	mu_batch *batch;
	double waited;
	if (!feed->copies || feed->ahead || feed->n_held > feed->most_held)
		return;
	if (mu_loader_next(loader, &batch, &waited, NULL) != MURAL_OK || !batch)
		return;
	*waited_seconds += waited;
	feed->ahead = batch;
	feed->ahead_failed = send_ahead(feed, batch, NULL) != MURAL_OK;
}

mural_status mu_feed_next(mu_feed *feed, mu_loader *loader, mu_batch **batch, double *waited_seconds, mural_error *err)
{
	*waited_seconds = 0;
	*batch = feed->ahead;
	return *batch ? MURAL_OK : mu_loader_next(loader, batch, waited_seconds, err);
}

void mu_feed_leave_stage(mu_feed *feed)
{
	if (!feed->copies)
		return;
	feed->device.table->wait(feed->copies, NULL); /* what failed fails the next call */
	feed->ahead_failed = true;
}

/* Out of the stage; the batch's slot has been read when the queue gets there. */
static mural_status take_from_stage(mu_feed *feed, mural_error *err)
{
	const mu_device *device = &feed->device;
	const mu_batch *stage = &feed->stage;
	mu_batch from = *feed->ahead; /* its numbers, the stage's arrays */
	from.counts = stage->counts;
	from.pixels = stage->pixels;
	from.cut_B = stage->cut_B;
	from.stream_B = stage->stream_B;
	from.labels = stage->labels;
	feed->ahead = NULL;
	MU_TRY(device->table->queue_wait_event(device->queue, feed->arrived, err));
	MU_TRY(copy_arrays(feed, device->queue, &feed->place, &from, err));
	return device->table->event_record(feed->taken, device->queue, err);
}

mural_status mu_feed_batch(mu_feed *feed, mu_loader *loader, mu_batch *batch, const mu_batch **at, mural_error *err)
{
	mural_status status = MURAL_OK;
	feed->loader = loader;
	if (feed->n_held == feed->most_held) {
		status = feed->device.table->wait(feed->device.queue, err);
		mu_feed_give_back(feed);
	}
	feed->held[feed->n_held++] = batch;
	*at = &feed->place;
	if (status == MURAL_OK && batch == feed->ahead && !feed->ahead_failed)
		return take_from_stage(feed, err);
	feed->ahead = NULL;
	if (status != MURAL_OK || !feed->shared)
		return status == MURAL_OK ? copy_arrays(feed, feed->device.queue, &feed->place, batch, err) : status;
	mu_micro *counts = feed->place.counts;
	*counts = *batch->counts;
	feed->place = *batch;
	feed->place.counts = counts;
	return MURAL_OK;
}

void mu_feed_used(mu_feed *feed)
{
	if (feed->shared)
		mu_feed_give_back(feed);
}

void mu_feed_give_back(mu_feed *feed)
{
	for (size_t i = 0; i < feed->n_held; i++)
		mu_loader_give_back(feed->loader, feed->held[i]);
	feed->n_held = 0;
}
