/* Sorts a command line into the command's own options and configuration. SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "usage.h"

typedef enum option_kind { OPTION_FLAG, OPTION_TEXT, OPTION_COUNT } option_kind;

enum { FOR_RUNS = RUN_TRAIN | RUN_EVAL, FOR_ALL = FOR_RUNS | RUN_INFO };

typedef struct option_row {
	const char *name, *value; /* value: as shown in help */
	option_kind kind;
	int commands; /* set of run_kind */
	size_t offset; /* in run_arguments */
	const char *help;
} option_row;

#define AT(field) offsetof(run_arguments, field)
static const option_row rows[] = {
        {"--config", "FILE", OPTION_TEXT, FOR_RUNS, AT(config_file), "a DeepSpeed-style configuration (HJSON)"},
        {"--deepspeed_config", "FILE", OPTION_TEXT, FOR_RUNS, AT(config_file), "the same, by DeepSpeed's name"},
        {"--ranks", "N", OPTION_COUNT, FOR_ALL, AT(ranks),
         "start N ranks through mpirun, on this machine (default 1) or on the first slots of --hostfile (default all)"},
        {"--hostfile", "FILE", OPTION_TEXT, FOR_ALL, AT(hostfile),
         "start ranks on these hosts, lines \"NAME slots=COUNT\""},
        {"--include", "HOSTS", OPTION_TEXT, FOR_ALL, AT(include), "only these hosts and slots of them: c1@c2:0,2"},
        {"--exclude", "HOSTS", OPTION_TEXT, FOR_ALL, AT(exclude), "not these hosts, or not these slots of them"},
        {"--num-nodes", "N", OPTION_COUNT, FOR_ALL, AT(num_nodes), "only the first N hosts"},
        {"--num-gpus", "N", OPTION_COUNT, FOR_ALL, AT(num_gpus), "only the first N slots of each host"},
        {"--no-ssh-check", NULL, OPTION_FLAG, FOR_ALL, AT(no_ssh_check),
         "do not ask hosts first whether they can be reached and have this program"},
        {"--weights", "PATH", OPTION_TEXT, RUN_EVAL, AT(weights),
         "a file, a run or a checkpoint; model, mean and std come from there unless they are given"},
        {"--run-dir", "FOLDER", OPTION_TEXT, RUN_EVAL, AT(run_dir),
         "a run's folder: its weights.safetensors and, unless --config says another, its config.json"},
        {"--checkpoint", "NAME", OPTION_TEXT, RUN_EVAL, AT(checkpoint),
         "weights of that run's checkpoint instead: best, latest or step-00000123"},
        {"--split", "NAME", OPTION_TEXT, RUN_EVAL, AT(split), "test (default), train or validation"},
        {"--result", "FILE", OPTION_TEXT, FOR_ALL, AT(result), "write what was measured as JSON"},
        {"--overwrite", NULL, OPTION_FLAG, RUN_TRAIN, AT(overwrite), "replace an earlier run in the same --run-dir"},
        {"--resume", "auto|PATH", OPTION_TEXT, RUN_TRAIN, AT(resume),
         "go on from the newest checkpoint of --run-dir (auto), of another run, or from one checkpoint"},
        {"--resume-if-any", NULL, OPTION_FLAG, RUN_TRAIN, AT(resume_if_any),
         "the same, and begin when there is no checkpoint; --resume auto if that is not given"},
        {"--max-restarts", "N", OPTION_COUNT, RUN_TRAIN, AT(max_restarts),
         "with --ranks: start again from the last complete checkpoint, at most N times, when a rank dies or hangs"},
        {"--show-config", NULL, OPTION_FLAG, FOR_RUNS, AT(show_config),
         "print every value in force and where it came from, then stop"},
        {"--help-config", NULL, OPTION_FLAG, FOR_RUNS, AT(help_config), "explain every configuration key"},
        {"--quiet", NULL, OPTION_FLAG, FOR_RUNS, AT(quiet), "no progress, only warnings, errors and the last line"},
        {"--help", NULL, OPTION_FLAG, FOR_ALL, AT(help), "this text"},
};
#define ROWS (sizeof rows / sizeof *rows)

