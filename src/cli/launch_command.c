/* The command that starts ranks: which mpirun, what it has to be told, and the environment that ranks need.
 *
 * Everything that can be found wrong before a process exists is found here. SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch_inside.h"
#include "mural/comm.h"

enum { MOST_RANKS = 1024 }; /* of one machine: a slip of the finger must not start processes until it stands still */
enum { EXTRA = 24 }; /* most words before the program's own, without variables to pass on */

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
		launch_become(words, ends[1], ends[1]);
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

static mural_status check_count(const launch_request *request, mural_error *err)
{
	int ranks = request->ranks;
	if (request->hosts || ranks <= MOST_RANKS)
		return MURAL_OK;
	err->status = MURAL_USAGE;
	snprintf(err->where, sizeof err->where, "argument --ranks");
	snprintf(
	        err->message, sizeof err->message,
	        "expected at most %d ranks, which all start on this machine, got %d; for more machines use --hostfile, "
	        "mpirun or srun",
	        MOST_RANKS, ranks);
	return MURAL_USAGE;
}

static mural_status find_mpirun(launch_command *c, mural_error *err)
{
	const char *given = getenv("MURAL_MPIRUN");
	const char *const names[] = {given && *given ? given : "mpirun", given && *given ? NULL : "mpiexec"};
	for (size_t i = 0; i < 2 && names[i]; i++) {
		if (!ask_version(names[i], c->version, sizeof c->version))
			continue;
		c->open_mpi = strstr(c->version, "Open MPI") || strstr(c->version, "OpenRTE");
		c->launcher = names[i];
		return MURAL_OK;
	}
	if (given && *given) {
		snprintf(err->where, sizeof err->where, "environment variable MURAL_MPIRUN");
		snprintf(err->message, sizeof err->message, "\"%.256s\" cannot be run", given);
		return err->status = MURAL_USAGE;
	}
	snprintf(err->where, sizeof err->where, "argument --ranks");
	return launch_refuse(
	        err, MURAL_FAILED,
	        "more than one rank needs mpirun, and there is none: install it (Debian, Ubuntu: apt install "
	        "openmpi-bin), or use --ranks 1");
}

static void add_flag(launch_command *c, const char *flag, const char *why)
{
	size_t used = strlen(c->why);
	c->words[c->n_words++] = flag;
	snprintf(c->why + used, sizeof c->why - used, "%s%s: %s", used ? "; " : "", flag, why);
}

/* What Open MPI has to be told, and MPICH neither needs nor understands. */
static void add_open_mpi_flags(launch_command *c)
{
	static const char *const exported[] = {"MURAL_PARENT", "MURAL_ERROR_DIR", "MURAL_TTY", "MURAL_AGAIN"};
	char why[64];
	if (geteuid() == 0)
		add_flag(c, "--allow-run-as-root", "you are root");
	if (!c->request->hosts && c->request->ranks > mural_cores()) {
		snprintf(why, sizeof why, "%d ranks on %d core%s", c->request->ranks, mural_cores(),
		         mural_cores() == 1 ? "" : "s");
		add_flag(c, "--oversubscribe", why);
	}
	add_flag(c, "--bind-to", "ranks bind themselves");
	c->words[c->n_words++] = "none";
	size_t n = c->request->hosts ? c->hosts.n_names : sizeof exported / sizeof *exported;
	for (size_t i = 0; i < n; i++) {
		c->words[c->n_words++] = "-x";
		c->words[c->n_words++] = c->request->hosts ? c->hosts.names[i] : exported[i];
	}
}

/* Ranks fill the hosts in the file's order; MPICH does so anyway. */
static void add_hosts(launch_command *c)
{
	c->words[c->n_words++] = c->open_mpi ? "--hostfile" : "-f";
	c->words[c->n_words++] = c->hosts.file;
	if (!c->open_mpi)
		return;
	c->words[c->n_words++] = "--map-by";
	c->words[c->n_words++] = "slot";
}

static mural_status find_program(launch_command *c, mural_error *err)
{
	ssize_t n = readlink("/proc/self/exe", c->program, sizeof c->program - 1);
	return n > 0 ? MURAL_OK
	             : launch_refuse(err, MURAL_FAILED,
	                             "the program's own path is unknown (/proc/self/exe): is /proc mounted?");
}

