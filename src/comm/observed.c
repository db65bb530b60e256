/* The observed collectives. What is in flight is found again by its handle, so this ring is small and searched.
 * SPDX-License-Identifier: MIT */
#include "comm/observed.h"

#include <stdlib.h>

#include "base/version.h"

enum { MOST = 256 }; /* in flight at once; as many as the MPI table keeps */

typedef struct observed_comm {
	mu_comm base;
	mu_comm *inner;
	mu_comm_listener *tell;
	void *listener;
	bool owns_inner; /* a group's was made for it */
	double ended; /* of the collective that ended last */
	int n;
	struct {
		const mu_pending *pending;
		mu_collective collective;
	} flying[MOST];
} observed_comm;

static observed_comm *inside(const mu_comm *comm)
{
	return (observed_comm *)comm;
}

/* One that finds no room is carried out like the others, only not told. */
static void note(observed_comm *self, const mu_pending *pending, mu_collective collective)
{
	if (self->n == MOST)
		return;
	self->flying[self->n].pending = pending;
	self->flying[self->n++].collective = collective;
}

static void finished(observed_comm *self, const mu_pending *pending)
{
	int i = 0;
	while (i < self->n && self->flying[i].pending != pending)
		i++;
	if (i == self->n)
		return;
	mu_comm_event event = {.collective = self->flying[i].collective,
	                       .bytes = pending->bytes,
	                       .begun = pending->begun,
	                       .started = pending->begun > self->ended ? pending->begun : self->ended,
	                       .ended = pending->ended};
	self->flying[i] = self->flying[--self->n];
	if (event.started > event.ended)
		event.started = event.begun; /* waited for in another order than begun */
	if (event.ended > self->ended)
		self->ended = event.ended;
	self->tell(self->listener, &event);
}

static mural_status all_reduce(mu_comm *comm, void *buffer, size_t count, mu_dtype type, mu_reduce how,
                               mu_pending *pending, mural_error *err)
{
	mu_comm *inner = inside(comm)->inner;
	MU_TRY(inner->table->all_reduce_begin(inner, buffer, count, type, how, pending, err));
	note(inside(comm), pending, MU_ALL_REDUCE);
	return MURAL_OK;
}

static mural_status broadcast(mu_comm *comm, void *buffer, size_t bytes, int root, mu_pending *pending,
                              mural_error *err)
{
	mu_comm *inner = inside(comm)->inner;
	MU_TRY(inner->table->broadcast_begin(inner, buffer, bytes, root, pending, err));
	note(inside(comm), pending, MU_BROADCAST);
	return MURAL_OK;
}

static mural_status all_gather(mu_comm *comm, const void *mine, void *gathered, size_t count, mu_dtype type,
                               mu_pending *pending, mural_error *err)
{
	mu_comm *inner = inside(comm)->inner;
	MU_TRY(inner->table->all_gather_begin(inner, mine, gathered, count, type, pending, err));
	note(inside(comm), pending, MU_ALL_GATHER);
	return MURAL_OK;
}

static mural_status reduce_scatter(mu_comm *comm, const void *buffer, void *mine, size_t count, mu_dtype type,
                                   mu_pending *pending, mural_error *err)
{
	mu_comm *inner = inside(comm)->inner;
	MU_TRY(inner->table->reduce_scatter_begin(inner, buffer, mine, count, type, pending, err));
	note(inside(comm), pending, MU_REDUCE_SCATTER);
	return MURAL_OK;
}

static mural_status all_to_all(mu_comm *comm, const void *from, void *to, size_t count, mu_dtype type,
                               mu_pending *pending, mural_error *err)
{
	mu_comm *inner = inside(comm)->inner;
	MU_TRY(inner->table->all_to_all_begin(inner, from, to, count, type, pending, err));
	note(inside(comm), pending, MU_ALL_TO_ALL);
	return MURAL_OK;
}

static mural_status barrier(mu_comm *comm, mu_pending *pending, mural_error *err)
{
	mu_comm *inner = inside(comm)->inner;
	MU_TRY(inner->table->barrier_begin(inner, pending, err));
	note(inside(comm), pending, MU_BARRIER);
	return MURAL_OK;
}

static mural_status test(mu_comm *comm, mu_pending *pending, bool *through, mural_error *err)
{
	mu_comm *inner = inside(comm)->inner;
	MU_TRY(inner->table->test(inner, pending, through, err));
	if (*through)
		finished(inside(comm), pending);
	return MURAL_OK;
}

static mural_status wait_finished(mu_comm *comm, mu_pending *pending, mural_error *err)
{
	mu_comm *inner = inside(comm)->inner;
	MU_TRY(inner->table->wait(inner, pending, err));
	finished(inside(comm), pending);
	return MURAL_OK;
}

static mural_status never_opened(mu_comm **comm, mural_error *err)
{
	*comm = NULL;
	return mu_bug(err, "observed collectives are made around others, not opened");
}

static void close_observed(mu_comm *comm)
{
	if (comm && inside(comm)->owns_inner)
		inside(comm)->inner->table->close(inside(comm)->inner);
	free(comm);
}

static void abort_all(mu_comm *comm, int code)
{
	mu_comm *inner = inside(comm)->inner;
	inner->table->abort(inner, code);
}

static void watch_inner(mu_comm *comm, const mu_comm_watch *watch)
{
	mu_comm *inner = inside(comm)->inner;
	inner->table->watch(inner, watch);
}

static const mu_comm_facts *facts(const mu_comm *comm)
{
	const mu_comm *inner = inside(comm)->inner;
	return inner->table->facts(inner);
}

static mural_status group(mu_comm *comm, const bool *member_R, mu_comm **made, mural_error *err)
{
	const observed_comm *self = inside(comm);
	mu_comm *inner;
	*made = NULL;
	MU_TRY(self->inner->table->group(self->inner, member_R, &inner, err));
	if (!inner)
		return MURAL_OK;
	mural_status status =
	        mu_comm_agree(inner, mu_observed_create(made, inner, self->tell, self->listener, err), err);
	if (*made)
		inside(*made)->owns_inner = true; /* and closes it */
	if (status == MURAL_OK)
		return MURAL_OK;
	if (*made)
		close_observed(*made);
	else
		inner->table->close(inner);
	*made = NULL;
	return status;
}

static const mu_comm_table table = {
        .name = "observed",
        .build_id = MU_BUILD_ID,
        .open = never_opened,
        .close = close_observed,
        .abort = abort_all,
        .facts = facts,
        .all_reduce_begin = all_reduce,
        .broadcast_begin = broadcast,
        .all_gather_begin = all_gather,
        .reduce_scatter_begin = reduce_scatter,
        .all_to_all_begin = all_to_all,
        .barrier_begin = barrier,
        .test = test,
        .wait = wait_finished,
        .group = group,
        .watch = watch_inner,
};

mural_status mu_observed_create(mu_comm **comm, mu_comm *inner, mu_comm_listener *tell, void *listener,
                                mural_error *err)
{
	*comm = NULL;
	observed_comm *self = calloc(1, sizeof *self);
	if (!self)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the log of collectives");
	self->base.table = &table;
	self->inner = inner;
	self->tell = tell;
	self->listener = listener;
	*comm = &self->base;
	return MURAL_OK;
}

const mu_comm *mu_observed_inside(const mu_comm *comm)
{
	return comm->table == &table ? inside(comm)->inner : comm;
}
