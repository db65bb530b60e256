/* Commands of the program and the options that are not configuration. SPDX-License-Identifier: MIT */
#ifndef MURAL_CLI_COMMAND_H
#define MURAL_CLI_COMMAND_H

#include <stdbool.h>

#include "mural/config.h"
#include "mural/hosts.h"

typedef struct command {
	const char *name;
	const char *summary; /* one line for `mural --help` */
	int (*run)(int argc, char **argv); /* argv[0] is the command's name; returns the exit code */
} command;

int command_train(int argc, char **argv);
int command_eval(int argc, char **argv);
int command_data(int argc, char **argv);
int command_plan(int argc, char **argv);
/* The mode --fit of plan. */
int command_plan_fit(int argc, char **argv);
void command_plan_fit_help(void);
/* The mode --balance of plan. */
int command_plan_balance(int argc, char **argv);
void command_plan_balance_help(void);
/* The plan of a training, and the mode --calibrate. */
int command_plan_forecast(int argc, char **argv);
void command_plan_forecast_help(void);
int command_plan_calibrate(int argc, char **argv);
void command_plan_calibrate_help(void);
int command_info(int argc, char **argv);
int command_report(int argc, char **argv);
int command_study(int argc, char **argv);
int command_tune(int argc, char **argv);
int command_weights(int argc, char **argv);
int command_predict(int argc, char **argv);

/* Commands with ranks, as a set. */
typedef enum run_kind { RUN_TRAIN = 1, RUN_EVAL = 2, RUN_INFO = 4 } run_kind;

/* Options that these share and that are no configuration. Strings are borrowed from argv. */
typedef struct run_arguments {
	int ranks; /* --ranks, 0 if not given */
	const char *hostfile, *include, *exclude; /* the hosts that ranks start on: mural/hosts.h */
	int num_nodes, num_gpus; /* 0 if not given */
	bool no_ssh_check;
	int max_restarts; /* --max-restarts, train only; 0 if not given */
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

/* Sorts argv[1..] into the above. MURAL_USAGE for a missing or malformed value; RUN_EVAL: also for no weights. */
mural_status run_arguments_parse(run_arguments *arguments, int argc, char **argv, run_kind kind, mural_error *err);

/* The options of run_arguments, for --help. */
void run_arguments_help(FILE *out, run_kind kind);

/* The ranks that a command line asks for. */
typedef struct rank_choice {
	int ranks; /* 0: it does not say */
	mural_hosts *hosts; /* NULL: this machine, or somebody else has started the ranks */
	bool start; /* this process starts them and does nothing else */
} rank_choice;

/* MURAL_USAGE for hosts that are wrong, or when a launcher has started this process and hosts are given all the same. */
mural_status rank_choice_make(rank_choice *choice, const run_arguments *arguments, mural_error *err);
void rank_choice_release(rank_choice *choice);
/* As mural_launch_ranks, with the arguments that this program has got from the command on. Returns the exit code. */
int rank_choice_start(const rank_choice *choice, const run_arguments *arguments, int argc, char **argv, bool finishes);

#endif
