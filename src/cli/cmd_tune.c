/* mural tune: the micro-batch, the accumulation, and the ranks and threads that train fastest here. SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "mural/tune.h"
#include "trainings.h"
#include "usage.h"

typedef struct tune_arguments {
	mural_tune_settings settings;
	const char *result;
	bool json, help;
	bool batch_fixed; /* --batch was given */
	bool headed; /* the table has its head */
	const char **argv; /* configuration */
	int argc;
} tune_arguments;

enum {
	CONFIG,
	RANKS,
	THREADS,
	MICRO_RANGE,
	BATCH_RANGE,
	MEMORY_LIMIT,
	TOLERANCE,
	BUDGET,
	TRIAL_SECONDS,
	WARM_UP,
	FOLDER,
	OUTPUT,
	RESULT,
	JSON,
	HELP,
	OPTIONS
};

static const struct {
	const char *name, *value, *help;
} rows[OPTIONS] = {
        [CONFIG] = {"--config", "FILE", "a DeepSpeed-style configuration (HJSON); what is written is this file, tuned"},
        [RANKS] = {"--ranks", "N,N,...", "numbers of ranks to choose from (default 1, 2, 4, ... up to the cores)"},
        [THREADS] = {"--threads", "N,N,...", "threads of a rank to choose from (default cores / ranks)"},
        [MICRO_RANGE] = {"--micro-range", "LOW:HIGH",
                         "micro-batches to choose from (default all that divide the batch)"},
        [BATCH_RANGE] = {"--batch-range", "LOW:HIGH",
                         "global batches to choose from, by doubling (default: the configuration's, which stays)"},
        [MEMORY_LIMIT] = {"--memory-limit", "SIZE", "of a rank, as 800M or 2.5G (default what is free / ranks)"},
        [TOLERANCE] = {"--tolerance", "PERCENT", "a gain that is worth no trial and no larger micro-batch (default 2)"},
        [BUDGET] = {"--budget", "PERCENT", "of the time of trying everything that trials may take (default 20)"},
        [TRIAL_SECONDS] = {"--trial-seconds", "X", "of measured steps in a trial, three steps at least (default 2)"},
        [WARM_UP] = {"--warm-up", "N", "steps of a trial before them (default 2)"},
        [FOLDER] = {"--folder", "FOLDER",
                    "where trials and results go (default runs/tune); the same command goes on where it stopped"},
        [OUTPUT] = {"--output", "FILE", "the configuration that is written (default FOLDER/tuned.json)"},
        [RESULT] = {"--result", "FILE", "a copy of FOLDER/tune.json: every trial, the choice and why"},
        [JSON] = {"--json", NULL, "print that instead of the table"},
        [HELP] = {"--help", NULL, "this text"},
};

static void help(void)
{
	printf("usage: mural tune [OPTIONS] [CONFIGURATION]\n"
	       "Finds the micro-batch, the accumulation, and the ranks and threads that train fastest on this machine, "
	       "by\n"
	       "short trials, and writes the configuration. The global batch stays as it is.\n\n"
	       "  mural tune --config ds_config.json\n"
	       "  mural tune --config ds_config.json --ranks 1,2,4 --memory-limit 2G --output tuned.json\n"
	       "  mural tune --model vit_ti_16 --data cifar10 --batch-range 64:512\n\n"
	       "options:\n");
	for (int o = 0; o < OPTIONS; o++)
		usage_option(stdout, rows[o].name, rows[o].value, rows[o].help);
	printf("\nEverything else is configuration: see `mural train --help`.\n");
}

/* ---- values. ---- */

static mural_status wrong(int option, const char *expected, const char *found, mural_error *err)
{
	return usage_wrong("tune", rows[option].name, expected, found, err);
}

static mural_status take_list(int option, const char *text, uint32_t *list, size_t *n, mural_error *err)
{
	if (trainings_list(text, list, MURAL_TUNE_LIST, n))
		return MURAL_OK;
	return wrong(option, "up to 32 whole numbers above 0 with commas between", text, err);
}

enum { MOST = 1000000000 }; /* images of a batch */

