/* Sums gradients over the data ranks, bucket by bucket, while backward is still running.
 *
 * A bucket is a run of neighbouring units, hence one contiguous range of the gradient spans. Backward visits units from the last to
 * the first; when the lowest unit of a bucket is ready, the bucket's all-reduce begins. With overlap off all buckets
 * begin after backward: the same buckets, so the same sums bit for bit. A rank that failed still begins every bucket (with
 * whatever is there), so that the others' collectives match; the step's flags tell them to throw the result away.
 *
 * Where the host does not share the device's memory, collectives of the host work on copies: a bucket that is ready travels to pinned
 * memory on a queue of its own, behind what the device still computes; its all-reduce begins when it has arrived, and the sum goes
 * back on the device's queue. A copy that fails is this rank's failure and nobody else's: its buckets begin all the same.
 *
 *     device   backward of u, u-1 ... | ready              wait | sum back | norm, update
 *     copies                          '--> bucket to the host | arrived
 *     ranks                                                   '--> all-reduce -->'
 *
 * Bucket size: at most reduce_bucket_size elements, and at most 1 / MU_BUCKETS of the model: the last bucket has no computation left to
 * hide behind. But never below MU_BUCKET_MIN elements, where latency costs more than overlap brings.
 * SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_REDUCER_H
#define MU_ENGINE_REDUCER_H

#include "comm/comm.h"
#include "engine/store.h"
#include "kernels/ops.h"

/* On a link that makes communication a third of a step (ViT-Ti, 2 ranks), overlap saved 82 % of it with 4, 89 % with 8. */
#define MU_BUCKETS 8
#define MU_BUCKET_MIN ((size_t)1 << 18) /* elements: 1 MiB in fp32 */

typedef struct mu_bucket {
	size_t lowest_unit; /* begins when this one is ready */
	size_t offset, elements; /* in the gradient spans */
	mu_pending pending;
	mu_event *ready, *arrived; /* on the device's queue, on that of copies; NULL where nothing is copied */
} mu_bucket;

typedef struct mu_reducer_settings {
	size_t first_unit; /* units before it are frozen: they have no gradients */
	size_t bucket_elements; /* at most */
	bool overlap; /* begin during backward */
	/* Gradients travel as wire_type. Where that is not their own type they go through `wire`, [elements] of it. */
	mu_dtype wire_type;
	void *wire; /* NULL: they travel as they are */
	const mu_ops *ops; /* for casts; borrowed, with context */
	mu_ops_context *context;
	const mu_device *device; /* NULL: the host shares its memory; otherwise borrowed, and gradients go through: */
	void *host; /* [elements] of wire_type, pinned */
} mu_reducer_settings;

typedef struct mu_reducer {
	const mu_store *store; /* borrowed, as comm */
	mu_comm *comm; /* may be exchanged between two steps; NULL: this rank takes no part */
	mu_reducer_settings settings;
	mu_bucket *buckets; /* in the order in which they begin */
	size_t n_buckets, begun;
	mu_queue *copies; /* NULL where nothing is copied */
	size_t sent; /* buckets on their way to the host, or there */
} mu_reducer;

typedef struct mu_reducer_times {
	double arriving; /* seconds until the last bucket could begin: the device was at work */
	double exposed; /* seconds in which this rank only waited */
	double hidden; /* seconds of communication behind computation */
} mu_reducer_times;

/* Most elements of a bucket in a model of so many; a unit is never cut. */
size_t mu_reducer_bucket_limit(size_t elements, size_t asked);

mural_status mu_reducer_init(mu_reducer *reducer, const mu_store *store, mu_comm *comm,
                             const mu_reducer_settings *settings, mural_error *err);
void mu_reducer_release(mu_reducer *reducer);

/* The unit's gradients are complete (last micro-batch of the step). Units must come in falling order. */
mural_status mu_reducer_ready(mu_reducer *reducer, size_t unit, mural_error *err);

/* Begins what has not begun, waits for all, and is ready for the next step. *local: how this rank fared so far; a device that fails
 * here changes it, with words in err. What is returned is the ranks' failure. */
mural_status mu_reducer_finish(mu_reducer *reducer, mural_status *local, mu_reducer_times *times, mural_error *err);

#endif
