/* Ranks of one host divide its cores among themselves. SPDX-License-Identifier: MIT */
#ifndef MU_COMM_PLACE_H
#define MU_COMM_PLACE_H

#include "base/affinity.h"
#include "comm/comm.h"

/* Collective: exchanges masks, makes this rank's plan and applies it to the calling thread. Call it before threads for
 * arithmetic exist. plan may be NULL. */
mural_status mu_comm_place(mu_comm *comm, mu_affinity_plan *plan, mural_error *err);

/* The number in MURAL_SLOTS ("0,2,0,1" for ranks 0 to 3), or the local rank if there is none that this rank could read. */
int mu_comm_slot(const mu_comm_facts *facts);

#endif
