/* The parent of `--ranks N`: composes a command for mpirun, runs it, listens, cleans up, and says what happened.
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
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launch_inside.h"
#include "mural/comm.h"

enum { GRACE = 5 }; /* seconds from a signal, or from mpirun's end, until what is left is killed */
enum { MOST_RANKS = 1024 }; /* of one machine: a slip of the finger must not start processes until it stands still */
enum { EXTRA = 24 }; /* most words before the program's own */

typedef struct launch {
	int ranks;
	bool finishes; /* the ranks, on SIGUSR1 */
	char version[512]; /* what `mpirun --version` prints first; "" if there is none */
	bool open_mpi;
	char folder[256]; /* for messages */
	char program[4096];
	char count[16];
	const char **words; /* of the command, NULL at the end */
	int n_words;
	char why[256]; /* of the extra flags */

	pid_t mpirun;
	int errors; /* reading end of its stderr */
	int signals; /* signalfd */
	sigset_t before; /* signal mask */
	int stopped_by; /* signal that we were sent, or 0 */
	bool asked; /* the ranks have been asked to finish because of it */
	double deadline; /* seconds by the clock; 0 = none */
	launch_filter filter;
} launch;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static mural_status refuse(mural_error *err, mural_status status, const char *message)
{
	err->status = status;
	snprintf(err->message, sizeof err->message, "%s", message);
	return status;
}

/* Runs in the child: what it writes to `fd` comes to us. */
static void become(const char *const *words, int out, int errors)
{
	int nothing = open("/dev/null", O_RDWR);
	dup2(nothing, STDIN_FILENO);
	if (out >= 0)
		dup2(out, STDOUT_FILENO);
	dup2(errors, STDERR_FILENO);
	execvp(words[0], (char *const *)words);
	_exit(127);
}

