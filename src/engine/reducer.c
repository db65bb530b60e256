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

/* What copies need besides memory. */
static mural_status open_copies(mu_reducer *reducer, mural_error *err)
{
	const mu_device *device = reducer->settings.device;
	if (!device)
		return MURAL_OK;
	MU_TRY(device->table->queue_create(device->handle, &reducer->copies, err));
	for (size_t i = 0; i < reducer->n_buckets; i++) {
		MU_TRY(device->table->event_create(device->handle, &reducer->buckets[i].ready, err));
		MU_TRY(device->table->event_create(device->handle, &reducer->buckets[i].arrived, err));
	}
	return MURAL_OK;
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
	return open_copies(reducer, err);
}

void mu_reducer_release(mu_reducer *reducer)
{
	if (!reducer)
		return;
	const mu_device_table *table = reducer->settings.device ? reducer->settings.device->table : NULL;
	if (table && reducer->copies)
		table->wait(reducer->copies, NULL); /* the memory may go next */
	for (size_t i = 0; table && i < reducer->n_buckets; i++) {
		if (reducer->buckets[i].ready)
			table->event_free(reducer->buckets[i].ready);
		if (reducer->buckets[i].arrived)
			table->event_free(reducer->buckets[i].arrived);
	}
	if (table && reducer->copies)
		table->queue_free(reducer->copies);
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

/* Where the device has what the ranks exchange, and where the ranks do. */
static void *device_buffer(const mu_reducer *reducer, const mu_bucket *bucket)
{
	return reducer->settings.wire ? wire_of(reducer, bucket) : gradients_of(reducer, bucket);
}

static mu_dtype wire_type(const mu_reducer *reducer)
{
	return reducer->settings.wire ? reducer->settings.wire_type : reducer->store->settings.gradient_type;
}

static void *buffer_of(const mu_reducer *reducer, const mu_bucket *bucket)
{
	if (!reducer->settings.device)
		return device_buffer(reducer, bucket);
	return (char *)reducer->settings.host + bucket->offset * mu_dtype_bytes(wire_type(reducer));
}

static size_t bytes_of(const mu_reducer *reducer, const mu_bucket *bucket)
{
	return bucket->elements * mu_dtype_bytes(wire_type(reducer));
}

/* On its way to where the ranks exchange it, if that is elsewhere. */
static mural_status send_next(mu_reducer *reducer, mural_error *err)
{
	mu_bucket *bucket = &reducer->buckets[reducer->sent++];
	const mu_device *device = reducer->settings.device;
	if (reducer->settings.wire)
		MU_TRY(to_wire(reducer, bucket, err));
	if (!device)
		return MURAL_OK;
	MU_TRY(device->table->event_record(bucket->ready, device->queue, err));
	MU_TRY(device->table->queue_wait_event(reducer->copies, bucket->ready, err));
	MU_TRY(device->table->copy(reducer->copies, buffer_of(reducer, bucket), device_buffer(reducer, bucket),
	                           bytes_of(reducer, bucket), err));
	return device->table->event_record(bucket->arrived, reducer->copies, err);
}

static mural_status begin_next(mu_reducer *reducer, mural_error *err)
{
	mu_bucket *bucket = &reducer->buckets[reducer->begun++];
	return reducer->comm->table->all_reduce_begin(reducer->comm, buffer_of(reducer, bucket), bucket->elements,
	                                              wire_type(reducer), MU_SUM, &bucket->pending, err);
}

/* Whether the next bucket is where the ranks can exchange it. */
static mural_status has_arrived(const mu_reducer *reducer, bool *arrived, mural_error *err)
{
	*arrived = true;
	if (!reducer->settings.device)
		return MURAL_OK;
	return reducer->settings.device->table->event_test(reducer->buckets[reducer->begun].arrived, arrived, err);
}

mural_status mu_reducer_ready(mu_reducer *reducer, size_t unit, mural_error *err)
{
	bool arrived = true;
	if (alone(reducer) || !reducer->settings.overlap)
		return MURAL_OK;
	while (reducer->sent < reducer->n_buckets && reducer->buckets[reducer->sent].lowest_unit >= unit)
		MU_TRY(send_next(reducer, err));
	while (reducer->begun < reducer->sent) {
		MU_TRY(has_arrived(reducer, &arrived, err));
		if (!arrived)
			break;
		MU_TRY(begin_next(reducer, err));
	}
	return MURAL_OK;
}

static mural_status await_next(const mu_reducer *reducer, mural_error *err)
{
	for (;;) {
		bool arrived;
		MU_TRY(has_arrived(reducer, &arrived, err));
		if (arrived)
			return MURAL_OK;
		mu_sleep(20e-6); /* a card that is waited for by asking burns a core that loaders and MPI need */
	}
}

static mural_status begin_rest(mu_reducer *reducer, mural_status *local, mural_error *err)
{
	for (; reducer->sent < reducer->n_buckets && *local == MURAL_OK;)
		*local = send_next(reducer, err);
	while (reducer->begun < reducer->n_buckets) {
		if (*local == MURAL_OK)
			*local = await_next(reducer, err);
		MU_TRY(begin_next(reducer, err));
	}
	return MURAL_OK;
}

/* The sum, back on the device. */
static mural_status take_back(const mu_reducer *reducer, const mu_bucket *bucket, mural_error *err)
{
	const mu_device *device = reducer->settings.device;
	if (device)
		MU_TRY(device->table->copy(device->queue, device_buffer(reducer, bucket), buffer_of(reducer, bucket),
		                           bytes_of(reducer, bucket), err));
	return from_wire(reducer, bucket, err);
}

mural_status mu_reducer_finish(mu_reducer *reducer, mural_status *local, mu_reducer_times *times, mural_error *err)
{
	*times = (mu_reducer_times){0};
	if (alone(reducer))
		return MURAL_OK;
	double from = mu_now(), busy = 0, busy_until = 0;
	MU_TRY(begin_rest(reducer, local, err));
	if (reducer->settings.device) {
		times->arriving = mu_now() - from;
		from += times->arriving;
	}
	for (size_t i = 0; i < reducer->n_buckets; i++) {
		mu_pending *pending = &reducer->buckets[i].pending;
		MU_TRY(reducer->comm->table->wait(reducer->comm, pending, err));
		if (*local == MURAL_OK)
			*local = take_back(reducer, &reducer->buckets[i], err);
		double begun = pending->begun > busy_until ? pending->begun : busy_until;
		if (pending->ended > begun) {
			busy += pending->ended - begun;
			busy_until = pending->ended;
		}
	}
	reducer->begun = reducer->sent = 0;
	times->exposed = mu_now() - from;
	times->hidden = busy > times->exposed ? busy - times->exposed : 0;
	return MURAL_OK;
}
