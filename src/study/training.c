/* A training in a process of its own. SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "study/training.h"

#define COMMAND_BYTES ((size_t)1 << 20)
#define LOG_TAIL 4096

extern char **environ;

void mu_command_add(mu_command *c, const char *argument)
{
	if (c->n < MU_COMMAND_ARGUMENTS)
		c->argv[c->n] = argument;
	c->n++; /* beyond the end is told by mu_command_end */
}

/* The value's text, just printed behind what is kept already. */
static void add_kept(mu_command *c, const char *option, int length)
{
	mu_command_add(c, option);
	if (length < 0 || c->used + (size_t)length + 1 > sizeof c->text) {
		c->n = MU_COMMAND_ARGUMENTS + 1;
		return;
	}
	mu_command_add(c, c->text + c->used);
	c->used += (size_t)length + 1;
}

void mu_command_add_whole(mu_command *c, const char *option, uint64_t value)
{
	add_kept(c, option, snprintf(c->text + c->used, sizeof c->text - c->used, "%" PRIu64, value));
}

void mu_command_add_real(mu_command *c, const char *option, double value)
{
	add_kept(c, option, snprintf(c->text + c->used, sizeof c->text - c->used, "%.9g", value));
}

mural_status mu_command_end(mu_command *c, mural_error *err)
{
	if (c->n > MU_COMMAND_ARGUMENTS)
		return mu_fail(err, MURAL_USAGE, NULL, "the configuration has more than %d arguments",
		               MU_COMMAND_ARGUMENTS - 60);
	c->argv[c->n] = NULL;
	return MURAL_OK;
}

static mural_status write_command(const mu_command *c, const char *path, mural_error *err)
{
	mu_file file = {0};
	MU_TRY(mu_file_begin(&file, path, err));
	for (size_t i = 0; i < c->n; i++)
		fprintf(file.out, "%s\n", c->argv[i]);
	return mu_file_commit(&file, err);
}

static mural_status write_seconds(double seconds, const char *path, mural_error *err)
{
	mu_file file = {0};
	MU_TRY(mu_file_begin(&file, path, err));
	fprintf(file.out, "%.6f\n", seconds);
	return mu_file_commit(&file, err);
}

static double read_seconds(const char *path)
{
	double seconds = 0;
	FILE *in = fopen(path, "r");
	char line[64];
	if (in && fgets(line, sizeof line, in))
		seconds = strtod(line, NULL);
	if (in)
		fclose(in);
	return isfinite(seconds) && seconds > 0 ? seconds : 0;
}

/* The earlier run was asked for with the same words. */
static bool same_command(const mu_command *c, const char *path)
{
	char *text, *at;
	size_t bytes;
	if (mu_file_read(path, "command", COMMAND_BYTES, MURAL_FAILED, &text, &bytes, NULL) != MURAL_OK)
		return false;
	at = text;
	bool same = true;
	for (size_t i = 0; same && i < c->n; i++) {
		size_t length = strlen(c->argv[i]);
		same = strncmp(at, c->argv[i], length) == 0 && at[length] == '\n';
		at += same ? length + 1 : 0;
	}
	same = same && *at == '\0';
	free(text);
	return same;
}

/* The last line of a log that says something. */
static void last_words(const char *path, char *words, size_t bytes)
{
	char tail[LOG_TAIL + 1];
	size_t n = 0;
	FILE *log = fopen(path, "r");
	if (log) {
		if (fseek(log, 0, SEEK_END) == 0 && ftell(log) > LOG_TAIL)
			(void)fseek(log, -LOG_TAIL, SEEK_END);
		else
			rewind(log);
		n = fread(tail, 1, LOG_TAIL, log);
		fclose(log);
	}
	tail[n] = '\0';
	char *error = NULL;
	for (char *at = tail; (at = strstr(at, "mural: ")); at += 7)
		if (!error || strncmp(at, "mural: warning", 14) != 0)
			error = at;
	char *from = error ? error : tail;
	from[strcspn(from, "\n")] = '\0';
	snprintf(words, bytes, "%.250s", *from ? from : "it said nothing");
}

mural_status mu_command_start(const mu_command *c, int out, int errors, pid_t *pid, mural_error *err)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int failed = posix_spawn_file_actions_init(&actions);
	if (failed)
		return mu_fail(err, MURAL_FAILED, NULL, "cannot prepare a process: %s", strerror(failed));
	failed = posix_spawnattr_init(&attributes);
	if (failed) {
		posix_spawn_file_actions_destroy(&actions);
		return mu_fail(err, MURAL_FAILED, NULL, "cannot prepare a process: %s", strerror(failed));
	}
	if (c->stop_asked)
		posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
	failed = posix_spawnp(pid, c->argv[0], &actions, &attributes, (char *const *)c->argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	if (failed)
		return mu_fail(err, MURAL_FAILED, c->argv[0], "cannot start the program: %s", strerror(failed));
	return MURAL_OK;
}

/* One that is asked to stop does so at its next step, and we wait for that. */
int mu_command_await(const mu_command *c, pid_t pid)
{
	int status;
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -1;
		if (c->stop_asked && c->stop_asked())
			kill(pid, SIGINT);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* To its end, with all its words in the log. */
static mural_status run(const mu_command *c, const char *log, int *code, mural_error *err)
{
	pid_t pid;
	int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return mu_fail(err, MURAL_FAILED, log, "cannot write a run's log: %s", strerror(errno));
	mural_status status = mu_command_start(c, fd, fd, &pid, err);
	close(fd);
	if (status == MURAL_OK)
		*code = mu_command_await(c, pid);
	return status;
}

mural_status mu_training_run(mu_command *c, const char *folder, uint32_t warm_up, mu_run_facts *facts, mural_error *err)
{
	static const char *const last[] = {"--quiet", "--overwrite", "--run-dir"};
	char asked[1100], log[1100], took[1100];
	snprintf(asked, sizeof asked, "%.1000s/command.txt", folder);
	snprintf(log, sizeof log, "%.1000s/log.txt", folder);
	snprintf(took, sizeof took, "%.1000s/seconds.txt", folder);
	for (size_t i = 0; i < sizeof last / sizeof *last; i++)
		mu_command_add(c, last[i]);
	mu_command_add(c, folder);
	MU_TRY(mu_command_end(c, err));
	if (same_command(c, asked) && mu_study_read_run(folder, warm_up, facts, NULL) == MURAL_OK) {
		facts->reused = true;
		facts->seconds = read_seconds(took);
		return MURAL_OK;
	}
	double from = mu_now();
	MU_TRY(mu_make_folders(folder, err));
	MU_TRY(run(c, log, &facts->exit_code, err));
	/* What was kept is the same after it is read again: whoever goes on decides as if nothing had happened. */
	facts->seconds = round((mu_now() - from) * 1e6) / 1e6;
	mural_error unreadable = {0};
	if (facts->exit_code != 0) {
		last_words(log, facts->why, sizeof facts->why);
		return MURAL_OK;
	}
	if (mu_study_read_run(folder, warm_up, facts, &unreadable) != MURAL_OK) {
		snprintf(facts->why, sizeof facts->why, "%.200s", unreadable.message);
		return MURAL_OK;
	}
	MU_TRY(write_seconds(facts->seconds, took, err));
	return write_command(c, asked, err);
}
