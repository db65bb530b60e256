/* mural: finds the command and runs it. SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "mural/info.h"

static const command commands[] = {
        {"train", "train or fine-tune a Vision Transformer, on one rank or many", command_train},
        {"eval", "accuracy of weights on a data set, every image once", command_eval},
        {"plan", "what a run will take, without running it: memory, time, scaling, money, learning rates",
         command_plan},
        {"predict", "classes of images", command_predict},
        {"data", "look at a data set, verify it, fetch one", command_data},
        {"study", "the same training at several ranks, batches or precisions, compared", command_study},
        {"tune", "the micro-batch, ranks and threads that train fastest here, by short trials", command_tune},
        {"report", "a run or a study as a page with words, figures and tables", command_report},
        {"weights", "whose weights are these, for which model; convert them", command_weights},
        {"info", "what this machine offers: processor, libraries, MPI, data sets", command_info},
};
#define COMMANDS (sizeof commands / sizeof *commands)

static void help(FILE *out)
{
	fprintf(out, "usage: mural COMMAND [OPTIONS]\n\ncommands:\n");
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].summary);
	fprintf(out, "\n`mural COMMAND --help` explains a command, `mural --version` tells the version.\n"
	             "exit codes: 0 done, 1 failed while running, 2 wrong usage or configuration, 3 wrong data, 4 "
	             "stopped on request\n");
}

/* A standard stream that the caller has closed (`>&-`) would be the number of the next file we open, and what is printed
 * would go into that. */
static bool open_standard_streams(void)
{
	int fd;
	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	return fd >= 0 && close(fd) == 0;
}

/* What was printed is a result too: a full disk behind stdout is a failure. */
static int end_output(int code)
{
	bool written = fflush(stdout) == 0 && !ferror(stdout);
	if (written || code != 0)
		return code;
	fprintf(stderr, "mural: cannot write to the standard output: %s\n", strerror(errno));
	return mural_exit_code(MURAL_FAILED);
}

static int run(int argc, char **argv)
{
	if (argc < 2) {
		help(stderr);
		return mural_exit_code(MURAL_USAGE);
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
		help(stdout);
		return 0;
	}
	if (strcmp(argv[1], "--version") == 0) {
		printf("mural %s\n", mural_version());
		return 0;
	}
	for (size_t i = 0; i < COMMANDS; i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return commands[i].run(argc - 1, argv + 1);
	fprintf(stderr, "mural: there is no command '%s'; `mural --help` lists them\n", argv[1]);
	return mural_exit_code(MURAL_USAGE);
}

int main(int argc, char **argv)
{
	signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is an error like a full disk, with a message */
	if (!open_standard_streams())
		return mural_exit_code(MURAL_FAILED);
	return end_output(run(argc, argv));
}
