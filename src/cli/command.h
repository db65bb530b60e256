/* Commands of the program and the options that are not configuration. SPDX-License-Identifier: MIT */
#ifndef MURAL_CLI_COMMAND_H
#define MURAL_CLI_COMMAND_H

#include <stdbool.h>

#include "mural/config.h"

typedef struct command {
	const char *name;
	const char *summary; /* one line for `mural --help` */
	int (*run)(int argc, char **argv); /* argv[0] is the command's name; returns the exit code */
} command;

int command_train(int argc, char **argv);
int command_eval(int argc, char **argv);
int command_data(int argc, char **argv);
int command_info(int argc, char **argv);
int command_study(int argc, char **argv);

/* Options that train and eval share and that are no configuration. Strings are borrowed from argv. */
typedef struct run_arguments {
	int ranks; /* --ranks, 0 if not given */
	const char *config_file; /* --config */
	const char *result; /* --result */
	const char *weights; /* --weights, eval only */
	const char *split; /* --split, eval only */
	const char *run_dir, *checkpoint; /* --run-dir, --checkpoint, eval only: train's --run-dir is configuration */
	const char *resume; /* --resume, train only */
	bool show_config, overwrite, resume_if_any, quiet, help, help_config;
	int argc; /* what is left: configuration */
	const char **argv; /* the caller frees this array */
	char run_config[1100]; /* what config_file points to when --run-dir stands for it */
} run_arguments;

/* Sorts argv[1..] into the above. MURAL_USAGE for a missing or malformed value; evaluation: also for no weights. */
mural_status run_arguments_parse(run_arguments *arguments, int argc, char **argv, bool evaluation, mural_error *err);

/* The options of run_arguments, for --help. */
void run_arguments_help(FILE *out, bool evaluation);

#endif
