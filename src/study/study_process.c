/* One run of a study: the program trains in a process of its own, its words go to a log.
 *
 * What was asked for stands in FOLDER/command.txt; a run whose folder has a whole result.json and the same command is not repeated.
 * SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "study/study_inside.h"

#define MOST_ARGUMENTS 512
#define COMMAND_BYTES ((size_t)1 << 20)
#define LOG_TAIL 4096

extern char **environ;

/* A command line under construction; numbers are kept in `text`. */
typedef struct command {
	const char *argv[MOST_ARGUMENTS + 1];
	size_t n, used;
	char text[4096];
} command;

static void add(command *c, const char *argument)
{
	if (c->n < MOST_ARGUMENTS)
		c->argv[c->n] = argument;
	c->n++; /* beyond the end is told by build */
}

static void add_value(command *c, const char *option, const char *format, double value)
{
	size_t left = sizeof c->text - c->used;
	int length = snprintf(c->text + c->used, left, format, value);
	add(c, option);
	add(c, c->text + c->used);
	c->used += (size_t)length + 1 < left ? (size_t)length + 1 : 0;
}

static void add_batch(command *c, const mu_point *point)
{
	add_value(c, "--ranks", "%.0f", point->ranks);
	add_value(c, "--micro-batch", "%.0f", point->batch);
	add_value(c, "--accumulation", "%.0f", point->accumulation);
	add_value(c, "--batch", "%.0f", (double)point->ranks * point->batch * point->accumulation);
}

/* The point's own values come last: they win over the configuration's. */
static mural_status build(command *c, const mural_study_settings *s, const mu_point *point, const char *folder,
                          mural_error *err)
{
	add(c, s->program);
	add(c, "train");
	for (int i = 0; i < s->argc; i++)
		add(c, s->argv[i]);
	add_batch(c, point);
	add(c, "--precision");
	add(c, point->precision);
	if (point->optimizer) {
		add(c, "--optimizer");
		add(c, point->optimizer);
	}
	add_value(c, "--fraction", "%.9g", point->fraction);
	if (s->steps > 0) {
		add_value(c, "--max-steps", "%.0f", (double)s->steps + s->warm_up);
		add(c, "--eval-every");
		add(c, "0");
	}
	add(c, "--quiet");
	add(c, "--overwrite");
	add(c, "--run-dir");
	add(c, folder);
	if (c->n > MOST_ARGUMENTS)
		return mu_fail(err, MURAL_USAGE, NULL, "the configuration has more than %d arguments",
		               MOST_ARGUMENTS - 40);
	c->argv[c->n] = NULL;
	return MURAL_OK;
}

static mural_status write_command(const command *c, const char *path, mural_error *err)
{
	mu_file file = {0};
	MU_TRY(mu_file_begin(&file, path, err));
	for (size_t i = 0; i < c->n; i++)
		fprintf(file.out, "%s\n", c->argv[i]);
	return mu_file_commit(&file, err);
}

/* The earlier run was asked for with the same words. */
static bool same_command(const command *c, const char *path)
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

static mural_status start(const command *c, const char *log, pid_t *pid, mural_error *err)
{
	posix_spawn_file_actions_t actions;
	int failed = posix_spawn_file_actions_init(&actions);
	if (failed)
		return mu_fail(err, MURAL_FAILED, NULL, "cannot prepare a process: %s", strerror(failed));
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
	failed = posix_spawn(pid, c->argv[0], &actions, NULL, (char *const *)c->argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (failed)
		return mu_fail(err, MURAL_FAILED, c->argv[0], "cannot start the program: %s", strerror(failed));
	return MURAL_OK;
}

/* Ctrl-C reaches the run as well, being of the same process group: it stops at its next step, and we wait for that. */
static int await(pid_t pid)
{
	int status;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

mural_status mu_study_train(const mu_study *study, const mu_point *point, uint32_t round, mu_run_facts *facts,
                            mural_error *err)
{
	const mural_study_settings *s = study->settings;
	char folder[1024], asked[1100], log[1100];
	command *c = calloc(1, sizeof *c);
	if (!c)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for a command");
	snprintf(folder, sizeof folder, "%.800s/points/%s.%u", s->folder, point->name, round + 1);
	snprintf(asked, sizeof asked, "%s/command.txt", folder);
	snprintf(log, sizeof log, "%s/log.txt", folder);
	mural_status status = MURAL_OK;
	pid_t pid;
	MU_TRY_OUT(build(c, s, point, folder, err));
	if (same_command(c, asked) && mu_study_read_run(folder, s->steps ? s->warm_up : 0, facts, NULL) == MURAL_OK) {
		facts->reused = true;
		goto out;
	}
	MU_TRY_OUT(mu_make_folders(folder, err));
	MU_TRY_OUT(start(c, log, &pid, err));
	facts->exit_code = await(pid);
	mural_error unreadable = {0};
	if (facts->exit_code != 0)
		last_words(log, facts->why, sizeof facts->why);
	else if (mu_study_read_run(folder, s->steps ? s->warm_up : 0, facts, &unreadable) != MURAL_OK)
		snprintf(facts->why, sizeof facts->why, "%.200s", unreadable.message);
	else
		status = write_command(c, asked, err);
out:
	free(c);
	return status;
}
