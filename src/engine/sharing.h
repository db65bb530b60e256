/* Who takes how many images of a batch while a training goes on.
 *
 * With equal shares there is nothing to do, and nothing is done: no arrays, no messages. Else every rank knows the share of each,
 * and cuts its own into micro-batches of at most its capacity, which may differ from rank to rank: one with little memory runs more
 * and smaller ones, and all reduce once per step.
 * SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_SHARING_H
#define MU_ENGINE_SHARING_H

#include "comm/comm.h"
#include "engine/shares.h"

typedef struct mu_sharing { /* all zero: equal shares */
	mu_shares_kind kind;
	int ranks, rank;
	size_t capacity; /* images of a micro-batch on this rank; set by whoever plans memory, at first the bound */
	int *share_R; /* [ranks] in force */
	int *capacity_R; /* [ranks] of all; known after mu_sharing_meet */
} mu_sharing;

/* MURAL_USAGE: the shares in the configuration are not for these ranks and this batch. training: without it shares are equal. */
mural_status mu_sharing_init(mu_sharing *sharing, const mural_config *config, const mu_comm_facts *ranks, bool training,
                             mural_error *err);
void mu_sharing_release(mu_sharing *sharing);

/* All ranks: everybody learns of everybody's capacity. */
mural_status mu_sharing_meet(mu_sharing *sharing, mu_comm *comm, mural_error *err);

/* Most micro-batches that this rank may have in a step. */
uint64_t mu_sharing_most_micros(const mu_sharing *sharing, const mural_batch_config *batch);

#endif