static mural_status take_range(int option, const char *text, uint64_t *low, uint64_t *high, mural_error *err)
{
	char *end = NULL;
	bool good = text && usage_whole(text, &end, 1, MOST, low) && *end == ':' &&
	            usage_whole(end + 1, &end, 1, MOST, high) && *end == '\0';
	if (!good)
		return wrong(option, "two whole numbers above 0 as LOW:HIGH", text, err);
	return *low <= *high ? MURAL_OK : wrong(option, "a range that does not begin above its end", text, err);
}

static mural_status take_size(int option, const char *text, uint64_t *bytes, mural_error *err)
{
	static const char units[] = "KMGT";
	char *end = NULL;
	double value = text ? strtod(text, &end) : 0;
	const char *unit = end && *end ? strchr(units, *end) : NULL;
	if (unit) {
		value = ldexp(value, 10 * (int)(unit - units + 1));
		end++;
		end += strcmp(end, "iB") == 0 ? 2 : strcmp(end, "B") == 0;
	}
	if (!end || *end != '\0' || !(value >= 1) || value > 1e18)
		return wrong(option, "a size such as 800M or 2.5G", text, err);
	*bytes = (uint64_t)value;
	return MURAL_OK;
}

static mural_status take_number(int option, const char *text, double most, double scale, double *value,
                                mural_error *err)
{
	char *end = NULL, expected[64];
	double number = text ? strtod(text, &end) : 0;
	snprintf(expected, sizeof expected, "a number above 0 and at most %g", most);
	if (!end || end == text || *end != '\0' || !(number > 0) || number > most)
		return wrong(option, expected, text, err);
	*value = number * scale;
	return MURAL_OK;
}

static mural_status take_warm_up(const char *text, uint32_t *value, mural_error *err)
{
	char *end = NULL;
	uint64_t number;
	if (!text || !usage_whole(text, &end, 0, 1000000, &number) || *end != '\0')
		return wrong(WARM_UP, "a whole number up to a million", text, err);
	*value = (uint32_t)number;
	return MURAL_OK;
}

static mural_status take_text(int option, const char *text, const char **value, mural_error *err)
{
	*value = text;
	return text && *text ? MURAL_OK : wrong(option, "a path", text, err);
}

static mural_status take(tune_arguments *a, int option, const char *text, mural_error *err)
{
	mural_tune_settings *s = &a->settings;
	switch (option) {
	case CONFIG: return take_text(option, text, &s->config_file, err);
	case FOLDER: return take_text(option, text, &s->folder, err);
	case OUTPUT: return take_text(option, text, &s->output, err);
	case RESULT: return take_text(option, text, &a->result, err);
	case RANKS: return take_list(option, text, s->ranks, &s->n_ranks, err);
	case THREADS: return take_list(option, text, s->threads, &s->n_threads, err);
	case MICRO_RANGE: return take_range(option, text, &s->micro_low, &s->micro_high, err);
	case BATCH_RANGE: return take_range(option, text, &s->batch_low, &s->batch_high, err);
	case MEMORY_LIMIT: return take_size(option, text, &s->memory_limit, err);
	case TOLERANCE: return take_number(option, text, 100, 0.01, &s->tolerance, err);
	case BUDGET: return take_number(option, text, 1000, 0.01, &s->budget, err);
	case TRIAL_SECONDS: return take_number(option, text, 3600, 1, &s->trial_seconds, err);
	default: return take_warm_up(text, &s->warm_up, err);
	}
}

/* Options that the search sets for each trial itself. --batch fixes the batch. */
static const char *const own[] = {"--run-dir",  "--micro-batch", "--accumulation",  "--max-steps",
                                  "--resume",   "--overwrite",   "--resume-if-any", "--max-restarts",
                                  "--hostfile", "--include",     "--exclude",       "--num-nodes",
                                  "--num-gpus", "--drop-last",   "--measure-only",  NULL};

static int find_option(const char *argument)
{
	size_t length = strcspn(argument, "=");
	for (int o = 0; o < OPTIONS; o++)
		if (strlen(rows[o].name) == length && strncmp(argument, rows[o].name, length) == 0)
			return o;
	return -1;
}

