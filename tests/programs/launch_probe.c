/* A program that starts its own ranks and lets them end in every way, for the shell tests of launching and faults.
 *
 *     launch_probe [--ranks N] MODE [RANK]
 *
 *     sum          ranks add their numbers plus one, rank 0 prints the sum
 *     talk         each rank writes a line to stderr, rank 0 an unfinished one too
 *     unfinished   rank 0 ends in the middle of a line
 *     loop         collectives without end; each rank leaves a file PROBE_DIR/pid-RANK with its process id
 *     fail RANK    RANK and those after it fail, and all agree on it
 *     fail-same    ranks from 1 on fail with the same words
 *     alone RANK   RANK fails and does not tell the others, which are in a collective
 *     exit RANK    RANK exits with code 3 and no word
 *     crash RANK   RANK dies by SIGSEGV
 * SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/launch.h"
#include "comm/comm.h"

static mu_comm *comm;
static int rank, size;
static mural_error err;

static mural_status leave_pid(void)
{
	const char *folder = getenv("PROBE_DIR");
	char path[4096];
	if (!folder)
		return MURAL_OK;
	snprintf(path, sizeof path, "%s/pid-%d", folder, rank);
	FILE *file = fopen(path, "w");
	if (!file)
		return mu_fail(&err, MURAL_FAILED, path, "cannot be written");
	fprintf(file, "%d\n", (int)getpid());
	fclose(file);
	return MURAL_OK;
}

static mural_status loop(void)
{
	static float buffer[1 << 18];
	MU_TRY(leave_pid());
	for (;;)
		MU_TRY(mu_comm_all_reduce(comm, buffer, 1 << 18, MU_F32, MU_SUM, &err));
}

static mural_status sum(void)
{
	int32_t value = rank + 1;
	MU_TRY(mu_comm_all_reduce(comm, &value, 1, MU_I32, MU_SUM, &err));
	if (rank == 0)
		printf("sum %d of %d ranks\n", (int)value, size);
	return MURAL_OK;
}

static mural_status talk(void)
{
	fprintf(stderr, "rank %d speaks\n", rank);
	if (rank == 0) {
		fprintf(stderr, "[====      ] 40 %%\r");
		mu_sleep(0.3);
		fprintf(stderr, "[==========] 100 %%\n");
	}
	return MURAL_OK;
}

static mural_status leave_line_open(void)
{
	if (rank == 0) {
		fprintf(stderr, "\repoch 1/2  40 %%");
		mu_sleep(0.5); /* the parent shows what it has */
	}
	return MURAL_OK;
}

static mural_status run(const char *mode, int who)
{
	if (strcmp(mode, "sum") == 0)
		return sum();
	if (strcmp(mode, "talk") == 0)
		return talk();
	if (strcmp(mode, "unfinished") == 0)
		return leave_line_open();
	if (strcmp(mode, "fail") == 0 && rank >= who)
		return mu_fail(&err, MURAL_DATA, "labels.gz:16", "label %d is out of range", 100 + rank);
	if (strcmp(mode, "fail-same") == 0 && rank >= 1)
		return mu_fail(&err, MURAL_FAILED, NULL, "the disk is full");
	if (strncmp(mode, "fail", 4) == 0)
		return MURAL_OK;
	if (rank == who && strcmp(mode, "exit") == 0)
		_exit(3);
	if (rank == who && strcmp(mode, "crash") == 0) {
		signal(SIGSEGV, SIG_DFL); /* MPI libraries catch it to print a trace */
		raise(SIGSEGV);
	}
	if (rank == who && strcmp(mode, "alone") == 0)
		return mu_fail(&err, MURAL_FAILED, NULL, "the disk is full");
	return loop();
}

static int be_rank(const char *mode, int who)
{
	if (mu_comm_open("auto", &comm, &err)) {
		mural_report_failure(&err, 0, 1);
		return mural_exit_code(err.status);
	}
	rank = comm->table->facts(comm)->rank;
	size = comm->table->facts(comm)->size;
	mural_status status = run(mode, who);
	bool alone = strcmp(mode, "alone") == 0;
	if (!alone)
		status = mu_comm_agree(comm, status, &err);
	if (status != MURAL_OK)
		mural_report_failure(&err, rank, size);
	fflush(NULL);
	if (alone)
		comm->table->abort(comm, mural_exit_code(status));
	comm->table->close(comm);
	return mural_exit_code(status);
}

int main(int argc, char **argv)
{
	int ranks = 1;
	if (argc > 2 && strcmp(argv[1], "--ranks") == 0) {
		ranks = atoi(argv[2]);
		argv += 2;
		argc -= 2;
	}
	if (argc < 2) {
		fprintf(stderr, "usage: launch_probe [--ranks N] MODE [RANK]\n");
		return 2;
	}
	if (ranks > 1)
		return mural_launch_ranks(ranks, argc - 1, argv + 1, false);
	return be_rank(argv[1], argc > 2 ? atoi(argv[2]) : 0);
}