static mural_status compose(launch_command *c, mural_error *err)
{
	const launch_request *request = c->request;
	c->words = calloc((size_t)request->argc + EXTRA + 2 * c->hosts.n_names, sizeof *c->words);
	if (!c->words)
		return launch_refuse(err, MURAL_OUT_OF_MEMORY, "no memory for starting ranks");
	snprintf(c->count, sizeof c->count, "%d", c->request->ranks);
	c->words[c->n_words++] = c->launcher;
	c->words[c->n_words++] = "-n";
	c->words[c->n_words++] = c->count;
	if (request->hosts)
		add_hosts(c);
	if (c->open_mpi)
		add_open_mpi_flags(c);
	c->words[c->n_words++] = c->program;
	for (int i = 0; i < request->argc; i++)
		c->words[c->n_words++] = request->argv[i];
	return MURAL_OK;
}

void launch_command_announce(const launch_command *c)
{
	size_t hosts = c->request->hosts ? mural_hosts_count(c->request->hosts) : 0;
	fprintf(stderr, "mural: starting %d rank%s", c->request->ranks, c->request->ranks == 1 ? "" : "s");
	if (hosts > 0)
		fprintf(stderr, " on %zu host%s", hosts, hosts == 1 ? "" : "s");
	fputc(':', stderr);
	for (int i = 0; i < c->n_words && c->words[i] != c->program; i++)
		if (strcmp(c->words[i], "-x") == 0)
			i++; /* the reader need not repeat these */
		else
			fprintf(stderr, " %s", c->words[i]);
	fprintf(stderr, " mural ...%s%s%s\n", c->why[0] ? " (" : "", c->why, c->why[0] ? ")" : "");
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

static mural_status set_environment(launch_command *c, mural_error *err)
{
	const char *temporary = getenv("TMPDIR");
	struct winsize window = {0};
	char columns[16] = "0";
	snprintf(c->folder, sizeof c->folder, "%.200s/mural-XXXXXX", temporary && *temporary ? temporary : "/tmp");
	if (!mkdtemp(c->folder)) {
		snprintf(err->where, sizeof err->where, "%s", c->folder);
		c->folder[0] = '\0';
		return launch_refuse(err, MURAL_FAILED,
		                     "a temporary folder cannot be made: set TMPDIR to one that is writable");
	}
	if (isatty(STDERR_FILENO) && ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0)
		snprintf(columns, sizeof columns, "%d", window.ws_col ? window.ws_col : 80);
	setenv("MURAL_PARENT", "1", 1);
	setenv("MURAL_ERROR_DIR", c->folder, 1);
	setenv("MURAL_TTY", columns, 1);
	setenv("MURAL_AGAIN", "", 1);
	if (!c->request->hosts)
		leave_slurm_out();
	/* All ranks are on this machine, which may be without a network: Open MPI 5 would complain. */
	bool here = !c->request->hosts || launch_hosts_are_here(c->request->hosts);
	if (here && !getenv("OMPI_MCA_btl_tcp_if_exclude"))
		setenv("OMPI_MCA_btl_tcp_if_include", "lo", 0);
	return MURAL_OK;
}

/* All that can be wrong before a process is started. */
mural_status launch_command_prepare(launch_command *c, const launch_request *request, mural_error *err)
{
	*c = (launch_command){.request = request};
	if (check_count(request, err) != MURAL_OK || find_program(c, err) != MURAL_OK ||
	    find_mpirun(c, err) != MURAL_OK)
		return err->status;
	if (request->hosts && request->ask_hosts && launch_ask_hosts(request->hosts, c->program, err) != MURAL_OK)
		return err->status;
	if (set_environment(c, err) != MURAL_OK)
		return err->status;
	if (request->hosts && launch_hosts_prepare(&c->hosts, request->hosts, c->open_mpi, c->folder, err) != MURAL_OK)
		return err->status;
	return compose(c, err);
}

void launch_command_release(launch_command *c)
{
	launch_hosts_release(&c->hosts);
	if (c->folder[0]) {
		launch_message_remove(c->folder, c->request->ranks);
		launch_restart_forget(c->folder);
		rmdir(c->folder);
	}
	free(c->words);
	*c = (launch_command){0};
}