static mural_status parse(tune_arguments *a, int argc, char **argv, mural_error *err)
{
	for (int i = 1; i < argc; i++) {
		int option = find_option(argv[i]);
		const char *equals = strchr(argv[i], '=');
		mural_status status = MURAL_OK;
		if (option == JSON || option == HELP) {
			*(option == JSON ? &a->json : &a->help) = true;
			status = equals ? wrong(option, "no value", equals + 1, err) : MURAL_OK;
		} else if (option >= 0) {
			status = take(a, option, equals ? equals + 1 : i + 1 < argc ? argv[++i] : NULL, err);
		} else {
			status = trainings_refuse("tune", own, argv[i], err);
			a->batch_fixed |= strncmp(argv[i], "--batch", 7) == 0 && (!argv[i][7] || argv[i][7] == '=');
			a->argv[a->argc++] = argv[i];
		}
		if (status != MURAL_OK)
			return status;
	}
	if (a->batch_fixed && a->settings.batch_low > 0)
		return wrong(BATCH_RANGE, "it without --batch", "both", err);
	return MURAL_OK;
}

/* ---- the command. ---- */

static void print_trial(void *context, const mural_tune_point *p, const mural_tune_trial *trial)
{
	tune_arguments *a = context;
	char text[MURAL_TUNE_TEXT];
	if (a->json)
		return;
	if (!a->headed)
		printf("%-46s %10s    %-8s %7s\n", "ranks and threads, micro-batch x accumulation", "images/s", "",
		       "seconds");
	a->headed = true;
	printf("%-46s ", mural_tune_point_text(p, text));
	if (trial->measured)
		printf("%10.1f +- %-8.1f %7.1f%s\n", trial->images_per_second, trial->error * trial->images_per_second,
		       trial->seconds, trial->reused ? "  (measured before)" : "");
	else
		printf("%s after %.1f s: %s\n", p->state == MURAL_TUNE_TOO_LARGE ? "no memory" : "failed",
		       trial->seconds, p->why);
	fflush(stdout);
}

static void print_choice(const mural_tune_result *r)
{
	const mural_tune_point *c = &r->points[r->chosen];
	printf("\nchosen: %s\n", r->why[0]);
	for (size_t i = 1; i < MURAL_TUNE_WHY && r->why[i][0]; i++)
		printf("  - %s\n", r->why[i]);
	printf("%zu trial%s in %.1f s; trying all %zu configurations once would take about %.0f s\n", r->n_trials,
	       r->n_trials == 1 ? "" : "s", r->seconds, r->n_points, r->sweep_seconds);
	printf("written: %s; to train with it: mural train --config %s --ranks %u\n", r->output, r->output, c->ranks);
}

static mural_status run(tune_arguments *a, mural_error *err)
{
	char program[4096];
	mural_tune_result *result = NULL;
	if (trainings_program(program, err) != MURAL_OK)
		return err->status;
	a->settings.program = program;
	a->settings.argc = a->argc;
	a->settings.argv = a->argv;
	a->settings.tell = print_trial;
	a->settings.context = a;
	a->settings.stop_asked = trainings_stop_asked;
	trainings_watch_stop();
	mural_status status = mural_tune_run(&a->settings, &result, err);
	if (status == MURAL_OK && !a->json)
		print_choice(result);
	if (status == MURAL_STOPPED && result && !a->json && result->chosen < result->n_points)
		printf("\nbest so far: %s\n", result->why[0]);
	if (status == MURAL_OK && a->json)
		status = trainings_copy(a->settings.folder, "tune.json", "-", err);
	if (status == MURAL_OK && a->result)
		status = trainings_copy(a->settings.folder, "tune.json", a->result, err);
	mural_tune_result_free(result);
	return status;
}

int command_tune(int argc, char **argv)
{
	mural_error err = {0};
	tune_arguments a = {0};
	mural_tune_defaults(&a.settings);
	a.argv = calloc((size_t)argc + 1, sizeof *a.argv);
	mural_status status = MURAL_OUT_OF_MEMORY;
	if (a.argv)
		status = parse(&a, argc, argv, &err);
	else
		snprintf(err.message, sizeof err.message, "no memory for %d arguments", argc);
	if (status == MURAL_OK && a.help)
		help();
	else if (status == MURAL_OK)
		status = run(&a, &err);
	free(a.argv);
	if (status != MURAL_OK)
		mural_error_print(&err, stderr);
	return mural_exit_code(status);
}
