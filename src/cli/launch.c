/* The parent of `--ranks N` and `--hostfile FILE`: runs mpirun, listens, cleans up, and says what happened.
 *
 * Nobody outlives it. It is the "subreaper" of all that mpirun starts, so ranks that mpirun leaves behind become its children
 * and are killed; if it is killed itself, mpirun gets SIGTERM. mpirun has a process group of its own: Ctrl-C reaches the
 * parent alone. Ranks that can finish get SIGUSR1 for the first one, which mpirun passes on (SIGTERM would make it kill them),
 * and as much time as they need. The second one, or the first where ranks cannot finish, ends them: SIGTERM for mpirun, and
 * after GRACE seconds no patience.
 * SPDX-License-Identifier: MIT */
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launch_inside.h"

enum { GRACE = 5 }; /* seconds from a signal, or from mpirun's end, until what is left is killed */

typedef struct launch {
	launch_command command;
	int ranks;
	bool finishes; /* the ranks, on SIGUSR1 */

	int signals; /* signalfd */
	sigset_t before; /* signal mask */
	launch_restarts restarts;

	/* Of one attempt: */
	pid_t mpirun;
	int errors; /* reading end of its stderr */
	int stopped_by; /* signal that we were sent, or 0 */
	bool asked; /* the ranks have been asked to finish because of it */
	double deadline; /* seconds by the clock; 0 = none */
	bool died; /* a rank, without telling why */
	launch_filter filter;
} launch;

double launch_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

mural_status launch_refuse(mural_error *err, mural_status status, const char *message)
{
	err->status = status;
	snprintf(err->message, sizeof err->message, "%s", message);
	return status;
}

void launch_become(const char *const *words, int out, int errors)
{
	int nothing = open("/dev/null", O_RDWR);
	dup2(nothing, STDIN_FILENO);
	if (out >= 0)
		dup2(out, STDOUT_FILENO);
	dup2(errors, STDERR_FILENO);
	execvp(words[0], (char *const *)words);
	_exit(127);
}

static mural_status take_signals_over(launch *l, mural_error *err)
{
	sigset_t wanted;
	sigemptyset(&wanted);
	/* SIGPIPE: nobody reads our words any more (`| head`). */
	for (size_t i = 0; i < 6; i++)
		sigaddset(&wanted, (const int[]){SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGCHLD}[i]);
	if (l->finishes)
		sigaddset(&wanted, SIGUSR1);
	sigprocmask(SIG_BLOCK, &wanted, &l->before);
	l->signals = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	return l->signals < 0 ? launch_refuse(err, MURAL_FAILED, "no file descriptors are left for starting ranks")
	                      : MURAL_OK;
}

static mural_status start(launch *l, mural_error *err)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC))
		return launch_refuse(err, MURAL_FAILED, "no file descriptors are left for starting ranks");
	l->errors = ends[0];
	pid_t parent = getpid();
	l->mpirun = fork();
	if (l->mpirun == 0) {
		setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		sigprocmask(SIG_SETMASK, &l->before, NULL);
		if (getppid() == parent)
			launch_become(l->command.words, -1, ends[1]);
		_exit(127);
	}
	close(ends[1]);
	return l->mpirun < 0 ? launch_refuse(err, MURAL_FAILED, "no process can be started (fork failed)") : MURAL_OK;
}

static void ask_to_finish(launch *l)
{
	kill(l->mpirun, SIGUSR1);
	l->asked = true;
	fprintf(stderr,
	        "%smural: finishing the step and writing a checkpoint; a second signal (Ctrl-C) stops at once\n",
	        isatty(STDERR_FILENO) ? "\n" : "");
}

/* Makes mpirun end its ranks. */
static void stop_at_once(launch *l)
{
	kill(l->mpirun, SIGTERM);
	if (l->deadline == 0)
		l->deadline = launch_now() + GRACE;
}

static void take_signals(launch *l)
{
	struct signalfd_siginfo info;
	while (read(l->signals, &info, sizeof info) == (ssize_t)sizeof info) {
		int number = (int)info.ssi_signo;
		if (number == SIGUSR1)
			kill(l->mpirun, SIGUSR1);
		if (number == SIGCHLD || number == SIGUSR1)
			continue;
		l->stopped_by = number;
		if (l->finishes && !l->asked && (number == SIGINT || number == SIGTERM))
			ask_to_finish(l);
		else
			stop_at_once(l);
	}
}

static void kill_group_when_late(const launch *l)
{
	if (l->deadline > 0 && launch_now() > l->deadline)
		kill(-l->mpirun, SIGKILL);
}

/* Forwards what has come. False at the end of the pipe. */
static bool listen_once(launch *l, int milliseconds)
{
	struct pollfd fds[2] = {{.fd = l->errors, .events = POLLIN}, {.fd = l->signals, .events = POLLIN}};
	char bytes[4096];
	int ready = poll(fds, 2, milliseconds);
	if (ready == 0)
		launch_filter_idle(&l->filter);
	if (ready > 0 && fds[1].revents)
		take_signals(l);
	if (ready <= 0 || !fds[0].revents)
		return true;
	ssize_t n = read(l->errors, bytes, sizeof bytes);
	if (n > 0)
		launch_filter_feed(&l->filter, bytes, (size_t)n);
	return n > 0 || (n < 0 && errno == EINTR);
}

/* Until mpirun has ended; returns its wait status. What it wrote last is still read, but nobody who keeps the pipe open can
 * keep us. */
