/* mural plan --calibrate: measures this machine for later plans. SPDX-License-Identifier: MIT */
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "mural/calibrate.h"
#include "usage.h"

#define BUSY 0.3 /* load per core above which figures are doubted aloud */

static volatile sig_atomic_t interrupted;

static void note_interrupt(int number)
{
	(void)number;
	interrupted = 1;
}

static bool stop_asked(void)
{
	return interrupted != 0;
}

void command_plan_calibrate_help(void)
{
	printf("options of --calibrate (docs/predicting.md); others are configuration:\n"
	       "  --calibrate [CONFIG]       measure this machine in about a minute of short trainings, and CONFIG's\n"
	       "                             own model if one is given\n"
	       "  --output FILE              the cluster file to write (default machine.json)\n"
	       "  --folder FOLDER            keep the trainings' folders here (default: a temporary one)\n"
	       "  --rounds N                 measure everything N times and take medians (default 1)\n"
	       "  --steps N                  measured steps of each training (default 4)\n");
}

typedef struct calibrate_arguments {
	mural_calibrate_settings settings;
	int argc;
	const char **argv;
} calibrate_arguments;

static mural_status take(calibrate_arguments *a, size_t option, const char *name, const char *value, mural_error *err)
{
	const char **texts[] = {&a->settings.config_file, &a->settings.output, &a->settings.folder};
	uint32_t *numbers[] = {&a->settings.ranks, &a->settings.rounds, &a->settings.steps};
	if (!value || !*value)
		return usage_wrong("plan", name, option < 3 ? "a path" : "a whole number above 0", NULL, err);
	if (option < 3) {
		*texts[option] = value;
		return MURAL_OK;
	}
	uint64_t number = 0;
	mural_status status = usage_count("plan", name, value, 4096, &number, err);
	*numbers[option - 3] = (uint32_t)number;
	return status;
}

static mural_status parse(calibrate_arguments *a, int argc, char **argv, mural_error *err)
{
	static const char *const names[] = {"--config", "--output", "--folder", "--ranks", "--rounds", "--steps"};
	const size_t n = sizeof names / sizeof *names;
	for (int i = 1; i < argc; i++) {
		size_t length = strcspn(argv[i], "="), o = 0;
		if (strcmp(argv[i], "--calibrate") == 0) {
			if (i + 1 < argc && argv[i + 1][0] != '-')
				a->settings.config_file = argv[++i];
			continue;
		}
		while (o < n && (strlen(names[o]) != length || strncmp(argv[i], names[o], length) != 0))
			o++;
		if (o == n) {
			a->argv[a->argc++] = argv[i];
			continue;
		}
		const char *value = argv[i][length] == '=' ? argv[i] + length + 1 : i + 1 < argc ? argv[++i] : NULL;
		mural_status status = take(a, o, names[o], value, err);
		if (status != MURAL_OK)
			return status;
	}
	a->settings.argc = a->argc;
	a->settings.argv = a->argv;
	return MURAL_OK;
}

static int remove_one(const char *path, const struct stat *facts, int kind, struct FTW *at)
{
	(void)facts, (void)kind, (void)at;
	return remove(path);
}

static mural_status fail(mural_error *err, const char *what)
{
	err->status = MURAL_FAILED;
	snprintf(err->message, sizeof err->message, "%s: %s", what, strerror(errno));
	return MURAL_FAILED;
}

static void sum_up(const calibrate_arguments *a, const mural_calibration *found)
{
	printf("%zu trainings in %.0f s; the rates give their steps back within %.1f %% (median) and %.1f %% (worst)\n",
	       found->trainings, found->seconds, 100 * found->median_error, 100 * found->max_error);
	if (found->link_bytes_per_second > 0)
		printf("between ranks: %.3g GB/s, %.3g us\n", found->link_bytes_per_second / 1e9,
		       1e6 * found->link_latency);
	printf("written: %s; now `mural plan --cluster %s ...`\n", a->settings.output, a->settings.output);
	if (found->load_per_core > BUSY)
		fprintf(stderr,
		        "mural: warning: the machine was busy before (load %.2g per core): its figures are too slow "
		        "for an "
		        "idle one\n",
		        found->load_per_core);
}

static mural_status run(calibrate_arguments *a, mural_error *err)
{
	char program[4096], folder[4096];
	const char *tmp = getenv("TMPDIR");
	bool kept = a->settings.folder != NULL;
	ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
	if (n < 0)
		return fail(err, "cannot tell where this program lies");
	program[n] = '\0';
	if (!kept) {
		snprintf(folder, sizeof folder, "%.4000s/mural-calibrate-XXXXXX", tmp && *tmp ? tmp : "/tmp");
		if (!mkdtemp(folder))
			return fail(err, "cannot make a temporary folder");
		a->settings.folder = folder;
	}
	a->settings.program = program;
	a->settings.progress = stdout;
	a->settings.stop_asked = stop_asked;
	struct sigaction action = {.sa_handler = note_interrupt};
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	mural_calibration found;
	mural_status status = mural_calibrate(&a->settings, &found, err);
	if (!kept)
		nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	if (status == MURAL_OK)
		sum_up(a, &found);
	return status;
}

int command_plan_calibrate(int argc, char **argv)
{
	mural_error err = {0};
	calibrate_arguments a = {.settings.output = "machine.json"};
	a.argv = calloc((size_t)argc + 1, sizeof *a.argv);
	mural_status status = MURAL_OUT_OF_MEMORY;
	if (a.argv)
		status = parse(&a, argc, argv, &err);
	else
		snprintf(err.message, sizeof err.message, "no memory for %d arguments", argc);
	if (status == MURAL_OK)
		status = run(&a, &err);
	free(a.argv);
	if (status != MURAL_OK)
		mural_error_print(&err, stderr);
	return mural_exit_code(status);
}
