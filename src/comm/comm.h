/* The collectives table: buffers and groups, nothing about gradients.
 *
 * Every collective is begun with a handle and waited for; the buffer belongs to the handle in between. All ranks of a
 * comm call the same collectives in the same order. Tables:
 *     self       one rank, no library
 *     mpi        host memory, any MPI, loaded at run time (mpi/). One thread makes every MPI call, MPI_Init_thread
 *                included, and never blocks inside MPI: it tests, sleeps 50 us, tests.
 *     emulated   another table's collectives, each delayed as a described link would (emulated.h)
 *     observed   another table's collectives, each told to a listener (observed.h)
 *     nccl       later
 * SPDX-License-Identifier: MIT */
#ifndef MU_COMM_COMM_H
#define MU_COMM_COMM_H

#include <stdbool.h>

#include "base/fail.h"
#include "base/pulse.h"
#include "base/types.h"
#include "mural/comm.h"

typedef struct mu_comm mu_comm; /* outside the library: mural_comm */

typedef enum mu_reduce { MU_SUM, MU_MAX, MU_MIN } mu_reduce;

/* X(enum, name): the kinds of collectives, for those who count or delay them. */
#define MU_COLLECTIVE_LIST(X)                  \
	X(MU_ALL_REDUCE, "all_reduce")         \
	X(MU_BROADCAST, "broadcast")           \
	X(MU_ALL_GATHER, "all_gather")         \
	X(MU_REDUCE_SCATTER, "reduce_scatter") \
	X(MU_ALL_TO_ALL, "all_to_all")         \
	X(MU_BARRIER, "barrier")

typedef enum mu_collective {
#define MU_X(name, text) name,
	MU_COLLECTIVE_LIST(MU_X)
#undef MU_X
	        MU_COLLECTIVE_COUNT
} mu_collective;

/* "all_reduce", ... */
const char *mu_collective_text(mu_collective collective);

/* In flight: zero-initialise, begin, wait. Owned by the caller, who keeps it in place until wait returns. */
typedef struct mu_pending {
	void *request; /* the table's own; NULL when nothing is in flight */
	double begun, ended; /* mu_now() seconds: posted, and finished as the comm thread saw it */
	size_t bytes; /* of one rank's whole buffer: where there are blocks, of all of them */
} mu_pending;

typedef mural_comm_facts mu_comm_facts;

/* For whom the ranks wait, of all the one most to blame: a later kind before an earlier one, then the longer time. */
typedef enum mu_stall_kind {
	MU_STALL_NONE, /* for nobody in particular */
	MU_STALL_WORKS, /* it computes: so long since it last took part in a collective. Any usual step looks so */
	MU_STALL_STUCK, /* it has something to do, and so long nothing of it was done */
	MU_STALL_SILENT /* so long nothing was heard of it */
} mu_stall_kind;

typedef struct mu_comm_stall {
	mu_stall_kind kind;
	int rank;
	double seconds;
	uint64_t number, step; /* as in mu_pulse, and what it does: by the last that was heard */
	char doing[64], host[64], device[128];
} mu_comm_stall;

/* What the ranks watch of each other. Every rank hears the one before it (rank 0 the last one) and gives up when that one
 *     - was not heard of for `seconds`: stopped, swapped out, its host or the way there lost;
 *     - says of itself for `seconds` that it has something to do (its pulse is marked), waits for no other rank, gets nothing done
 *       and hardly uses a processor: a read that does not end. A long computation is no such thing.
 * Then collectives on that rank fail with MURAL_PEER, naming the other with host, device and what it did last. If nobody there
 * takes part in collectives, or who does has not called abort some seconds later, mu_comm.lost is told and all ranks are ended. */
typedef struct mu_comm_watch {
	double seconds;
	mu_pulse *
	        pulse; /* borrowed until the watch ends; only looked at, but an emulated comm beats it while links are waited out */
	/* Hears all the while, from another thread, for whom the ranks wait; must be quick and use no comm. Not called any more once the
	 * watch has ended. NULL: nobody wants to know. */
	void (*stalled)(const mu_comm_stall *stall, void *argument);
	void *argument;
} mu_comm_watch;

