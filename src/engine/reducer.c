/* Gradient buckets. SPDX-License-Identifier: MIT */
#include "engine/reducer.h"

#include <stdlib.h>

#include "base/clock.h"

size_t mu_reducer_bucket_limit(size_t elements, size_t asked)
{
	size_t limit = (elements + MU_BUCKETS - 1) / MU_BUCKETS;
	if (limit < MU_BUCKET_MIN)
		limit = MU_BUCKET_MIN;
	return asked < limit ? asked : limit;
}

mural_status mu_reducer_init(mu_reducer *reducer, const mu_store *store, mu_comm *comm,
                             const mu_reducer_settings *settings, mural_error *err)
{
	*reducer = (mu_reducer){.store = store, .comm = comm, .settings = *settings};
	reducer->buckets = calloc(store->n_units, sizeof *reducer->buckets);
	if (!reducer->buckets)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the table of gradient buckets");
	size_t limit = mu_reducer_bucket_limit(store->elements, settings->bucket_elements);
	mu_bucket *open = NULL;
	for (size_t u = store->n_units; u-- > settings->first_unit;) {
		size_t elements = store->units[u].elements;
		if (!open || open->elements + elements > limit)
			open = &reducer->buckets[reducer->n_buckets++];
		open->lowest_unit = u;
		open->offset = store->offset[u];
		open->elements += elements;
	}
	return MURAL_OK;
}

void mu_reducer_release(mu_reducer *reducer)
{
	if (!reducer)
		return;
	free(reducer->buckets);
	*reducer = (mu_reducer){0};
}

static bool alone(const mu_reducer *reducer)
{
	return !reducer->comm || reducer->comm->table->facts(reducer->comm)->size == 1;
}

static char *gradients_of(const mu_reducer *reducer, const mu_bucket *bucket)
{
	const mu_store *store = reducer->store;
	return (char *)store->gradients + bucket->offset * mu_dtype_bytes(store->settings.gradient_type);
}

static char *wire_of(const mu_reducer *reducer, const mu_bucket *bucket)
{
	return (char *)reducer->settings.wire + bucket->offset * mu_dtype_bytes(reducer->settings.wire_type);
}

static mural_status to_wire(const mu_reducer *reducer, const mu_bucket *bucket, mural_error *err)
{
	const mu_reducer_settings *s = &reducer->settings;
	const mu_cast call = {.n = bucket->elements,
	                      .from_type = reducer->store->settings.gradient_type,
	                      .to_type = s->wire_type,
	                      .from = gradients_of(reducer, bucket),
	                      .to = wire_of(reducer, bucket)};
	return s->ops->cast(s->context, &call, err);
}

static mural_status from_wire(const mu_reducer *reducer, const mu_bucket *bucket, mural_error *err)
{
	const mu_reducer_settings *s = &reducer->settings;
	const mu_cast call = {.n = bucket->elements,
	                      .from_type = s->wire_type,
	                      .to_type = reducer->store->settings.gradient_type,
	                      .from = wire_of(reducer, bucket),
	                      .to = gradients_of(reducer, bucket)};
	return s->wire ? s->ops->cast(s->context, &call, err) : MURAL_OK;
}

static mural_status begin_next(mu_reducer *reducer, mural_error *err)
{
	mu_bucket *bucket = &reducer->buckets[reducer->begun++];
	const mu_reducer_settings *s = &reducer->settings;
	if (s->wire)
		MU_TRY(to_wire(reducer, bucket, err));
	void *buffer = s->wire ? wire_of(reducer, bucket) : gradients_of(reducer, bucket);
	const mu_dtype type = s->wire ? s->wire_type : reducer->store->settings.gradient_type;
	return reducer->comm->table->all_reduce_begin(reducer->comm, buffer, bucket->elements, type, MU_SUM,
	                                              &bucket->pending, err);
}

mural_status mu_reducer_ready(mu_reducer *reducer, size_t unit, mural_error *err)
{
	if (alone(reducer) || !reducer->settings.overlap)
		return MURAL_OK;
	while (reducer->begun < reducer->n_buckets && reducer->buckets[reducer->begun].lowest_unit >= unit)
		MU_TRY(begin_next(reducer, err));
	return MURAL_OK;
}

mural_status mu_reducer_finish(mu_reducer *reducer, mu_reducer_times *times, mural_error *err)
{
	*times = (mu_reducer_times){0};
	if (alone(reducer))
		return MURAL_OK;
	double from = mu_now(), busy = 0, busy_until = 0;
	while (reducer->begun < reducer->n_buckets)
		MU_TRY(begin_next(reducer, err));
	for (size_t i = 0; i < reducer->n_buckets; i++) {
		mu_pending *pending = &reducer->buckets[i].pending;
		MU_TRY(reducer->comm->table->wait(reducer->comm, pending, err));
		MU_TRY(from_wire(reducer, &reducer->buckets[i], err));
		double begun = pending->begun > busy_until ? pending->begun : busy_until;
		if (pending->ended > begun) {
			busy += pending->ended - begun;
			busy_until = pending->ended;
		}
	}
	reducer->begun = 0;
	times->exposed = mu_now() - from;
	times->hidden = busy > times->exposed ? busy - times->exposed : 0;
	return MURAL_OK;
}
