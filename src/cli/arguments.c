/* Sorts a command line into the command's own options and configuration. SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

typedef enum option_kind { OPTION_FLAG, OPTION_TEXT, OPTION_COUNT } option_kind;

typedef enum option_for { FOR_BOTH, FOR_TRAIN, FOR_EVAL } option_for;

typedef struct option_row {
	const char *name, *value; /* value: as shown in help */
	option_kind kind;
	option_for command;
	size_t offset; /* in run_arguments */
	const char *help;
} option_row;

#define AT(field) offsetof(run_arguments, field)
static const option_row rows[] = {
        {"--config", "FILE", OPTION_TEXT, FOR_BOTH, AT(config_file), "a DeepSpeed-style configuration (HJSON)"},
        {"--deepspeed_config", "FILE", OPTION_TEXT, FOR_BOTH, AT(config_file), "the same, by DeepSpeed's name"},
        {"--ranks", "N", OPTION_COUNT, FOR_BOTH, AT(ranks), "start N ranks on this machine through mpirun (default 1)"},
        {"--weights", "FILE", OPTION_TEXT, FOR_EVAL, AT(weights), "the safetensors file to evaluate"},
        {"--run-dir", "FOLDER", OPTION_TEXT, FOR_EVAL, AT(run_dir),
         "a run's folder: its weights.safetensors and, unless --config says another, its config.json"},
        {"--checkpoint", "NAME", OPTION_TEXT, FOR_EVAL, AT(checkpoint),
         "weights of that run's checkpoint instead: best, latest or step-00000123"},
        {"--split", "NAME", OPTION_TEXT, FOR_EVAL, AT(split), "test (default), train or validation"},
        {"--result", "FILE", OPTION_TEXT, FOR_BOTH, AT(result), "write what was measured as JSON"},
        {"--overwrite", NULL, OPTION_FLAG, FOR_TRAIN, AT(overwrite), "replace an earlier run in the same --run-dir"},
        {"--resume", "auto|PATH", OPTION_TEXT, FOR_TRAIN, AT(resume),
         "go on from the newest checkpoint of --run-dir (auto), of another run, or from one checkpoint"},
        {"--resume-if-any", NULL, OPTION_FLAG, FOR_TRAIN, AT(resume_if_any),
         "the same, and begin when there is no checkpoint; --resume auto if that is not given"},
        {"--show-config", NULL, OPTION_FLAG, FOR_BOTH, AT(show_config),
         "print every value in force and where it came from, then stop"},
        {"--help-config", NULL, OPTION_FLAG, FOR_BOTH, AT(help_config), "explain every configuration key"},
        {"--quiet", NULL, OPTION_FLAG, FOR_BOTH, AT(quiet), "no progress, only warnings, errors and the last line"},
        {"--help", NULL, OPTION_FLAG, FOR_BOTH, AT(help), "this text"},
};
#define ROWS (sizeof rows / sizeof *rows)

static bool belongs(const option_row *row, bool evaluation)
{
	return row->command == FOR_BOTH || (row->command == FOR_EVAL) == evaluation;
}

/* The row that `argument` names, as "--name" or "--name=value"; *value is then behind the sign, else NULL. */
static const option_row *find_row(const char *argument, bool evaluation, const char **value)
{
	for (size_t i = 0; i < ROWS; i++) {
		size_t length = strlen(rows[i].name);
		if (!belongs(&rows[i], evaluation) || strncmp(argument, rows[i].name, length) != 0)
			continue;
		if (argument[length] != '\0' && argument[length] != '=')
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
		return usage(err, "--weights", "a safetensors file to evaluate, or a run's folder with --run-dir",
		             "nothing");
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

mural_status run_arguments_parse(run_arguments *arguments, int argc, char **argv, bool evaluation, mural_error *err)
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
		const option_row *row = find_row(argv[i], evaluation, &value);
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
	if (!evaluation)
		return MURAL_OK;
	take_run(arguments);
	return check_evaluation(arguments, err);
}

void run_arguments_help(FILE *out, bool evaluation)
{
	for (size_t i = 0; i < ROWS; i++) {
		if (!belongs(&rows[i], evaluation))
			continue;
		char left[64];
		snprintf(left, sizeof left, "%s%s%s", rows[i].name, rows[i].value ? " " : "",
		         rows[i].value ? rows[i].value : "");
		fprintf(out, "  %-26s %s\n", left, rows[i].help);
	}
}
