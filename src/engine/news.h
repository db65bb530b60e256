/* What ranks tell each other of a step where somebody is left out of the reductions.
 *
 * Members sum among themselves, so a step is as long as their team makes it. The others learn of it by one small reduction over all
 * ranks per step. Members begin it and do not wait for it before the next step has ended: a slow link has a whole step of time.
 *
 *     member      ... sum among members, update, tell(s) | step s + 1 ... tell(s + 1): the first that waits for (s)
 *     left out    ... tell(s), waits for it: the members' record of step s | ...
 *
 * What a member says (it failed, all shall stop) everybody knows in the same step: members by their own sum, the others because they
 * wait. What somebody who is left out says comes into force a step later, on that rank too. So all ranks leave after the same step.
 * SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_NEWS_H
#define MU_ENGINE_NEWS_H

#include "comm/comm.h"
#include "kernels/ops.h"

typedef struct mu_news { /* zero-initialise */
	struct { /* doubles only: it travels as one sum */
		mu_step_record record; /* the first rank's; 0 on others */
		double failed, stop_asked; /* ranks that are left out */
	} told; /* of the step told of last, in flight or known */
	mu_pending pending;
	mural_error failure; /* this rank's, which is left out: not in force yet */
} mu_news;

/* This rank's part. */
typedef struct mu_news_own {
	bool out; /* it is left out */
	bool stop_asked; /* read where it is */
	mural_status status; /* of a member: the error that all members know of by now */
} mu_news_own;

/* A rank that is left out failed, and goes on until that is in force; err is taken over and cleared. */
void mu_news_fail(mu_news *news, mural_status status, mural_error *err);

/* All ranks, once per step. record: of this step, on members; becomes theirs on the others. Wishes of the step before to stop are
 * added to it. Fails on all ranks if somebody who is left out failed in the step before. */
mural_status mu_news_tell(mu_news *news, mu_comm *comm, const mu_news_own *own, mu_step_record *record,
                          mural_error *err);

/* All ranks, behind the last step: no failure is left behind. */
mural_status mu_news_settle(mu_news *news, mu_comm *comm, mural_error *err);

/* What is in flight belongs to this struct: waits for it, as far as the comm still works. */
void mu_news_release(mu_news *news, mu_comm *comm);

#endif
