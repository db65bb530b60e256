/* Ranks that the program starts itself, and one message when something fails.
 *
 * `--ranks N`: the first process becomes the parent. It starts N ranks of the same program with mpirun, stays, and prints what
 * happened: a rank that fails leaves its message in a file for it, since any rank may be the one that dies.
 * Environment of the ranks:
 *     MURAL_PARENT     1
 *     MURAL_ERROR_DIR  a private folder; rank r's message goes into rank-r.txt: a line "STATUS RANK" (-1: the text names one), then the text
 *     MURAL_TTY        columns of the parent's terminal, 0 if its stderr is none: what a rank sees is mpirun's pipe
 * And for the parent: MURAL_MPIRUN names the mpirun to use.
 * SPDX-License-Identifier: MIT */
#ifndef MURAL_CLI_LAUNCH_H
#define MURAL_CLI_LAUNCH_H

#include <stdbool.h>

#include "mural/error.h"

/* Runs this program with the arguments argv[0] .. argv[argc - 1] (the command first, no program name) on ranks > 1 ranks and
 * waits for them. Says on stderr what it starts. Returns the exit code; whatever went wrong has been printed once.
 * finishes: on SIGUSR1 the ranks come to a good end by themselves. Then SIGUSR1 is passed on to them, and so is, as SIGUSR1, the
 * first SIGINT or SIGTERM; the second one stops them at once. */
int mural_launch_ranks(int ranks, int argc, char **argv, bool finishes);

/* Tells of a failure, once over all ranks: under a parent into this rank's file; else on stderr, by rank 0 for what the ranks
 * have agreed on (has_rank), and by the rank itself for what the others do not know. rank and size: 0 and 1 while no
 * comm is open; the launcher's are taken then. */
void mural_report_failure(const mural_error *err, int rank, int size);

#endif
