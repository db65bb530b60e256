/* Asking hosts, before anything starts, whether ranks could: each is sent a line of shell through the agent that mpirun will use
 * (ssh, mostly), all at once. What they answer, in the order of what is looked at:
 *
 *     91         the working directory is not there
 *     92         the program is not there, or may not be run
 *     93         it does not run
 *     0          "mural VERSION", among whatever else a login shell prints
 *     other      the agent's own: not reached
 *
 * The first host that cannot is told of, and how many others. Hosts that are this machine are not asked.
 * SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch_inside.h"
#include "mural/info.h"

enum { PATIENCE = 30 }; /* seconds for all answers */
enum { AT_ONCE = 64 }; /* questions under way */
enum { NO_FOLDER = 91, NO_PROGRAM = 92, NO_START = 93 };

typedef struct question {
	const mural_host *host;
	pid_t pid; /* 0: answered, or not asked yet */
	int fd;
	int status; /* of waitpid */
	bool late;
	char text[512]; /* the last of what was said */
	size_t used;
} question;

typedef struct asking {
	const mural_hosts *hosts;
	char agent[512]; /* words, cut at blanks */
	const char *agent_words[16];
	size_t n_agent_words;
	char folder[4096], *command;
	const char *program;
	question *questions;
	size_t n;
} asking;

/* The agent that mpirun will use: its first choice of "ssh : rsh", cut into words. */
static void find_agent(asking *a)
{
	static const char *const variables[] = {"PRTE_MCA_plm_ssh_agent", "OMPI_MCA_plm_rsh_agent",
	                                        "HYDRA_LAUNCHER_EXEC"};
	const char *given = "ssh";
	for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
		const char *value = getenv(variables[i]);
		if (value && *value)
			given = value;
	}
	snprintf(a->agent, sizeof a->agent, "%.*s", (int)strcspn(given, ":"), given);
	char *keep = NULL, *word = strtok_r(a->agent, " ", &keep);
	const char *program = word ? word : "ssh", *slash = strrchr(program, '/');
	a->agent_words[a->n_agent_words++] = program;
	while (a->n_agent_words < 8 && (word = strtok_r(NULL, " ", &keep)))
		a->agent_words[a->n_agent_words++] = word;
	if (strcmp(slash ? slash + 1 : program, "ssh") != 0)
		return;
	/* Nobody is there to type a password. */
	for (size_t i = 0; i < 4; i++)
		a->agent_words[a->n_agent_words++] =
		        (const char *const[]){"-o", "BatchMode=yes", "-o", "ConnectTimeout=10"}[i];
}

/* text in single quotes for a shell. */
static void quote(FILE *out, const char *text)
{
	fputc('\'', out);
	for (; *text; text++)
		if (*text == '\'')
			fputs("'\\''", out);
		else
			fputc(*text, out);
	fputc('\'', out);
}

/* What the host's shell is to do. NULL without memory. */
static char *compose(const asking *a)
{
	const char *libraries = getenv("LD_LIBRARY_PATH");
	char *script = NULL, *command = NULL;
	size_t bytes;
	FILE *out = open_memstream(&script, &bytes);
	if (!out)
		return NULL;
	fputs("cd ", out);
	quote(out, a->folder);
	fprintf(out, " || exit %d; test -x ", NO_FOLDER);
	quote(out, a->program);
	fprintf(out, " || exit %d; ", NO_PROGRAM);
	if (libraries) {
		fputs("LD_LIBRARY_PATH=", out);
		quote(out, libraries);
		fputs(" ", out);
	}
	quote(out, a->program);
	fprintf(out, " --version || exit %d", NO_START);
	fclose(out);
	out = script ? open_memstream(&command, &bytes) : NULL;
	if (out) {
		fputs("sh -c ", out); /* whatever the login shell is */
		quote(out, script);
		fclose(out);
	}
	free(script);
	return command;
}

static void ask(const asking *a, question *q)
{
	const char *words[24];
	size_t n = 0;
	int ends[2];
	for (size_t i = 0; i < a->n_agent_words; i++)
		words[n++] = a->agent_words[i];
	words[n++] = q->host->name;
	words[n++] = a->command;
	words[n] = NULL;
	q->status = -1;
	if (pipe2(ends, O_CLOEXEC))
		return;
	q->pid = fork();
	if (q->pid == 0) {
		setpgid(0, 0);
		launch_become(words, ends[1], ends[1]);
	}
	close(ends[1]);
	q->fd = ends[0];
	if (q->pid < 0) {
		q->pid = 0;
		close(ends[0]);
	}
}

static void end(question *q)
{
	close(q->fd);
	waitpid(q->pid, &q->status, 0);
	q->pid = 0;
}

/* Keeps the last of what is said. */
static void hear(question *q)
{
	char bytes[512];
	ssize_t n = read(q->fd, bytes, sizeof bytes);
	if (n < 0 && errno == EINTR)
		return;
	if (n <= 0) {
		end(q);
		return;
	}
	size_t room = sizeof q->text - 1, take = (size_t)n < room ? (size_t)n : room;
	size_t keep = q->used + take > room ? room - take : q->used;
	memmove(q->text, q->text + q->used - keep, keep);
	memcpy(q->text + keep, bytes + n - take, take);
	q->used = keep + take;
	q->text[q->used] = '\0';
}

