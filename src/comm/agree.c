/* What is built on the table: collectives that wait, and "did anybody fail?".
 *
 * Agreement costs one reduction of an integer, the lowest failed rank, while all is well; only then is that rank's
 * mural_error broadcast, as plain bytes: all ranks run the same program.
 * SPDX-License-Identifier: MIT */
#include <limits.h>
#include <string.h>

#include "comm/comm.h"

const char *mu_collective_text(mu_collective collective)
{
	switch (collective) {
#define MU_X(name, text) \
	case name: return text;
		MU_COLLECTIVE_LIST(MU_X)
#undef MU_X
	case MU_COLLECTIVE_COUNT: break;
	}
	return "unknown";
}

mural_status mu_comm_all_reduce(mu_comm *comm, void *buffer, size_t count, mu_dtype type, mu_reduce how,
                                mural_error *err)
{
	mu_pending pending = {0};
	MU_TRY(comm->table->all_reduce_begin(comm, buffer, count, type, how, &pending, err));
	return comm->table->wait(comm, &pending, err);
}

mural_status mu_comm_broadcast(mu_comm *comm, void *buffer, size_t bytes, int root, mural_error *err)
{
	mu_pending pending = {0};
	MU_TRY(comm->table->broadcast_begin(comm, buffer, bytes, root, &pending, err));
	return comm->table->wait(comm, &pending, err);
}

mural_status mu_comm_barrier(mu_comm *comm, mural_error *err)
{
	mu_pending pending = {0};
	MU_TRY(comm->table->barrier_begin(comm, &pending, err));
	return comm->table->wait(comm, &pending, err);
}

/* This rank's failure as the others shall read it; a status without words gets some. */
static mural_error own_failure(const mu_comm_facts *facts, mural_status status, const mural_error *err)
{
	mural_error own = {0};
	if (err && err->status != MURAL_OK)
		own = *err;
	else
		mu_fail(&own, status, NULL, "%s", mural_status_text(status));
	own.rank = facts->rank;
	own.has_rank = true;
	return own;
}

/* The communication that should carry the news fails too: `err` keeps the first failure, the status is never lost. */
static mural_status either(mural_status own, mural_status comm)
{
	return own != MURAL_OK ? own : comm;
}

mural_status mu_comm_agree(mu_comm *comm, mural_status status, mural_error *err)
{
	const mu_comm_facts *facts = comm->table->facts(comm);
	if (facts->size == 1)
		return status;
	int32_t lowest = status == MURAL_OK ? INT32_MAX : facts->rank;
	mural_status reduced = mu_comm_all_reduce(comm, &lowest, 1, MU_I32, MU_MIN, err);
	if (reduced != MURAL_OK)
		return either(status, reduced);
	if (lowest == INT32_MAX)
		return MURAL_OK;

	mural_error shared = {0};
	if (status != MURAL_OK) {
		shared = own_failure(facts, status, err);
		if (err)
			*err = shared;
	}
	mural_status sent = mu_comm_broadcast(comm, &shared, sizeof shared, lowest, err);
	if (sent != MURAL_OK || status != MURAL_OK)
		return either(status, sent);
	shared.cause = shared.status;
	shared.status = MURAL_PEER;
	if (err)
		*err = shared;
	return MURAL_PEER;
}
