/* The feed: micro-batches from the loader's pinned memory to where operations work.
 *
 * Where the host shares the device's memory, operations read the loader's slots, but for the counts, which the end of a
 * step needs when the slot may be full again. Elsewhere a batch is copied along the
 * queue into one place in device memory, behind the work that still reads the one before; its slot is given back once the
 * queue has been waited for. While the device computes, the next batch may already travel to a second place, the stage,
 * on a queue of its own; from there it is a copy within the device.
 *
 *     MU_TRY(mu_feed_batch(&feed, loader, batch, &at, err));     at: the batch's arrays on the device
 *     ... compute ...
 *     mu_feed_used(&feed);
 *     mu_feed_ahead(&feed, loader, &waited);             if it was opened for that
 *     ... read the ledger, which waits ...
 *     mu_feed_give_back(&feed);
 * SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_FEED_H
#define MU_ENGINE_FEED_H

#include "base/arena.h"
#include "data/loader.h"

#define MU_FEED_HELD 16 /* slots at most that are not given back */

typedef struct mu_feed {
	mu_device device; /* borrowed */
	bool shared;
	mu_batch place; /* the arrays in device memory; where shared, counts of its own and a slot's arrays */
	mu_loader *loader; /* of the held ones; borrowed */
	mu_batch *held[MU_FEED_HELD];
	size_t n_held, most_held;
	/* where batches come ahead */
	bool has_stage;
	mu_batch stage; /* in device memory */
	mu_queue *copies;
	mu_event *arrived, *taken; /* the batch in the stage; the stage's copy out of it */
	mu_batch *ahead; /* what is in the stage, or NULL */
	bool ahead_failed; /* it is not: it will be copied when it is asked for */
} mu_feed;

/* Takes the place from `step`, and with `ahead` the stage, unless memory is shared or the loader's ring too small. settings:
 * of a loader whose batches will come, or smaller ones. */
void mu_feed_take(mu_feed *feed, bool shared, bool ahead, const mu_loader_settings *settings, mu_arena *step);

/* Makes what coming ahead needs besides memory; release waits for it. A feed without a stage needs neither. */
mural_status mu_feed_open(mu_feed *feed, mural_error *err);
void mu_feed_release(mu_feed *feed);

/* Sends the loader's next batch ahead, where the feed can. Whatever fails here fails again, with words, when the batch is
 * asked for. *waited_seconds grows by how long the loader kept the caller. */
void mu_feed_ahead(mu_feed *feed, mu_loader *loader, double *waited_seconds);
/* The loader's next batch: the one that came ahead, or mu_loader_next. */
mural_status mu_feed_next(mu_feed *feed, mu_loader *loader, mu_batch **batch, double *waited_seconds, mural_error *err);

/* The stage's memory goes to another use (evaluation): nothing travels to it any more, and what was in it will be copied again. */
void mu_feed_leave_stage(mu_feed *feed);

/* *at: the batch for operations, until the next call. The batch itself is the feed's from now on, whatever is returned. */
mural_status mu_feed_batch(mu_feed *feed, mu_loader *loader, mu_batch *batch, const mu_batch **at, mural_error *err);

/* All work on the batch is queued: where it is done already, the slot goes back at once. */
void mu_feed_used(mu_feed *feed);

/* The queue is empty: held slots go back to their loader. */
void mu_feed_give_back(mu_feed *feed);

#endif
