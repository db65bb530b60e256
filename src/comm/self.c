/* The collectives table of one rank: every collective is a copy or nothing, and is finished when it has begun.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/version.h"
#include "comm/check.h"
#include "comm/comm.h"

typedef struct self_comm {
	mu_comm base;
	mu_comm_facts facts;
} self_comm;

static mural_status self_open(mu_comm **comm, mural_error *err)
{
	self_comm *self = calloc(1, sizeof *self);
	*comm = NULL;
	if (!self)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for a team of one");
	self->base.table = &mu_comm_self;
	self->facts = (mu_comm_facts){.rank = 0, .size = 1, .local_rank = 0, .local_size = 1, .library = "none"};
	if (gethostname(self->facts.host, sizeof self->facts.host - 1))
		strcpy(self->facts.host, "localhost");
	*comm = &self->base;
	return MURAL_OK;
}

static void self_close(mu_comm *comm)
{
	free(comm);
}

static void self_abort(mu_comm *comm, int code)
{
	(void)comm;
	_exit(code);
}

static const mu_comm_facts *self_facts(const mu_comm *comm)
{
	return &((const self_comm *)comm)->facts;
}

/* The only rank's block goes from `from` to `to`, which may be the same place. */
static mural_status move(const void *from, void *to, size_t bytes, mu_pending *pending, mural_error *err)
{
	MU_TRY(mu_comm_check_idle(pending, err));
	pending->begun = mu_now();
	if (bytes && from != to)
		memcpy(to, from, bytes);
	pending->ended = mu_now();
	pending->bytes = bytes;
	return MURAL_OK;
}

static mural_status self_all_reduce(mu_comm *comm, void *buffer, size_t count, mu_dtype type, mu_reduce how,
                                    mu_pending *pending, mural_error *err)
{
	(void)comm;
	MU_TRY(mu_comm_check_reduce(type, how, err));
	return move(buffer, buffer, count * mu_dtype_bytes(type), pending, err);
}

static mural_status self_broadcast(mu_comm *comm, void *buffer, size_t bytes, int root, mu_pending *pending,
                                   mural_error *err)
{
	MU_TRY(mu_comm_check_root(self_facts(comm), root, err));
	return move(buffer, buffer, bytes, pending, err);
}

static mural_status self_all_gather(mu_comm *comm, const void *mine, void *gathered, size_t count, mu_dtype type,
                                    mu_pending *pending, mural_error *err)
{
	(void)comm;
	return move(mine, gathered, count * mu_dtype_bytes(type), pending, err);
}

static mural_status self_reduce_scatter(mu_comm *comm, const void *buffer, void *mine, size_t count, mu_dtype type,
                                        mu_pending *pending, mural_error *err)
{
	(void)comm;
	MU_TRY(mu_comm_check_reduce(type, MU_SUM, err));
	return move(buffer, mine, count * mu_dtype_bytes(type), pending, err);
}

static mural_status self_all_to_all(mu_comm *comm, const void *from, void *to, size_t count, mu_dtype type,
                                    mu_pending *pending, mural_error *err)
{
	(void)comm;
	return move(from, to, count * mu_dtype_bytes(type), pending, err);
}

static mural_status self_barrier(mu_comm *comm, mu_pending *pending, mural_error *err)
{
	(void)comm;
	return move(NULL, NULL, 0, pending, err);
}

static mural_status self_test(mu_comm *comm, mu_pending *pending, bool *finished, mural_error *err)
{
	(void)comm, (void)pending, (void)err;
	*finished = true;
	return MURAL_OK;
}

static mural_status self_wait(mu_comm *comm, mu_pending *pending, mural_error *err)
{
	(void)comm, (void)pending, (void)err;
	return MURAL_OK;
}

static mural_status self_group(mu_comm *comm, const bool *member_R, mu_comm **group, mural_error *err)
{
	(void)comm;
	*group = NULL;
	return member_R[0] ? self_open(group, err) : MURAL_OK;
}

static void self_watch(mu_comm *comm, const mu_comm_watch *watch)
{
	(void)comm, (void)watch; /* there is nobody else */
}

const mu_comm_table mu_comm_self = {
        .name = "self",
        .build_id = MU_BUILD_ID,
        .open = self_open,
        .close = self_close,
        .abort = self_abort,
        .facts = self_facts,
        .all_reduce_begin = self_all_reduce,
        .broadcast_begin = self_broadcast,
        .all_gather_begin = self_all_gather,
        .reduce_scatter_begin = self_reduce_scatter,
        .all_to_all_begin = self_all_to_all,
        .barrier_begin = self_barrier,
        .test = self_test,
        .wait = self_wait,
        .group = self_group,
        .watch = self_watch,
};