/* Questions first .. last - 1, at once. */
static void ask_some(asking *a, size_t first, size_t last, double deadline)
{
	struct pollfd fds[AT_ONCE];
	question *of[AT_ONCE];
	for (size_t i = first; i < last; i++)
		ask(a, &a->questions[i]);
	for (;;) {
		nfds_t n = 0;
		for (size_t i = first; i < last; i++)
			if (a->questions[i].pid > 0) {
				of[n] = &a->questions[i];
				fds[n++] = (struct pollfd){.fd = a->questions[i].fd, .events = POLLIN};
			}
		if (n == 0)
			return;
		bool late = launch_now() > deadline;
		if (!late && poll(fds, n, 200) <= 0)
			continue;
		for (nfds_t i = 0; i < n; i++)
			if (late) {
				of[i]->late = true;
				kill(-of[i]->pid, SIGKILL);
				end(of[i]);
			} else if (fds[i].revents) {
				hear(of[i]);
			}
	}
}

static bool is_same_version(const question *q)
{
	char own[64];
	snprintf(own, sizeof own, "mural %s\n", mural_version());
	return strstr(q->text, own) != NULL;
}

static bool is_well(const question *q)
{
	return !q->late && WIFEXITED(q->status) && WEXITSTATUS(q->status) == 0 && is_same_version(q);
}

/* The last line, which is where programs say why. */
static const char *last_words(question *q)
{
	while (q->used > 0 && strchr("\r\n \t", q->text[q->used - 1]))
		q->text[--q->used] = '\0';
	char *line = strrchr(q->text, '\n');
	for (char *c = q->text; *c; c++)
		if ((unsigned char)*c < ' ' && *c != '\n')
			*c = '?';
	return line ? line + 1 : q->used ? q->text : "nothing";
}

static mural_status explain(const asking *a, question *q, mural_error *err)
{
	const char *name = q->host->name;
	int code = !q->late && WIFEXITED(q->status) ? WEXITSTATUS(q->status) : -1;
	size_t size = sizeof err->message;
	err->status = MURAL_USAGE;
	if (code == NO_FOLDER)
		snprintf(err->message, size, "host \"%s\" has no folder %.512s, where this was started", name,
		         a->folder);
	else if (code == NO_PROGRAM)
		snprintf(err->message, size, "host \"%s\" has no program %.512s: it must be there under the same path",
		         name, a->program);
	else if (code == NO_START)
		snprintf(err->message, size, "host \"%s\": %.256s does not run there: %s", name, a->program,
		         last_words(q));
	else if (code == 0)
		snprintf(err->message, size, "host \"%s\" has another Mural: this one is %s, that one says \"%s\"",
		         name, mural_version(), last_words(q));
	else if (code == 127 && q->used == 0) {
		snprintf(err->message, size,
		         "host \"%s\" cannot be asked: there is no `%s` (Debian, Ubuntu: apt install openssh-client)",
		         name, a->agent_words[0]);
	} else {
		err->status = MURAL_FAILED;
		snprintf(err->message, size, "host \"%s\" cannot be reached: `%s %s` %s%s", name, a->agent_words[0],
		         name, q->late ? "did not answer in time" : "says: ", q->late ? "" : last_words(q));
	}
	return err->status;
}

static mural_status judge(asking *a, mural_error *err)
{
	size_t ill = 0, used = 0;
	for (size_t i = 0; i < a->n; i++) {
		question *q = &a->questions[i];
		if (is_well(q))
			continue;
		const char *file = mural_hosts_file(a->hosts);
		if (ill++ == 0) {
			explain(a, q, err);
			snprintf(err->where, sizeof err->where, "%s:%d", file, q->host->line);
		} else if (used < sizeof err->context - 300) {
			used += (size_t)snprintf(err->context + used, sizeof err->context - used, "%s%s (line %d)",
			                         ill == 2 ? "nor will it work on " : ", ", q->host->name,
			                         q->host->line);
		}
	}
	return err->status;
}

mural_status launch_ask_hosts(const mural_hosts *hosts, const char *program, mural_error *err)
{
	asking a = {.hosts = hosts, .program = program};
	a.questions = calloc(mural_hosts_count(hosts), sizeof *a.questions);
	for (size_t i = 0; a.questions && i < mural_hosts_count(hosts); i++)
		if (!launch_is_here(mural_hosts_get(hosts, i)->name))
			a.questions[a.n++].host = mural_hosts_get(hosts, i);
	find_agent(&a);
	if (!getcwd(a.folder, sizeof a.folder))
		snprintf(a.folder, sizeof a.folder, ".");
	a.command = compose(&a);
	if (!a.questions || !a.command) {
		err->status = MURAL_OUT_OF_MEMORY;
		snprintf(err->message, sizeof err->message, "no memory for asking %zu hosts", mural_hosts_count(hosts));
	} else {
		double deadline = launch_now() + PATIENCE;
		for (size_t i = 0; i < a.n; i += AT_ONCE)
			ask_some(&a, i, i + AT_ONCE < a.n ? i + AT_ONCE : a.n, deadline);
		judge(&a, err);
	}
	free(a.command);
	free(a.questions);
	return err->status;
}
