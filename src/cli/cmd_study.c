/* mural study: the same training at several ranks, batches or precisions, measured and compared. SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "mural/study.h"
#include "trainings.h"
#include "usage.h"

/* An option with its line of help. Those of the study's axes come first, in the axes' order. */
enum {
	FOLDER = MURAL_STUDY_AXES,
	FRACTION,
	ROUNDS,
	STEPS,
	WARM_UP,
	HOSTFILE,
	INCLUDE,
	EXCLUDE,
	NUM_NODES,
	NUM_GPUS,
	SLURM,
	RESULT,
	OPTIONS
};
static const struct {
	const char *name, *value, *help;
} options[OPTIONS] = {
#define MURAL_X(axis, option, sets, values, help) [axis] = {option, sizeof(sets) > 1 ? "WORD,..." : "N,N,...", help},
        MURAL_STUDY_AXIS_LIST(MURAL_X)
#undef MURAL_X
                [FOLDER] = {"--folder", "FOLDER", "where everything goes; the same command goes on where it stopped"},
        [FRACTION] = {"--fraction", "X", "of the data set (default 1); weak: for each rank (default 0.1)"},
        [ROUNDS] = {"--rounds", "N", "runs of each point (default 3)"},
        [STEPS] = {"--steps", "N", "measured steps of each run (default 10)"},
        [WARM_UP] = {"--warm-up", "N", "steps before them that do not count (default 2; heterogeneity: 40)"},
        [HOSTFILE] = {"--hostfile", "FILE", "hosts with slots; each point takes as many as it has ranks"},
        [INCLUDE] = {"--include", "HOSTS", "only these hosts and slots of them: c1@c2:0,2"},
        [EXCLUDE] = {"--exclude", "HOSTS", "not these hosts, or not these slots of them"},
        [NUM_NODES] = {"--num-nodes", "N", "only the first N hosts"},
        [NUM_GPUS] = {"--num-gpus", "N", "only the first N slots of each host"},
        [SLURM] = {"--slurm", "OPTIONS", "each run is a Slurm job, by srun with these: '--mpi=pmix --exclusive'"},
        [RESULT] = {"--result", "FILE", "a copy of study.json"},
};

static void help(void)
{
	static const struct {
		const char *name, *text, *values;
	} kinds[] = {
#define MURAL_X(name, text, axis, values, help) {text, help, values},
	        MURAL_STUDY_LIST(MURAL_X)
#undef MURAL_X
	};
	printf("usage: mural study KIND --folder FOLDER [OPTIONS] [CONFIGURATION]\n"
	       "Trains the same model at several points, measures and compares them.\n\n"
	       "  mural study strong --ranks 1,2,4 --folder runs/strong --model vit_ti_16 --data synthetic\n"
	       "  mural study batch --batches 16,32,64 --epochs 5 --folder runs/batch --data cifar10\n"
	       "  mural study placement --ranks 2,4,8 --cluster examples/clusters/vector.json --folder runs/nodes "
	       "...\n\n"
	       "kinds:\n");
	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
		printf("  %-14s %s%s%s\n", kinds[k].name, kinds[k].text, *kinds[k].values ? ": " : "", kinds[k].values);
	printf("\noptions:\n");
	for (int o = 0; o < OPTIONS; o++)
		usage_option(stdout, options[o].name, options[o].value, options[o].help);
	printf("  --epochs N                 train whole epochs instead of --steps, and measure accuracy\n"
	       "  --help                     this text\n\n"
	       "Everything else is configuration of the trainings: see `mural train --help`.\n");
}

/* ---- arguments. ---- */

typedef struct study_arguments {
	mural_study_settings settings;
	const char *result;
	bool epochs, steps;
	const char **argv; /* configuration */
	int argc;
} study_arguments;

enum { MOST = 1000000000 }; /* of anything that is counted */

static mural_status number(const char *option, const char *text, uint32_t least, uint32_t *value, mural_error *err)
{
	char *end = NULL;
	uint64_t whole;
	if (!text || !usage_whole(text, &end, least, MOST, &whole) || *end != '\0')
		return usage_wrong("study", option, least ? "a whole number above 0" : "a whole number", text, err);
	*value = (uint32_t)whole;
	return MURAL_OK;
}

static mural_status count(const char *option, const char *text, int *value, mural_error *err)
{
	uint32_t found = 0;
	mural_status status = number(option, text, 1, &found, err);
	*value = (int)found;
	return status;
}

static mural_status fraction_of(const char *text, double *fraction, mural_error *err)
{
	char *end = NULL;
	*fraction = text ? strtod(text, &end) : 0;
	if (end && *end == '\0' && *fraction > 0 && *fraction <= 1)
		return MURAL_OK;
	return usage_wrong("study", "--fraction", "a number above 0 and at most 1", text, err);
}

static mural_status text_of(int option, const char *text, const char **value, mural_error *err)
{
	*value = text;
	return text && *text ? MURAL_OK : usage_wrong("study", options[option].name, options[option].value, text, err);
}

