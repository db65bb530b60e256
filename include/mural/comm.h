/* The team: how many ranks there are, which one this is, and whether all are well.
 *
 * A rank is one process. A program started alone is a team of one and needs no MPI; one that was started by mpirun or
 * srun opens the MPI module. What the ranks exchange while they train is the library's business.
 *
 *     mural_comm *comm = NULL;
 *     if (mural_comm_open(&comm, "auto", &err)) ...
 *     status = do_my_part(comm, &err);
 *     status = mural_comm_agree(comm, status, &err);  // everybody learns of anybody's failure
 *     mural_comm_close(comm);
 *
 * SPDX-License-Identifier: MIT */
#ifndef MURAL_COMM_H
#define MURAL_COMM_H

#include "mural/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mu_comm mural_comm;

typedef struct mural_comm_facts {
	int rank, size; /* of all */
	int local_rank, local_size; /* on this host */
	char host[256];
	char library[128]; /* "Open MPI 4.1.4", "none" */
} mural_comm_facts;

/* How many ranks the launcher's environment promises: 1 and "none" without a launcher, 0 if it does not say how many.
 * *rank becomes this process's number, 0 without a launcher. Opens nothing. Both pointers may be NULL. */
MURAL_API int mural_comm_launcher(const char **launcher, int *rank);

/* Collective over all ranks that the launcher started; once per process.
 * name: "auto", "self", "openmpi", "mpich". MURAL_USAGE if the launcher says N ranks and MPI says M != N.
 * Ranks of one host that share their cores bind the calling thread, and so those it starts later, to an even slice of them.
 * On failure *comm is NULL. */
MURAL_API mural_status mural_comm_open(mural_comm **comm, const char *name, mural_error *err);

/* Collective. After a failure that was not agreed on, use mural_comm_abort: others may never come. NULL is fine. */
MURAL_API void mural_comm_close(mural_comm *comm);

/* Ends all ranks, as far as the launcher allows, and this process with `code`. Does not return. Flush files before. */
MURAL_API void mural_comm_abort(mural_comm *comm, int code);

/* An engine has the ranks watch each other (mural.hang_seconds). A rank that finds another one dead or stuck fails with MURAL_PEER
 * in whatever collective it is in. If it is in none, `lost` is called from another thread, with what there is to say; when it
 * returns all ranks are ended. So it should tell and return, and nothing else. NULL: nobody is told. */
MURAL_API void mural_comm_on_lost(mural_comm *comm, void (*lost)(const mural_error *err, void *argument),
                                  void *argument);

/* Borrowed; lives as long as the comm. */
MURAL_API const mural_comm_facts *mural_comm_get_facts(const mural_comm *comm);

/* Did anybody fail? Collective: every rank calls it with its own status so far. MURAL_OK only if all were fine. A rank that
 * was fine itself gets MURAL_PEER and the lowest failed rank's message; has_rank is set on all ranks then. */
MURAL_API mural_status mural_comm_agree(mural_comm *comm, mural_status status, mural_error *err);

/* Which of its host's cards is this rank's, from 0: what the host file's slots say (MURAL_SLOTS), else the local rank. */
MURAL_API int mural_comm_slot(const mural_comm *comm);

/* Physical cores that this thread may run on, as far as the container's quota allows; at least 1. */
MURAL_API int mural_cores(void);

#ifdef __cplusplus
}
#endif
#endif