static int attend(launch *l)
{
	int status = 0;
	bool open = true;
	while (waitpid(l->mpirun, &status, WNOHANG) == 0) {
		if (open)
			open = listen_once(l, 100);
		else
			poll(NULL, 0, 20);
		take_signals(l);
		kill_group_when_late(l);
	}
	for (double end = launch_now() + 1; open && launch_now() < end;)
		open = listen_once(l, 100);
	launch_filter_end(&l->filter);
	return status;
}

/* Kills the children that are left; as a subreaper we have inherited them. */
static void kill_children(void)
{
	char path[64];
	int child;
	snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
	FILE *file = fopen(path, "r");
	while (file && fscanf(file, "%d", &child) == 1)
		kill(child, SIGKILL);
	if (file)
		fclose(file);
}

static void bury_orphans(void)
{
	double late = launch_now() + 1, end = launch_now() + GRACE;
	pid_t child;
	while ((child = waitpid(-1, NULL, WNOHANG)) >= 0 && launch_now() < end) {
		if (child > 0)
			continue;
		if (launch_now() > late)
			kill_children();
		poll(NULL, 0, 20);
	}
}

static int code_of(int code)
{
	return code >= 1 && code <= mural_exit_code(MURAL_STOPPED) ? code : mural_exit_code(MURAL_FAILED);
}

static int tell_death(const launch *l, const launch_death *death)
{
	fprintf(stderr, "mural: ");
	if (death->rank >= 0)
		fprintf(stderr, "rank %d of %d", death->rank, l->ranks);
	else
		fprintf(stderr, "one of %d ranks", l->ranks);
	if (death->host[0])
		fprintf(stderr, " (node %s)", death->host);
	if (death->signal == 0) {
		fprintf(stderr, " ended with code %d and left no message\n", death->code);
		return code_of(death->code);
	}
	fprintf(stderr, " was killed by signal %d (%s)%s\n", death->signal, strsignal(death->signal),
	        death->signal == SIGKILL ? ", by a person or by the system for want of memory (see dmesg)" : "");
	return mural_exit_code(MURAL_FAILED);
}

static int tell_unexplained(const launch *l, int status)
{
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
	fputs(l->filter.held, stderr);
	if (WIFSIGNALED(status))
		fprintf(stderr, "mural: %s was killed by signal %d (%s)\n", l->command.launcher, WTERMSIG(status),
		        strsignal(WTERMSIG(status)));
	else
		fprintf(stderr, "mural: %s ended with code %d and no rank left a message\n", l->command.launcher, code);
	return code_of(code);
}

/* One message for all that happened, the most telling first. Returns the exit code. */
static int conclude(launch *l, int status)
{
	launch_message message;
	launch_death death;
	launch_message_collect(&message, l->command.folder, l->ranks);
	launch_filter_find_death(&l->filter, &death);
	l->died = !l->stopped_by &&
	          (death.signal || WIFSIGNALED(status) || (message.status == MURAL_PEER && message.rank < 0));
	if (message.status != MURAL_OK && message.status != MURAL_PEER) {
		launch_message_print(&message, l->ranks, stderr);
		return mural_exit_code(message.status);
	}
	bool succeeded = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	if (l->stopped_by && (l->deadline > 0 || !succeeded)) {
		fprintf(stderr, "mural: stopped by signal %d (%s)\n", l->stopped_by, strsignal(l->stopped_by));
		return mural_exit_code(MURAL_FAILED);
	}
	if (succeeded)
		return 0;
	if (death.signal || (death.code && message.status == MURAL_OK))
		return tell_death(l, &death);
	if (message.status == MURAL_OK)
		return tell_unexplained(l, status);
	launch_message_print(&message, l->ranks, stderr);
	return mural_exit_code(message.status);
}

/* From start to end. Returns the exit code. */
static int attempt(launch *l, mural_error *err)
{
	launch_message_remove(l->command.folder, l->ranks);
	l->filter = (launch_filter){.out = stderr, .folder = l->command.folder};
	l->asked = l->died = false;
	fflush(NULL);
	if (start(l, err) != MURAL_OK)
		return 0;
	int status = attend(l);
	bury_orphans();
	close(l->errors);
	l->errors = -1;
	return conclude(l, status);
}

static int run(launch *l, const launch_request *request, mural_error *err)
{
	int code;
	if (launch_command_prepare(&l->command, request, err) != MURAL_OK || take_signals_over(l, err) != MURAL_OK)
		return 0;
	launch_command_announce(&l->command);
	do
		code = attempt(l, err);
	while (l->died && launch_restart(&l->restarts, l->command.folder, l->signals, &code));
	return code;
}

static void release(launch *l)
{
	launch_command_release(&l->command);
	if (l->errors >= 0)
		close(l->errors);
	if (l->signals >= 0)
		close(l->signals);
	free(l);
}

int mural_launch_ranks(const launch_request *request)
{
	mural_error err = {0};
	int code = 0;
	launch *l = calloc(1, sizeof *l);
	if (l) {
		*l = (launch){.ranks = request->ranks,
		              .finishes = request->finishes,
		              .errors = -1,
		              .signals = -1,
		              .restarts = {.most = request->restarts, .elsewhere = request->hosts != NULL}};
		code = run(l, request, &err);
		release(l);
	} else {
		launch_refuse(&err, MURAL_OUT_OF_MEMORY, "no memory for starting ranks");
	}
	if (err.status == MURAL_OK)
		return code;
	mural_error_print(&err, stderr);
	return mural_exit_code(err.status);
}