static mural_status take(study_arguments *a, int option, const char *text, mural_error *err)
{
	mural_study_settings *s = &a->settings;
	const char *name = options[option].name;
	if (option < MURAL_STUDY_AXES)
		return mural_study_values_read(&s->values[option], (mural_study_axis)option, text, err);
	switch (option) {
	case FOLDER: return text_of(option, text, &s->folder, err);
	case RESULT: return text_of(option, text, &a->result, err);
	case HOSTFILE: return text_of(option, text, &s->hosts.file, err);
	case INCLUDE: return text_of(option, text, &s->hosts.include, err);
	case EXCLUDE: return text_of(option, text, &s->hosts.exclude, err);
	case NUM_NODES: return count(name, text, &s->hosts.nodes, err);
	case NUM_GPUS: return count(name, text, &s->hosts.slots_per_node, err);
	case SLURM:
		s->slurm = text;
		return text ? MURAL_OK : usage_wrong("study", name, "options of srun, or ''", text, err);
	case FRACTION: return fraction_of(text, &s->fraction, err);
	case ROUNDS: return number(name, text, 1, &s->rounds, err);
	case WARM_UP: return number(name, text, 0, &s->warm_up, err);
	default: a->steps = true; return number(name, text, 1, &s->steps, err);
	}
}

/* Options that a study sets for each run itself, and those with which a run would not train. */
static const char *const own[] = {"--run-dir",   "--batch",       "--micro-batch", "--accumulation",
                                  "--precision", "--overwrite",   "--resume",      "--resume-if-any",
                                  "--max-steps", "--show-config", "--help-config", NULL};

/* DeepSpeed's launcher spells its options with "_". */
static bool is_named(const char *name, const char *argument, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (argument[i] != name[i] && !(argument[i] == '_' && name[i] == '-' && i > 1))
			return false;
	return name[length] == '\0';
}

static int find_option(const char *argument, size_t *length)
{
	*length = strcspn(argument, "=");
	for (int o = 0; o < OPTIONS; o++)
		if (is_named(options[o].name, argument, *length))
			return o;
	return -1;
}

static mural_status parse(study_arguments *a, int argc, char **argv, mural_error *err)
{
	for (int i = 2; i < argc; i++) {
		size_t length;
		int option = find_option(argv[i], &length);
		mural_status status = MURAL_OK;
		if (option >= 0) {
			const char *text = argv[i][length] == '=' ? argv[i] + length + 1
			                   : i + 1 < argc         ? argv[++i]
			                                          : NULL;
			status = take(a, option, text, err);
		} else {
			status = trainings_refuse("study", own, argv[i], err);
			a->epochs |= strncmp(argv[i], "--epochs", 8) == 0;
			a->argv[a->argc++] = argv[i];
		}
		if (status != MURAL_OK)
			return status;
	}
	if (!a->settings.folder)
		return usage_wrong("study", "--folder", "where the study goes", NULL, err);
	if (a->epochs && a->steps)
		return usage_wrong("study", "--steps", "it without --epochs", "both", err);
	if (a->epochs)
		a->settings.steps = a->settings.warm_up = 0;
	return MURAL_OK;
}

/* ---- the command. ---- */

static mural_status run(study_arguments *a, mural_error *err)
{
	char program[4096];
	if (trainings_program(program, err) != MURAL_OK)
		return err->status;
	mural_study_summary summary;
	a->settings.program = program;
	a->settings.argc = a->argc;
	a->settings.argv = a->argv;
	a->settings.progress = stdout;
	a->settings.stop_asked = trainings_stop_asked;
	trainings_watch_stop();
	mural_status status = mural_study_run(&a->settings, &summary, err);
	if (summary.points > 0)
		printf("%zu runs of %zu points in %.1f s, %.2f s of it (%.1f %%) outside the trainings; %zu measured "
		       "before, %zu failed; %s/study.json has the comparison\n",
		       summary.runs, summary.points, summary.seconds, summary.own_seconds,
		       100 * summary.own_seconds / summary.seconds, summary.reused, summary.failed, a->settings.folder);
	if (status == MURAL_OK && a->result)
		status = trainings_copy(a->settings.folder, "study.json", a->result, err);
	return status;
}

int command_study(int argc, char **argv)
{
	mural_error err = {0};
	study_arguments a = {0};
	if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		help();
		return argc < 2 ? mural_exit_code(MURAL_USAGE) : 0;
	}
	for (int i = 2; i < argc; i++)
		if (strcmp(argv[i], "--help") == 0) {
			help();
			return 0;
		}
	mural_study_defaults(&a.settings);
	a.argv = calloc((size_t)argc + 1, sizeof *a.argv);
	mural_status status = a.argv ? mural_study_find(&a.settings.kind, argv[1], &err) : MURAL_OUT_OF_MEMORY;
	if (status == MURAL_OK)
		status = parse(&a, argc, argv, &err);
	if (status == MURAL_OK)
		status = run(&a, &err);
	free(a.argv);
	if (status != MURAL_OK)
		mural_error_print(&err, stderr);
	return mural_exit_code(status);
}
