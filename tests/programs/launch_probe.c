/* A program that starts its own ranks and lets them end in every way, for the shell tests of launching and faults.
 *
 *     launch_probe [--ranks N | --hostfile FILE] MODE [RANK | NAME]
 *
 *     sum          ranks add their numbers plus one, rank 0 prints the sum
 *     talk         each rank writes a line to stderr, rank 0 an unfinished one too
 *     unfinished   rank 0 ends in the middle of a line
 *     env NAME     each rank tells its host, its slot and that variable
 *     loop         collectives without end; each rank leaves a file PROBE_DIR/pid-RANK with its process id
 *     fail RANK    RANK and those after it fail, and all agree on it
 *     fail-same    ranks from 1 on fail with the same words
 *     alone RANK   RANK fails and does not tell the others, which are in a collective
 *     exit RANK    RANK exits with code 3 and no word
 *     crash RANK   RANK dies by SIGSEGV
 *
 * With PROBE_HANG=SECONDS the ranks watch each other, and
 *     stuck RANK   RANK says that it reads images, and sleeps for ever outside of collectives; the others are in one
 *     away RANK    the same, and so do all: nobody would notice a failure in a collective
 *     busy RANK    RANK computes for three times as long as a stuck one may, then all are well
 *     slow RANK    RANK sleeps as long, with a sign of life now and then
 *     rest RANK    RANK sleeps as long and has nothing to do
 *     group RANK   RANK comes as late to the making of a group
 *     again        watching ends and begins again, with silence in between
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
static mu_pulse pulse = {.device = "a probe"};
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

static mural_status tell_variable(const char *name)
{
	const char *value = getenv(name);
	printf("rank %d of %d on %s, slot %d: %s\n", rank, size, comm->table->facts(comm)->host, mural_comm_slot(comm),
	       value ? value : "not set");
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

static double hang_seconds(void)
{
	const char *text = getenv("PROBE_HANG");
	return text ? atof(text) : 0;
}

static void watch(void)
{
	const mu_comm_watch how = {.seconds = hang_seconds(), .pulse = &pulse};
	comm->table->watch(comm, &how);
}

static void get_stuck(void)
{
	atomic_store(&pulse.step, 17);
	mu_pulse_mark(&pulse, "reading images for the micro-batch", 2);
	for (;;)
		mu_sleep(1);
}

/* What is no reason to give up. */
static mural_status take_long(const char *mode)
{
	double end = mu_now() + 3 * hang_seconds();
	mu_pulse_mark(&pulse, strcmp(mode, "rest") == 0 ? NULL : "forward of unit", 3);
	while (mu_now() < end) {
		if (strcmp(mode, "busy") == 0)
			continue;
		mu_sleep(0.05);
		if (strcmp(mode, "slow") == 0)
			mu_pulse_beat(&pulse);
	}
	return MURAL_OK;
}

static mural_status watch_again(void)
{
	for (int i = 0; i < 3; i++) {
		MU_TRY(sum());
		comm->table->watch(comm, NULL);
		mu_sleep(rank * hang_seconds());
		watch();
	}
	return sum();
}

static mural_status make_group(void)
{
	const bool members[] = {true, true, false};
	mu_comm *group;
	mural_status status = size == 3 ? comm->table->group(comm, members, &group, &err)
	                                : mu_fail(&err, MURAL_USAGE, NULL, "the group is for 3 ranks");
	if (status == MURAL_OK && group)
		group->table->close(group);
	return status;
}

/* The modes of ranks that watch each other. */
static mural_status run_watched(const char *mode, int who)
{
	watch();
	if (strcmp(mode, "away") == 0 || (rank == who && strcmp(mode, "stuck") == 0))
		get_stuck();
	if (strcmp(mode, "again") == 0)
		return watch_again();
	if (strcmp(mode, "stuck") == 0 || strcmp(mode, "loop") == 0)
		return loop();
	if (rank == who)
		MU_TRY(take_long(strcmp(mode, "group") == 0 ? "slow" : mode));
	if (strcmp(mode, "group") == 0)
		MU_TRY(make_group());
	return sum();
}

static mural_status run(const char *mode, const char *argument)
{
	int who = argument ? atoi(argument) : 0;
	if (strcmp(mode, "env") == 0)
		return tell_variable(argument);
	if (hang_seconds() > 0)
		return run_watched(mode, who);
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

static void tell_lost(const mural_error *lost, void *argument)
{
	(void)argument;
	mural_report_failure(lost, rank, size);
}

static int be_rank(const char *mode, const char *argument)
{
	if (mu_comm_open("auto", &comm, &err)) {
		mural_report_failure(&err, 0, 1);
		return mural_exit_code(err.status);
	}
	rank = comm->table->facts(comm)->rank;
	size = comm->table->facts(comm)->size;
	mural_comm_on_lost(comm, tell_lost, NULL);
	mural_status status = run(mode, argument);
	bool alone = strcmp(mode, "alone") == 0 || status == MURAL_PEER;
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

static int start_on_hosts(const char *file, int argc, char **argv)
{
	mural_hosts *hosts;
	const mural_hosts_choice choice = {.file = file};
	if (mural_hosts_open(&hosts, &choice, &err)) {
		mural_error_print(&err, stderr);
		return mural_exit_code(err.status);
	}
	int code = mural_launch_ranks(
	        &(launch_request){.ranks = mural_hosts_ranks(hosts), .hosts = hosts, .argc = argc, .argv = argv});
	mural_hosts_free(hosts);
	return code;
}

int main(int argc, char **argv)
{
	int ranks = 1;
	const char *file = NULL;
	if (argc > 2 && strncmp(argv[1], "--", 2) == 0) {
		if (strcmp(argv[1], "--hostfile") == 0)
			file = argv[2];
		else
			ranks = atoi(argv[2]);
		argv += 2;
		argc -= 2;
	}
	if (argc < 2) {
		fprintf(stderr, "usage: launch_probe [--ranks N | --hostfile FILE] MODE [RANK | NAME]\n");
		return 2;
	}
	if (file)
		return start_on_hosts(file, argc - 1, argv + 1);
	if (ranks > 1)
		return mural_launch_ranks(&(launch_request){.ranks = ranks, .argc = argc - 1, .argv = argv + 1});
	return be_rank(argv[1], argc > 2 ? argv[2] : NULL);
}
