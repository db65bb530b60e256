/* How evenly the ranks of a run were loaded: what each spent computing, gathered at the end. SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_RUN_LOAD_H
#define MU_ENGINE_RUN_LOAD_H

#include "base/json.h"
#include "comm/comm.h"
#include "mural/engine.h"

/* Of one rank: waiting for images, forward and backward; not what it waited for others. */
typedef struct mu_run_load { /* zero-initialise */
	uint64_t steps; /* counted; the first one of a process, with its cold caches, only while there is no other */
	bool warm; /* the first one is over */
	double computing; /* seconds in these steps */
	double *seconds; /* [ranks] on rank 0 after gathering: per step, of each rank; NULL before */
	int ranks;
} mu_run_load;

void mu_run_load_note(mu_run_load *load, const mural_step_facts *step);
/* All ranks, after the last step. */
mural_status mu_run_load_gather(mu_run_load *load, mural_comm *comm, mural_error *err);
void mu_run_load_release(mu_run_load *load);

/* "load" of result.json; nothing before gathering. */
void mu_run_load_write(const mu_run_load *load, mu_json *json);

#endif
