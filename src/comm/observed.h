/* The observed collectives: another table's, unchanged, each told to a listener when it has been waited for.
 *
 * Nothing is synchronised for it: overlap stays as it is (DeepSpeed's log waits for each collective). It costs two stores at the
 * beginning and a call at the end; a run that nobody observes uses the inner comm directly and pays nothing. One thread at a time
 * may use an observed comm.
 * SPDX-License-Identifier: MIT */
#ifndef MU_COMM_OBSERVED_H
#define MU_COMM_OBSERVED_H

#include "comm/comm.h"

typedef struct mu_comm_event {
	mu_collective collective;
	size_t bytes; /* as in mu_pending */
	double begun; /* posted, mu_now() seconds */
	double started; /* the later of begun and the end of the collective before: they share the links */
	double ended;
} mu_comm_event;

/* Called by the thread that waits, in the order of the waits. */
typedef void mu_comm_listener(void *listener, const mu_comm_event *event);

/* inner and listener are borrowed and outlive the comm; close frees the observed comm only. */
mural_status mu_observed_create(mu_comm **comm, mu_comm *inner, mu_comm_listener *tell, void *listener,
                                mural_error *err);

/* What an observed comm is around; any other comm itself. */
const mu_comm *mu_observed_inside(const mu_comm *comm);

#endif
