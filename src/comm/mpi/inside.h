/* The MPI module, inside: jobs in a ring, and the one thread that makes every MPI call.
 *
 * The caller's threads post a job at the ring's head and sleep until it is finished; the comm thread starts jobs in the
 * order in which they were posted, keeps all that it can in flight, and tests them. Three counters never go back:
 *
 *     first <= next <= posted        ring[n % MU_MPI_RING] is job n
 *     first .. next    started (those finished out of order are no longer busy)
 *     next             the job being started: one that needs several MPI calls makes them one after the other, and
 *                      nothing behind it starts before its last one. So all ranks make the same calls in the same order.
 *     next .. posted   waiting to be started
 *
 * `lock` guards posted, every job's busy, order, failure and the heart's first part; first, next, active and a busy job are the comm thread's own. The
 * lock is never held during an MPI call. After start nothing is allocated: a full ring makes the caller wait.
 *
 * Counts: MPI takes an int, and libraries multiply it by sizes and ranks in ints inside. So no call moves more than
 * `limit` bytes (1 GiB, or MURAL_MPI_CALL_BYTES), and longer jobs take several steps.
 * SPDX-License-Identifier: MIT */
#ifndef MU_COMM_MPI_INSIDE_H
#define MU_COMM_MPI_INSIDE_H

#include <mpi.h>
#include <pthread.h>

#include "comm/comm.h"

enum { MU_MPI_RING = 256 };

typedef struct mu_mpi_comm mu_mpi_comm;

/* Ranks that have collectives among them: all, or a group of them. What the caller sees as a comm. */
typedef struct mu_mpi_group {
	mu_comm base;
	mu_mpi_comm *ring; /* whose thread makes the calls */
	mu_comm_facts facts;
	MPI_Comm among;
	struct mu_mpi_group *next; /* the ring's groups, which live as long as it does */
} mu_mpi_group;

typedef enum mu_mpi_kind {
	MU_MPI_ALL_REDUCE,
	MU_MPI_BROADCAST,
	MU_MPI_ALL_GATHER,
	MU_MPI_REDUCE_SCATTER,
	MU_MPI_ALL_TO_ALL,
	MU_MPI_BARRIER,
	MU_MPI_GROUP /* `to` is a mu_mpi_group to be made, or NULL; count: 1 if this rank is in it */
} mu_mpi_kind;

typedef struct mu_mpi_job {
	mu_mpi_kind kind;
	const mu_mpi_group *group; /* who takes part */
	const void *from;
	void *to; /* == from where the collective works in place */
	size_t count; /* elements, per rank where there are blocks */
	size_t width; /* bytes of one */
	mu_dtype type; /* of reductions; the others move bytes */
	mu_reduce how;
	int root;
	mu_pending *pending;
	bool busy; /* posted and not finished */

	/* The comm thread's: */
	size_t piece; /* elements of one step */
	size_t steps, step; /* MPI calls it takes, and those already made */
	MPI_Request request;
	MPI_Datatype strided; /* of a piece of a block; MPI_DATATYPE_NULL when not needed */
} mu_mpi_job;

typedef enum mu_mpi_order { MU_MPI_RUN, MU_MPI_CLOSE, MU_MPI_ABORT } mu_mpi_order;

/* What a rank tells the next one of itself. */
typedef struct mu_mpi_beat {
	bool watched; /* false: goodbye */
	double idle; /* seconds without anything done */
	mu_comm_stall worst; /* for whom the ranks wait, as far as this one and those before it know */
	uint64_t number, step; /* as in mu_pulse */
	char doing[64], host[64], device[128];
} mu_mpi_beat;

typedef struct mu_mpi_heart {
	/* Under the lock: */
	bool on; /* the caller wants it */
	double seconds;
	const mu_pulse *pulse;
	void (*stalled)(const mu_comm_stall *stall, void *argument);
	void *argument;
	int waiting; /* callers' threads that sleep for a collective */
	uint64_t waits; /* how often one began to */

	/* The comm thread's: */
	bool alive; /* until the goodbye is sent */
	double due, last; /* mu_now() of the next round and of the last one */
	double silent; /* seconds since the last beat was heard */
	double accused; /* mu_now() of this rank's giving up, or 0 */
	double processor; /* seconds by the last round, and the pulse's count */
	uint64_t beats, waits_seen; /* by the last round */
	double works; /* seconds since a thread last waited for a collective; below 0: so long one waits for the same */
	mu_mpi_beat out, sent, in, heard; /* made; in flight; being received; the last one */
	MPI_Request sending, receiving;
} mu_mpi_heart;

struct mu_mpi_comm {
	mu_mpi_group world; /* all; its MPI_Comm is our own duplicate */
	mu_mpi_group *groups;
	MPI_Op add_bf16, add_f16; /* on MPI_UINT16_T */
	bool initialised; /* by us, so ours to finalise */
	size_t limit; /* bytes of one MPI call */

	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t work; /* to the comm thread: posted or order changed */
	pthread_cond_t done; /* from it: opened, finished or failed */
	mu_mpi_order order;
	int code; /* of MU_MPI_ABORT */
	bool opened; /* successfully or not: see failure */
	mural_error failure; /* the first one; nothing works after it */

	mu_mpi_heart heart;

	uint64_t first, next, posted;
	bool active
	        [MU_MPI_RING]; /* its request is in flight; apart, because a finished job's place is the callers' at once */
	mu_mpi_job ring[MU_MPI_RING];
};

/* steps.c: how a job becomes MPI calls. Both return MPI's own code. */
void mu_mpi_plan(const mu_mpi_comm *comm, mu_mpi_job *job);
int mu_mpi_start(const mu_mpi_comm *comm, mu_mpi_job *job);

/* narrow.c: sums of types that MPI does not know. make returns MPI's own code. */
int mu_mpi_narrow_make(mu_mpi_comm *comm);
void mu_mpi_narrow_free(mu_mpi_comm *comm);

/* thread.c: "Open MPI 4.1.4"; may be called before MPI is started. */
void mu_mpi_library(char *out, size_t capacity);

/* join.c: is this library of no use to a process that is to join others and has no PMIx server? */
bool mu_mpi_needs_pmix(void);

/* thread.c: from now on every collective on this rank fails so; the first failure stays. */
void mu_mpi_break(mu_mpi_comm *comm, const mural_error *failure);

/* heart.c. calls, under the lock: is it time for a round? round returns MPI's own code. end: no caller is left. */
bool mu_mpi_heart_calls(const mu_mpi_comm *comm);
int mu_mpi_heart_round(mu_mpi_comm *comm);
void mu_mpi_heart_end(mu_mpi_comm *comm);

/* thread.c: the comm thread's whole life. argument: a mu_mpi_comm. */
void *mu_mpi_thread(void *argument);

#endif
