/* Ranks that the program starts itself, and one message when something fails.
 *
 * `--ranks N`, `--hostfile FILE`: the first process becomes the parent. It starts N ranks of the same program with mpirun, stays, and prints what
 * happened: a rank that fails leaves its message in a file for it, since any rank may be the one that dies.
 * Environment of the ranks:
 *     MURAL_PARENT     1
 *     MURAL_ERROR_DIR  a private folder; rank r's message goes into rank-r.txt: a line "STATUS RANK" (-1: the text names one), then the text
 *                      and rank 0 leaves the run's folder in run.txt
 *     MURAL_AGAIN      in a restart the run's folder, "" if the first attempt did not get so far
 *     MURAL_SLOTS      with hosts: each rank's slot, "0,2,0,1" for ranks 0 to 3
 *     MURAL_TTY        columns of the parent's terminal, 0 if its stderr is none: what a rank sees is mpirun's pipe
 * And for the parent: MURAL_MPIRUN names the mpirun to use.
 * SPDX-License-Identifier: MIT */
#ifndef MURAL_CLI_LAUNCH_H
#define MURAL_CLI_LAUNCH_H

#include <stdbool.h>

#include "mural/hosts.h"

typedef struct launch_request {
	int ranks; /* > 1; with hosts, all of their slots */
	const mural_hosts *hosts; /* NULL: this machine */
	bool ask_hosts; /* first, whether they can be reached and have this program */
	int argc; /* arguments of the program: the command first, no program name */
	char **argv;
	/* On SIGUSR1 the ranks come to a good end by themselves. Then SIGUSR1 is passed on to them, and so is, as SIGUSR1, the first
	 * SIGINT or SIGTERM; the second one stops them at once. */
	bool finishes;
	/* How often all ranks are started again after one of them was killed, crashed or hung. A failure that the ranks themselves
	 * report is no reason. */
	int restarts;
} launch_request;

/* Runs this program on the ranks and waits for them. Says on stderr what it starts. Returns the exit code; whatever went
 * wrong has been printed once. */
int mural_launch_ranks(const launch_request *request);

/* Rank 0: the run's folder is this run's from now on. Does nothing without a parent. */
void mural_report_run(const char *run_dir);

/* Tells of a failure, once over all ranks: under a parent into this rank's file; else on stderr, by rank 0 for what the ranks
 * have agreed on (has_rank), and by the rank itself for what the others do not know. rank and size: 0 and 1 while no
 * comm is open; the launcher's are taken then. */
void mural_report_failure(const mural_error *err, int rank, int size);

#endif