/* DeepSpeed's launcher spells its options with "_". */
static bool is_named(const option_row *row, const char *argument, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (argument[i] != row->name[i] && !(argument[i] == '_' && row->name[i] == '-' && i > 1))
			return false;
	return argument[length] == '\0' || argument[length] == '=';
}

/* The row that `argument` names, as "--name" or "--name=value"; *value is then behind the sign, else NULL. */
static const option_row *find_row(const char *argument, run_kind kind, const char **value)
{
	for (size_t i = 0; i < ROWS; i++) {
		size_t length = strlen(rows[i].name);
		if (!(rows[i].commands & kind) || !is_named(&rows[i], argument, length))
			continue;
		*value = argument[length] == '=' ? argument + length + 1 : NULL;
		return &rows[i];
	}
	return NULL;
}

static mural_status usage(mural_error *err, const char *option, const char *expected, const char *found)
{
	err->status = MURAL_USAGE;
	snprintf(err->message, sizeof err->message, "argument %s: expected %s, got %s", option, expected, found);
	return MURAL_USAGE;
}

static mural_status parse_count(const char *option, const char *text, int *count, mural_error *err)
{
	char *end;
	errno = 0;
	long value = strtol(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || value < 1 || value > 1 << 20)
		return usage(err, option, "a whole number from 1 to 1048576", text[0] ? text : "nothing");
	*count = (int)value;
	return MURAL_OK;
}

static mural_status take(run_arguments *arguments, const option_row *row, const char *value, mural_error *err)
{
	void *field = (char *)arguments + row->offset;
	if (row->kind == OPTION_FLAG) {
		if (value)
			return usage(err, row->name, "no value", value);
		*(bool *)field = true;
		return MURAL_OK;
	}
	if (!value || value[0] == '\0')
		return usage(err, row->name, row->value, "nothing");
	if (row->kind == OPTION_COUNT)
		return parse_count(row->name, value, field, err);
	*(const char **)field = value;
	return MURAL_OK;
}

/* What eval cannot do without, unless it shall only explain something. */
static mural_status check_evaluation(const run_arguments *a, mural_error *err)
{
	if (a->help || a->help_config || a->show_config)
		return MURAL_OK;
	if (a->split && strcmp(a->split, "test") != 0 && strcmp(a->split, "train") != 0 &&
	    strcmp(a->split, "validation") != 0)
		return usage(err, "--split", "test, train or validation", a->split);
	if (!a->weights && !a->run_dir)
		return usage(err, "--weights", "weights to evaluate, or a run's folder with --run-dir", "nothing");
	if (a->weights && a->checkpoint)
		return usage(err, "--checkpoint", "no --weights beside it", "both");
	if (a->checkpoint && !a->run_dir)
		return usage(err, "--checkpoint", "the run's folder with --run-dir", "nothing");
	return MURAL_OK;
}

/* The folder of a run brings its configuration along. */
static void take_run(run_arguments *a)
{
	if (!a->run_dir || a->config_file)
		return;
	snprintf(a->run_config, sizeof a->run_config, "%.1080s/config.json", a->run_dir);
	a->config_file = a->run_config;
}

mural_status run_arguments_parse(run_arguments *arguments, int argc, char **argv, run_kind kind, mural_error *err)
{
	*arguments = (run_arguments){0};
	arguments->argv = calloc((size_t)argc + 1, sizeof *arguments->argv);
	if (!arguments->argv) {
		err->status = MURAL_OUT_OF_MEMORY;
		snprintf(err->message, sizeof err->message, "no memory for %d arguments", argc);
		return err->status;
	}
	for (int i = 1; i < argc; i++) {
		const char *value;
		const option_row *row = find_row(argv[i], kind, &value);
		if (!row) {
			arguments->argv[arguments->argc++] = argv[i];
			continue;
		}
		if (row->kind != OPTION_FLAG && !value && i + 1 < argc)
			value = argv[++i];
		mural_status status = take(arguments, row, value, err);
		if (status != MURAL_OK)
			return status;
	}
	if (kind != RUN_EVAL)
		return MURAL_OK;
	take_run(arguments);
	return check_evaluation(arguments, err);
}

void run_arguments_help(FILE *out, run_kind kind)
{
	for (size_t i = 0; i < ROWS; i++)
		if (rows[i].commands & kind)
			usage_option(out, rows[i].name, rows[i].value, rows[i].help);
}
