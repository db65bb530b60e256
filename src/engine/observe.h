/* What a run tells about itself beyond its result: curves, the log of collectives, the profile of a step, the timeline, lines of
 * time and memory. Everything is off unless the configuration asks for it, and costs nothing then.
 *
 *     observe.c           opens it all, is told of steps and epochs, closes it
 *     observe_comms.c     the table of collectives
 *     observe_flops.c     operations, time and MFU per unit, from the spans of one step
 *     observe_timeline.c  the ranks' spans, gathered into one file
 * SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_OBSERVE_H
#define MU_ENGINE_OBSERVE_H

#include "base/json.h"
#include "comm/log.h"
#include "engine/run_totals.h"
#include "monitor/host_stats.h"
#include "monitor/progress.h"
#include "monitor/scalars.h"
#include "monitor/trace.h"
#include "mural/engine.h"

/* Of one unit in the profiled step, on this rank. */
typedef struct mu_unit_cost {
	double flops; /* forward, one image */
	uint64_t parameters;
	double forward, backward; /* seconds */
} mu_unit_cost;

typedef struct mu_flops_profile {
	uint64_t step; /* 0: not profiled (yet) */
	uint64_t images; /* of this rank in that step */
	double matrix_rate; /* operations per second of a large matrix product on this device, measured before the run */
	double step_seconds, optimizer_seconds;
	size_t n_units;
	mu_unit_cost *units; /* [n_units] */
} mu_flops_profile;

typedef struct mu_observe { /* zero-initialise */
	const mural_config *config;
	mural_engine *engine;
	mu_comm *plain; /* what the run communicates through, unobserved */
	mu_comm *observed; /* NULL: nobody listens to collectives */
	mu_progress *progress; /* rank 0's */
	int rank, ranks;
	const char *folder; /* of the run */
	double ahead, ahead_uncertainty; /* of rank 0's clock; for the timeline */
	mu_comm_log log;
	unsigned logged; /* bit per mu_collective */
	mu_trace trace;
	bool timeline_written;
	mu_flops_profile flops;
	mu_scalars scalars; /* rank 0's */
	mu_host_stats host;
	struct {
		uint64_t steps;
		double phases[MU_PHASE_COUNT], seconds;
	} since; /* the last line of wall_clock_breakdown */
} mu_observe;

typedef struct mu_observe_settings {
	const mural_config *config;
	mu_comm *comm; /* borrowed */
	mu_progress *progress;
} mu_observe_settings;

/* All ranks, before the engine. *comm becomes what it shall communicate through. */
mural_status mu_observe_init(mu_observe *o, const mu_observe_settings *settings, mu_comm **comm, mural_error *err);
/* After the engine has been freed. */
void mu_observe_release(mu_observe *o);

typedef struct mu_observe_start {
	mural_engine *engine; /* ready to train */
	const char *folder; /* the run's, on rank 0; borrowed */
	bool goes_on; /* the folder's own run goes on */
	uint64_t images; /* so far */
} mu_observe_start;

/* All ranks, before the first step. */
mural_status mu_observe_begin(mu_observe *o, const mu_observe_start *start, mural_error *err);

/* After each step. This rank's failure (a full disk) is returned; others do not know of it. */
mural_status mu_observe_step(mu_observe *o, const mural_step_facts *step, const mu_run_totals *totals,
                             mural_error *err);
/* All ranks, after a step that every rank knows to be the last of the window (mu_observe_timeline_is_due) or of the run. */
bool mu_observe_timeline_is_due(const mu_observe *o, uint64_t step, bool last);
mural_status mu_observe_write_timeline(mu_observe *o, mural_error *err);
/* After each epoch; the same kind of failure. */
mural_status mu_observe_epoch(mu_observe *o, const mu_epoch_row *row, const mu_run_totals *totals, mural_error *err);

/* All ranks, after the last step: sums up, prints the tables. */
mural_status mu_observe_finish(mu_observe *o, mural_error *err);
/* Members of result.json; rank 0. */
void mu_observe_write_result(const mu_observe *o, mu_json *json);

/* observe_comms.c. All ranks: *waiting[i] is how much longer row i took here than on the rank where it was shortest. */
mural_status mu_observe_waiting(mu_observe *o, double *waiting, mural_error *err);
void mu_observe_print_comms(mu_observe *o, const double *waiting);
void mu_observe_write_comms(const mu_observe *o, mu_json *json);

/* observe_flops.c */
mural_status mu_observe_flops_begin(mu_observe *o, mural_error *err);
mural_status mu_observe_flops_step(mu_observe *o, const mural_step_facts *step, mural_error *err);
void mu_observe_write_flops(const mu_observe *o, mu_json *json);

#endif
