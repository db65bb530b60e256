/* Who takes how many images of a batch while a training goes on.
 *
 * With equal shares there is nothing to do, and nothing is done: no arrays, no messages. Else every rank knows the share of each,
 * and cuts its own into micro-batches of at most its capacity, which may differ from rank to rank: one with little memory runs more
 * and smaller ones, and all reduce once per step.
 *
 * Shares that move change between two steps that all ranks know beforehand. After step `meet_after` the ranks meet: each tells of
 * its steps (balance.h), the first one decides and tells all, and what it decided holds MU_SHARING_LEAD steps later. Up to there,
 * and never beyond, loaders have read ahead: so no image is read twice. The first rank decides alone because libraries of
 * mathematics choose their code by processor, and one share that differs by one would lose an image.
 *
 * Who is left out of the reductions (balance_remove) has no images from then on, and stays out. It still takes part in what all ranks
 * do together, the small sums of every step included, so whatever it is told of (a failure, a wish to stop) reaches it as before.
 *
 *     steps        ... meet_after |  LEAD with the old shares  | next_from: with the new ones ...
 *     loaders read ..............................settled until the next meeting ....| + LEAD
 * SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_SHARING_H
#define MU_ENGINE_SHARING_H

#include "comm/comm.h"
#include "engine/balance.h"
#include "engine/shares.h"
#include "engine/sharing_replay.h"

enum { MU_SHARING_NAME = 96 }; /* bytes */
enum { MU_SHARING_LEAD = 2 }; /* steps; loaders keep a slow read away from the device for as long */

/* Steps are of the run and counted from 0: step n is the one that begins when n lie behind. */
typedef struct mu_sharing { /* all zero: equal shares */
	mu_shares_kind kind;
	int ranks, rank;
	size_t capacity; /* images of a micro-batch on this rank; set by whoever plans memory, at first the bound */
	int batch;
	int *share_R; /* [ranks] in force; NULL: equal */
	int *capacity_R; /* [ranks] of all; known after mu_sharing_introduce */
	char (*name_R)[MU_SHARING_NAME]; /* [ranks] for people, "rank 3 (host b)"; known then, too */

	/* where shares move */
	int *next_R; /* [ranks] from step next_from on; next_from 0: no others are known */
	bool *member_R, *next_member_R; /* [ranks]: takes part in reductions */
	bool any_out; /* somebody does not */
	uint64_t next_from;
	uint64_t meet_after; /* steps done when ranks meet; UINT64_MAX: never */
	uint64_t settled; /* shares of steps before this one are known */
	uint64_t met; /* steps done at the last meeting; 0: none yet */
	uint64_t turned; /* steps done when the shares in force began, if that was in this run */
	uint64_t meetings, changes; /* so far */
	mu_balance_window window; /* this rank's steps since then */
	mu_balance_row *rows; /* [ranks] of the last meeting */
	int32_t *message; /* what the first rank tells */
	mu_sharing_log log; /* "replay" */
	size_t log_at; /* changes of it that are known to the loader */

	/* the first rank's */
	mu_balance *balance; /* "auto" */
	const mu_balance_decision *decision; /* of the last meeting; NULL: none yet */
} mu_sharing;

/* MURAL_USAGE: the shares in the configuration are not for these ranks and this batch. training: without it shares are equal. */
mural_status mu_sharing_init(mu_sharing *sharing, const mural_config *config, const mu_comm_facts *ranks, bool training,
                             mural_error *err);
void mu_sharing_release(mu_sharing *sharing);

/* All ranks: everybody learns of everybody's capacity and name. */
mural_status mu_sharing_introduce(mu_sharing *sharing, mu_comm *comm, mural_error *err);

/* Before the first step: what the first rank needs. Its failure is returned there; others do not know of it. network: what is known
 * of links; its arrays are copied. */
mural_status mu_sharing_prepare(mu_sharing *sharing, const mu_balance_network *network,
                                const mural_balance_config *config, mural_error *err);
/* All ranks, when they have agreed that the first one is prepared. steps: done so far. Then share_R, next_from, next_R and settled
 * are for the loader. */
mural_status mu_sharing_begin(mu_sharing *sharing, uint64_t steps, mu_comm *comm, mural_error *err);

/* Whether shares move. */
static inline bool mu_sharing_moves(const mu_sharing *sharing)
{
	return sharing->kind == MU_SHARES_AUTO || sharing->kind == MU_SHARES_REPLAY;
}

/* A step on this rank, from its beginning until its last reduction could begin, and what was waited for afterwards. */
typedef struct mu_sharing_step {
	uint64_t planned; /* images of all ranks */
	uint64_t images, micro_batches; /* this rank's */
	double seconds, waited;
} mu_sharing_step;

void mu_sharing_note(mu_sharing *sharing, const mu_sharing_step *step);

typedef struct mu_sharing_news {
	bool loader; /* next_from, next_R and settled are other ones */
	bool members; /* from the next step on other ranks take part in reductions */
} mu_sharing_news;

/* All ranks, with `steps` done: shares that are due come into force; where it is time the ranks meet. */
mural_status mu_sharing_go_on(mu_sharing *sharing, uint64_t steps, mu_comm *comm, mu_sharing_news *news,
                              mural_error *err);

/* Is this rank left out of the reductions? */
static inline bool mu_sharing_is_out(const mu_sharing *sharing)
{
	return sharing->any_out && !sharing->member_R[sharing->rank];
}

/* Most micro-batches that this rank may have in a step. */
uint64_t mu_sharing_most_micros(const mu_sharing *sharing, const mural_batch_config *batch);

#endif