/* The beginning of what `name --version` prints. False if it cannot be run. */
static bool ask_version(const char *name, char *text, size_t capacity)
{
	const char *words[] = {name, "--version", NULL};
	int ends[2], status = 0;
	size_t used = 0;
	text[0] = '\0';
	if (pipe2(ends, O_CLOEXEC))
		return false;
	pid_t child = fork();
	if (child == 0)
		become(words, ends[1], ends[1]);
	close(ends[1]);
	char bytes[512];
	ssize_t n;
	while (child > 0 && (n = read(ends[0], bytes, sizeof bytes)) > 0) {
		size_t take = (size_t)n < capacity - 1 - used ? (size_t)n : capacity - 1 - used;
		memcpy(text + used, bytes, take);
		used += take;
		text[used] = '\0';
	}
	close(ends[0]);
	return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static mural_status check_count(int ranks, mural_error *err)
{
	if (ranks <= MOST_RANKS)
		return MURAL_OK;
	err->status = MURAL_USAGE;
	snprintf(err->where, sizeof err->where, "argument --ranks");
	snprintf(err->message, sizeof err->message,
	         "expected at most %d ranks, which all start on this machine, got %d; for more machines use mpirun or "
	         "srun",
	         MOST_RANKS, ranks);
	return MURAL_USAGE;
}

static mural_status find_mpirun(launch *l, mural_error *err)
{
	const char *given = getenv("MURAL_MPIRUN");
	const char *const names[] = {given && *given ? given : "mpirun", given && *given ? NULL : "mpiexec"};
	for (size_t i = 0; i < 2 && names[i]; i++) {
		if (!ask_version(names[i], l->version, sizeof l->version))
			continue;
		l->open_mpi = strstr(l->version, "Open MPI") || strstr(l->version, "OpenRTE");
		l->words[l->n_words++] = names[i];
		return MURAL_OK;
	}
	if (given && *given) {
		snprintf(err->where, sizeof err->where, "environment variable MURAL_MPIRUN");
		snprintf(err->message, sizeof err->message, "\"%.256s\" cannot be run", given);
		return err->status = MURAL_USAGE;
	}
	snprintf(err->where, sizeof err->where, "argument --ranks");
	return refuse(err, MURAL_FAILED,
	              "more than one rank needs mpirun, and there is none: install it (Debian, Ubuntu: apt install "
	              "openmpi-bin), or use --ranks 1");
}

static void add_flag(launch *l, const char *flag, const char *why)
{
	size_t used = strlen(l->why);
	l->words[l->n_words++] = flag;
	snprintf(l->why + used, sizeof l->why - used, "%s%s: %s", used ? "; " : "", flag, why);
}

/* What Open MPI has to be told, and MPICH neither needs nor understands. */
static void add_open_mpi_flags(launch *l)
{
	static const char *const exported[] = {"MURAL_PARENT", "MURAL_ERROR_DIR", "MURAL_TTY"};
	char why[64];
	if (geteuid() == 0)
		add_flag(l, "--allow-run-as-root", "you are root");
	if (l->ranks > mural_cores()) {
		snprintf(why, sizeof why, "%d ranks on %d core%s", l->ranks, mural_cores(),
		         mural_cores() == 1 ? "" : "s");
		add_flag(l, "--oversubscribe", why);
	}
	add_flag(l, "--bind-to", "ranks bind themselves");
	l->words[l->n_words++] = "none";
	for (size_t i = 0; i < sizeof exported / sizeof *exported; i++) {
		l->words[l->n_words++] = "-x";
		l->words[l->n_words++] = exported[i];
	}
}

static mural_status compose(launch *l, int argc, char **argv, mural_error *err)
{
	ssize_t n = readlink("/proc/self/exe", l->program, sizeof l->program - 1);
	if (n <= 0)
		return refuse(err, MURAL_FAILED,
		              "the program's own path is unknown (/proc/self/exe): is /proc mounted?");
	if (find_mpirun(l, err) != MURAL_OK)
		return err->status;
	snprintf(l->count, sizeof l->count, "%d", l->ranks);
	l->words[l->n_words++] = "-n";
	l->words[l->n_words++] = l->count;
	if (l->open_mpi)
		add_open_mpi_flags(l);
	l->words[l->n_words++] = l->program;
	for (int i = 0; i < argc; i++)
		l->words[l->n_words++] = argv[i];
	return MURAL_OK;
}

static void announce(const launch *l)
{
	fprintf(stderr, "mural: starting %d ranks:", l->ranks);
	for (int i = 0; i < l->n_words && l->words[i] != l->program; i++)
		if (strcmp(l->words[i], "-x") == 0)
			i++; /* the reader need not repeat these */
		else
			fprintf(stderr, " %s", l->words[i]);
	fprintf(stderr, " mural ...%s%s%s\n", l->why[0] ? " (" : "", l->why, l->why[0] ? ")" : "");
}

/* "On this machine" inside a Slurm job, too: mpirun would ask Slurm, and go by the job's tasks and its other machines. */
static void leave_slurm_out(void)
{
	static const char *const settings[][2] = {{"OMPI_MCA_ras", "^slurm"}, {"OMPI_MCA_plm", "^slurm"},
	                                          {"PRTE_MCA_ras", "^slurm"}, {"PRTE_MCA_plm", "^slurm"},
	                                          {"HYDRA_RMK", "user"},      {"HYDRA_LAUNCHER", "fork"}};
	if (!getenv("SLURM_JOB_ID"))
		return;
	for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
		setenv(settings[i][0], settings[i][1], 0);
}

static mural_status set_environment(launch *l, mural_error *err)
{
	const char *temporary = getenv("TMPDIR");
	struct winsize window = {0};
	char columns[16] = "0";
	snprintf(l->folder, sizeof l->folder, "%.200s/mural-XXXXXX", temporary && *temporary ? temporary : "/tmp");
	if (!mkdtemp(l->folder)) {
		snprintf(err->where, sizeof err->where, "%s", l->folder);
		l->folder[0] = '\0';
		return refuse(err, MURAL_FAILED,
		              "a temporary folder cannot be made: set TMPDIR to one that is writable");
	}
	if (isatty(STDERR_FILENO) && ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0)
		snprintf(columns, sizeof columns, "%d", window.ws_col ? window.ws_col : 80);
	setenv("MURAL_PARENT", "1", 1);
	setenv("MURAL_ERROR_DIR", l->folder, 1);
	setenv("MURAL_TTY", columns, 1);
	leave_slurm_out();
	/* All ranks are on this machine, which may be without a network: Open MPI 5 would complain. */
	if (!getenv("OMPI_MCA_btl_tcp_if_exclude"))
		setenv("OMPI_MCA_btl_tcp_if_include", "lo", 0);
	return MURAL_OK;
}

static mural_status start(launch *l, mural_error *err)
{
	int ends[2];
	sigset_t wanted;
	sigemptyset(&wanted);
	/* SIGPIPE: nobody reads our words any more (`| head`). */
	for (size_t i = 0; i < 6; i++)
		sigaddset(&wanted, (const int[]){SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGCHLD}[i]);
	if (l->finishes)
		sigaddset(&wanted, SIGUSR1);
	sigprocmask(SIG_BLOCK, &wanted, &l->before);
	l->signals = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
	if (l->signals < 0 || pipe2(ends, O_CLOEXEC))
		return refuse(err, MURAL_FAILED, "no file descriptors are left for starting ranks");
	l->errors = ends[0];
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	pid_t parent = getpid();
	l->mpirun = fork();
	if (l->mpirun == 0) {
		setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		sigprocmask(SIG_SETMASK, &l->before, NULL);
		if (getppid() == parent)
			become(l->words, -1, ends[1]);
		_exit(127);
	}
	close(ends[1]);
	return l->mpirun < 0 ? refuse(err, MURAL_FAILED, "no process can be started (fork failed)") : MURAL_OK;
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
		l->deadline = now() + GRACE;
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
	if (l->deadline > 0 && now() > l->deadline)
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
	for (double end = now() + 1; open && now() < end;)
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
	double late = now() + 1, end = now() + GRACE;
	pid_t child;
	while ((child = waitpid(-1, NULL, WNOHANG)) >= 0 && now() < end) {
		if (child > 0)
			continue;
		if (now() > late)
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
		fprintf(stderr, "mural: %s was killed by signal %d (%s)\n", l->words[0], WTERMSIG(status),
		        strsignal(WTERMSIG(status)));
	else
		fprintf(stderr, "mural: %s ended with code %d and no rank left a message\n", l->words[0], code);
	return code_of(code);
}

/* One message for all that happened, the most telling first. Returns the exit code. */
static int conclude(const launch *l, int status)
{
	launch_message message;
	launch_death death;
	launch_message_collect(&message, l->folder, l->ranks);
	launch_filter_find_death(&l->filter, &death);
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

int mural_launch_ranks(int ranks, int argc, char **argv, bool finishes)
{
	mural_error err = {0};
	int code = mural_exit_code(MURAL_FAILED);
	launch *l = calloc(1, sizeof *l);
	const char **words = calloc((size_t)argc + EXTRA, sizeof *words);
	if (!l || !words) {
		refuse(&err, MURAL_OUT_OF_MEMORY, "no memory for starting ranks");
		goto out;
	}
	*l = (launch){.ranks = ranks,
	              .finishes = finishes,
	              .words = words,
	              .errors = -1,
	              .signals = -1,
	              .filter = {.out = stderr}};
	if (check_count(ranks, &err) != MURAL_OK || compose(l, argc, argv, &err) != MURAL_OK ||
	    set_environment(l, &err) != MURAL_OK)
		goto out;
	announce(l);
	fflush(NULL);
	if (start(l, &err) != MURAL_OK)
		goto out;
	int status = attend(l);
	bury_orphans();
	code = conclude(l, status);
out:
	if (err.status != MURAL_OK) {
		mural_error_print(&err, stderr);
		code = mural_exit_code(err.status);
	}
	if (l && l->folder[0])
		launch_message_remove(l->folder, ranks);
	if (l && l->errors >= 0)
		close(l->errors);
	if (l && l->signals >= 0)
		close(l->signals);
	free(words);
	free(l);
	return code;
}
