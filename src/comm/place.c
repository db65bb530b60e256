/* Who sits on which core of a host: every rank tells all the others its host and its mask, and each computes the same plan.
 * SPDX-License-Identifier: MIT */
#include "comm/place.h"

#include <stdlib.h>
#include <string.h>

typedef struct seat {
	char host[256];
	int local_rank;
	mu_cpu_mask mask;
} seat;

static mural_status exchange(mu_comm *comm, seat *seats, mural_error *err)
{
	const mu_comm_facts *facts = comm->table->facts(comm);
	seat *own = &seats[facts->rank];
	mu_pending pending = {0};
	memcpy(own->host, facts->host, sizeof own->host);
	own->local_rank = facts->local_rank;
	mu_cpu_mask_read(&own->mask);
	MU_TRY(comm->table->all_gather_begin(comm, own, seats, sizeof *own, MU_U8, &pending, err));
	return comm->table->wait(comm, &pending, err);
}

/* Masks of this host's ranks by local rank. Two hosts of one name would put a local rank twice: the later one counts, and
 * masks that differ bind nobody. */
static void pick_masks(const mu_comm_facts *facts, const seat *seats, mu_cpu_mask *masks)
{
	for (int r = 0; r < facts->size; r++)
		if (strcmp(seats[r].host, facts->host) == 0 && seats[r].local_rank < facts->local_size)
			masks[seats[r].local_rank] = seats[r].mask;
}

mural_status mu_comm_place(mu_comm *comm, mu_affinity_plan *plan, mural_error *err)
{
	const mu_comm_facts *facts = comm->table->facts(comm);
	mural_status status = MURAL_OK;
	mu_affinity_plan own;
	seat *seats = calloc((size_t)facts->size, sizeof *seats);
	mu_cpu_mask *masks = calloc((size_t)facts->local_size, sizeof *masks);
	if (!seats || !masks) {
		status =
		        mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the cpu masks of %d ranks", facts->size);
		goto out;
	}
	MU_TRY_OUT(exchange(comm, seats, err));
	pick_masks(facts, seats, masks);
	mu_affinity_make_plan(masks, facts->local_size, facts->local_rank, &mu_cpu_system, &own);
	mu_affinity_apply(&own);
	if (plan)
		*plan = own;
out:
	free(masks);
	free(seats);
	return status;
}

int mu_comm_slot(const mu_comm_facts *facts)
{
	const char *at = getenv("MURAL_SLOTS");
	for (int r = 0; at && r < facts->rank; r++) {
		at = strchr(at, ',');
		at += at != NULL;
	}
	if (!at || *at < '0' || *at > '9')
		return facts->local_rank;
	return (int)strtol(at, NULL, 10);
}
