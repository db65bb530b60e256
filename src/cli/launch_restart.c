/* Starting ranks again after one of them died (`--max-restarts N`): from where, and how soon.
 *
 * Rank 0 leaves the run's folder for the parent as soon as it is the run's own. So the next attempt knows where to look for the
 * last complete checkpoint, and that whatever else lies there is this run's. Each attempt waits twice as long as the one before it:
 * what killed a rank (memory, a driver) may need time. SPDX-License-Identifier: MIT */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "launch.h"
#include "launch_inside.h"
#include "mural/checkpoint.h"

enum { LONGEST_WAIT = 60 }; /* seconds */
static const char RUN_FILE[] = "run.txt";

void mural_report_run(const char *run_dir)
{
	char path[4096];
	const char *folder = getenv("MURAL_ERROR_DIR");
	if (!getenv("MURAL_PARENT") || !folder)
		return;
	snprintf(path, sizeof path, "%s/%s", folder, RUN_FILE);
	FILE *file = fopen(path, "we");
	if (!file)
		return; /* another host's rank 0: the parent will begin anew, or say that it cannot */
	fputs(run_dir, file);
	fclose(file);
}

static void read_run(const char *folder, char run_dir[MURAL_CHECKPOINT_PATH])
{
	char path[4096];
	run_dir[0] = '\0';
	snprintf(path, sizeof path, "%s/%s", folder, RUN_FILE);
	FILE *file = fopen(path, "re");
	if (!file)
		return;
	run_dir[fread(run_dir, 1, MURAL_CHECKPOINT_PATH - 1, file)] = '\0';
	fclose(file);
}

void launch_restart_forget(const char *folder)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%s", folder, RUN_FILE);
	unlink(path);
}

/* Sleeps; returns the signal that ended it early, or 0. */
static int wait_for_signal(int signals, int seconds)
{
	struct timespec begin, now;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (;;) {
		struct pollfd poller = {.fd = signals, .events = POLLIN};
		struct signalfd_siginfo info;
		clock_gettime(CLOCK_MONOTONIC, &now);
		long left =
		        1000L * seconds - 1000L * (now.tv_sec - begin.tv_sec) - (now.tv_nsec - begin.tv_nsec) / 1000000;
		if (left <= 0)
			return 0;
		if (poll(&poller, 1, (int)left) <= 0)
			continue;
		while (read(signals, &info, sizeof info) == (ssize_t)sizeof info)
			if (info.ssi_signo != SIGCHLD)
				return (int)info.ssi_signo;
	}
}

/* A request to stop finds a complete checkpoint or none; anything else is as rude as ever. */
static int stopped_while_waiting(int number, const mural_checkpoint_choice *from)
{
	bool asked = number == SIGINT || number == SIGTERM || number == SIGUSR1;
	fprintf(stderr, "mural: stopped by signal %d (%s) before the restart", number, strsignal(number));
	if (from->found)
		fprintf(stderr, "; to go on: --resume %s", from->set);
	fputc('\n', stderr);
	return mural_exit_code(asked && from->found ? MURAL_STOPPED : MURAL_FAILED);
}

bool launch_restart(launch_restarts *r, const char *folder, int signals, int *code)
{
	char run_dir[MURAL_CHECKPOINT_PATH];
	mural_checkpoint_choice from = {0};
	mural_error err = {0};
	if (r->done >= r->most) {
		if (r->most > 0)
			fprintf(stderr, "mural: no restart is left of %d (--max-restarts)\n", r->most);
		return false;
	}
	read_run(folder, run_dir);
	if (!run_dir[0] && r->elsewhere) {
		fprintf(stderr, "mural: no restart: rank 0 is on another host, which has not told the run's folder\n");
		return false;
	}
	if (run_dir[0] && mural_checkpoint_find(&from, run_dir, &err) != MURAL_OK) {
		mural_error_print(&err, stderr);
		return false;
	}
	int seconds = r->done < 6 ? 1 << r->done : LONGEST_WAIT;
	r->done++;
	fprintf(stderr, "mural: restart %d of %d in %d s, ", r->done, r->most, seconds);
	if (from.found)
		fprintf(stderr, "from step %llu (%s)\n", (unsigned long long)from.step, from.set);
	else
		fprintf(stderr, "from the beginning: there is no complete checkpoint yet\n");
	int number = wait_for_signal(signals, seconds);
	if (number) {
		*code = stopped_while_waiting(number, &from);
		return false;
	}
	setenv("MURAL_AGAIN", run_dir, 1);
	return true;
}
