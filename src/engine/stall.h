/* The stall watch: says who is waited for while a step hangs, long before anybody gives up.
 *
 * The collectives tell, from the heartbeats, for whom the ranks wait right now (comm.h, mu_comm_stall). Whether that is worth words
 * is decided here, by what this rank knows of usual steps:
 *
 *     silent, stuck     after a quarter of mural.hang_seconds, whatever is under way: no long computation looks so
 *     works             only inside a step, after the first ones, and when it takes five times as long as the longest of late;
 *                       so a first step, an evaluation or a checkpoint, however long, is no stall
 *
 * What is told: when it begins, every so often while it lasts, and when it is over. Threads: the engine's marks steps, the comm's hears.
 * SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_STALL_H
#define MU_ENGINE_STALL_H

#include <pthread.h>

#include "base/json.h"
#include "comm/comm.h"

enum { MU_STALL_WORDS = 384 };

typedef struct mu_stall_report {
	const mu_comm_stall *stall;
	bool begins, over; /* neither: it lasts */
	double seconds; /* so far */
	char words
	        [MU_STALL_WORDS]; /* "waiting 12 s for rank 1 (host b, cuda:0): last operation backward of unit 3, step 17" */
} mu_stall_report;

/* Called by the comm's thread; not for long. */
typedef void mu_stall_listener(void *listener, const mu_stall_report *report);

typedef struct mu_stall_watch {
	pthread_mutex_t lock;
	double limit; /* mural.hang_seconds */
	mu_stall_listener *tell; /* NULL: nobody listens yet */
	void *listener;
	uint64_t steps;
	double usual, begun; /* the longest step of late; mu_now() when the one under way began, 0 between steps */
	bool lasts; /* somebody is waited for, and it was told */
	double since, told; /* mu_now() since when; of the last words */
	mu_comm_stall now; /* whom */
	struct { /* of this run */
		uint64_t count;
		double seconds, longest;
		mu_comm_stall worst;
	} sum;
} mu_stall_watch;

void mu_stall_init(mu_stall_watch *watch, double hang_seconds);
void mu_stall_release(mu_stall_watch *watch);
void mu_stall_listen(mu_stall_watch *watch, mu_stall_listener *tell, void *listener);

/* The engine's. */
void mu_stall_step_begins(mu_stall_watch *watch);
void mu_stall_step_ends(mu_stall_watch *watch);

/* For mu_comm_watch.stalled; argument: the watch. */
void mu_stall_hear(const mu_comm_stall *stall, void *argument);

/* "stalls" of result.json; nothing where there were none. */
void mu_stall_write(mu_stall_watch *watch, mu_json *json);

/* "rank 1 (host b, cuda:0)" */
void mu_stall_name(const mu_comm_stall *stall, char *text, size_t bytes);

#endif
