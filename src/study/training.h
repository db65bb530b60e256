/* One training among several that are compared: the program runs it in a process of its own, its words go to a log, and what it
 * measured is read from its folder.
 *
 *     mu_command *command = calloc(1, sizeof *command);
 *     mu_command_add(command, program);
 *     mu_command_add(command, "train");
 *     mu_command_add_number(command, "--ranks", 2);
 *     MU_TRY(mu_training_run(command, folder, warm_up, &facts, err));
 *
 * What was asked for stands in FOLDER/command.txt, how long it took in seconds.txt: a training whose folder has a whole result.json and the same command is not
 * repeated, so that what was interrupted goes on where it stopped.
 * SPDX-License-Identifier: MIT */
#ifndef MU_STUDY_TRAINING_H
#define MU_STUDY_TRAINING_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "mural/error.h"

/* What one run measured. Times are medians over its counted steps, in seconds, of rank 0. */
typedef struct mu_run_facts {
	bool done, reused;
	double seconds; /* of the whole training, its start included */
	int exit_code; /* of a run that failed; 128 + signal for one that was killed */
	char why[256]; /* its last words */
	size_t steps; /* counted */
	double step, data, forward, backward, exposed, hidden, optimizer;
	double imbalance; /* per step: computing of the slowest rank beyond the mean over ranks */
	double step_error; /* standard error of `step`, from the spread of the counted steps; NaN for a single one */
	double late; /* part of the run by which this machine was slower than what it emulated; NaN without emulation */
	double images_per_step, images_per_second, images_per_epoch;
	double epoch; /* seconds: images_per_epoch / images_per_second */
	double train_loss, train_accuracy, test_accuracy; /* NaN where not measured */
	double peak_memory_bytes;
} mu_run_facts;

#define MU_COMMAND_ARGUMENTS 512

/* A command line under construction. Arguments are borrowed; numbers are kept in `text`. Zero-initialise. */
typedef struct mu_command {
	const char *argv[MU_COMMAND_ARGUMENTS + 1];
	size_t n, used;
	char text[4096];
	/* NULL: a terminal's Ctrl-C reaches the process and us alike. Else the process has a group of its own, and is sent SIGINT when a
	 * signal has interrupted our waiting for it and this says so. */
	bool (*stop_asked)(void);
} mu_command;

/* One argument too many is told by mu_command_end. */
void mu_command_add(mu_command *command, const char *argument);
/* OPTION and a whole number, or OPTION and a fraction in 9 digits. */
void mu_command_add_whole(mu_command *command, const char *option, uint64_t value);
void mu_command_add_real(mu_command *command, const char *option, double value);

/* Before it is started. MURAL_USAGE: too many arguments. */
mural_status mu_command_end(mu_command *command, mural_error *err);
/* Starts it, with nothing to read and its words going to two open files. */
mural_status mu_command_start(const mu_command *command, int out, int errors, pid_t *pid, mural_error *err);
/* Waits for its end. Its exit code; 128 + signal if it was killed. */
int mu_command_await(const mu_command *command, pid_t pid);

/* Adds what every such training needs (--run-dir FOLDER among it), runs it, or finds that it was run before. warm_up: steps at its
 * beginning that do not count. A training that fails is told in facts and is no failure here. */
mural_status mu_training_run(mu_command *command, const char *folder, uint32_t warm_up, mu_run_facts *facts,
                             mural_error *err);

/* From a finished run's folder: result.json and steps.csv. */
mural_status mu_study_read_run(const char *folder, uint32_t warm_up, mu_run_facts *facts, mural_error *err);

#endif