typedef struct mu_comm_table {
	const char *name; /* "self", "mpi" */
	const char *build_id; /* MU_BUILD_ID */

	/* Collective over the launcher's world. */
	mural_status (*open)(mu_comm **comm, mural_error *err);
	/* Collective; after a failure use abort. NULL is fine. */
	void (*close)(mu_comm *comm);
	/* Ends the other ranks too, as far as the launcher allows, and this process with `code`. Does not return. */
	void (*abort)(mu_comm *comm, int code);
	const mu_comm_facts *(*facts)(const mu_comm *comm);

	/* In place over `count` elements. type: MU_F32, MU_F64, MU_I32, MU_I64 (MU_U8 for MAX and MIN, MU_BF16
	 * and MU_F16 for SUM, each addition rounded). */
	mural_status (*all_reduce_begin)(mu_comm *comm, void *buffer, size_t count, mu_dtype type, mu_reduce how,
	                                 mu_pending *pending, mural_error *err);
	mural_status (*broadcast_begin)(mu_comm *comm, void *buffer, size_t bytes, int root, mu_pending *pending,
	                                mural_error *err);
	/* Each rank's `count` elements, in rank order, into `gathered` [size * count]. mine may be its place in gathered, or
	 * lie outside. */
	mural_status (*all_gather_begin)(mu_comm *comm, const void *mine, void *gathered, size_t count, mu_dtype type,
	                                 mu_pending *pending, mural_error *err);
	/* Sum over ranks of buffer [size * count]; rank r keeps block r in `mine` [count]. mine may be block r of buffer (on all
	 * ranks or on none; the other blocks are then undefined), or lie outside. */
	mural_status (*reduce_scatter_begin)(mu_comm *comm, const void *buffer, void *mine, size_t count, mu_dtype type,
	                                     mu_pending *pending, mural_error *err);
	/* Block r of `from` goes to rank r; `count` elements per block. */
	mural_status (*all_to_all_begin)(mu_comm *comm, const void *from, void *to, size_t count, mu_dtype type,
	                                 mu_pending *pending, mural_error *err);
	mural_status (*barrier_begin)(mu_comm *comm, mu_pending *pending, mural_error *err);

	/* Sets *finished; never blocks. */
	mural_status (*test)(mu_comm *comm, mu_pending *pending, bool *finished, mural_error *err);
	/* Sleeps until finished. A peer that died is MURAL_PEER where the library can tell. */
	mural_status (*wait)(mu_comm *comm, mu_pending *pending, mural_error *err);

	/* All ranks, with nothing in flight: those with member_R[rank], at least one, get a comm among themselves, in the order of
	 * their ranks; the others get NULL. Its collectives and the parent's may be in flight together, in the same order on all
	 * members. It is closed before its parent; nobody watches it by itself. A rank that fails here is in no group, and the
	 * others do not know of it. */
	mural_status (*group)(mu_comm *comm, const bool *member_R, mu_comm **group, mural_error *err);

	/* Begins to watch, or ends it (NULL). All ranks call it, at about the same time; never blocks for long. */
	void (*watch)(mu_comm *comm, const mu_comm_watch *watch);
} mu_comm_table;

/* Every comm starts with its table. */
struct mu_comm {
	const mu_comm_table *table;
	void (*lost)(const mural_error *err, void *argument); /* NULL: nobody wants to know; mural_comm_on_lost */
	void *lost_argument;
};

extern const mu_comm_table mu_comm_self;

/* How many ranks the launcher's environment promises (OMPI_COMM_WORLD_SIZE, PMI_SIZE, SLURM_STEP_NUM_TASKS ...), and its
 * name; 1 and "none" when there is no launcher, 0 when it does not say how many (PMIx alone). */
int mu_comm_launcher(const char **launcher);
/* This process's rank as the launcher numbers it, before any library is opened; 0 without a launcher. */
int mu_comm_launcher_rank(void);

/* Opens what the environment asks for: `self` without a launcher or with one rank, else the MPI module.
 * name: "auto", "self", "openmpi", "mpich". If the launcher says N ranks and MPI says M != N: MURAL_USAGE naming both. */
mural_status mu_comm_open(const char *name, mu_comm **comm, mural_error *err);

/* begin + wait. */
mural_status mu_comm_all_reduce(mu_comm *comm, void *buffer, size_t count, mu_dtype type, mu_reduce how,
                                mural_error *err);
mural_status mu_comm_broadcast(mu_comm *comm, void *buffer, size_t bytes, int root, mural_error *err);
mural_status mu_comm_barrier(mu_comm *comm, mural_error *err);

/* Did anybody fail? Collective: every rank calls it with its own status so far. Returns MURAL_OK only if all were fine;
 * a rank that was fine itself gets MURAL_PEER and the lowest failed rank's message in err (has_rank set). */
mural_status mu_comm_agree(mu_comm *comm, mural_status status, mural_error *err);

/* How far this rank's mu_now() is ahead of rank 0's, in seconds, and how far off that may be at most. Collective; a few
 * milliseconds. Ranks of one host share a clock, and where the measurement allows it the answer is exactly 0. */
mural_status mu_comm_clock_offset(mu_comm *comm, double *ahead, double *uncertainty, mural_error *err);

/* The mesh: who shares what. Ranks are numbered data-major: rank = data * sequence_size + sequence. */
typedef struct mu_mesh {
	int data_size, data_rank; /* ranks with different samples */
	int sequence_size, sequence_rank; /* ranks with the same samples and disjoint token ranges; 1 for now */
} mu_mesh;

mural_status mu_mesh_make(int size, int rank, int sequence_size, mu_mesh *mesh, mural_error *err);

#endif
