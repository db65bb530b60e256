/* Micro-batches on their way to the device. SPDX-License-Identifier: MIT */
#include "engine/feed.h"

#include "data/batch.h"

void mu_feed_take(mu_feed *feed, bool shared, const mu_loader_settings *settings, mu_arena *step)
{
	*feed = (mu_feed){.device = *settings->device,
	                  .shared = shared,
	                  .most_held = settings->config->prefetch > 1 ? settings->config->prefetch - 1 : 1};
	if (feed->most_held > MU_FEED_HELD)
		feed->most_held = MU_FEED_HELD;
	if (shared)
		feed->place.counts = mu_arena_take(step, sizeof(mu_micro));
	else
		feed->place = mu_batch_take(step, settings);
}

static mural_status copy_arrays(mu_feed *feed, const mu_batch *batch, mural_error *err)
{
	const mu_batch *to = &feed->place;
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
		MU_TRY(feed->device.table->copy(feed->device.queue, arrays[i].to, arrays[i].from, arrays[i].bytes,
		                                err));
	return MURAL_OK;
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
	if (status != MURAL_OK || !feed->shared)
		return status == MURAL_OK ? copy_arrays(feed, batch, err) : status;
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
