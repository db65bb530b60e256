/* mural plan: what a run will do, without running it. Its help, --schedule, and which other file of cmd_plan_*.c a command line is for.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "mural/plan.h"
#include "usage.h"

typedef struct plan_arguments {
	const char *config_file, *csv, *svg, *result;
	uint64_t images; /* 0: asked from the data set */
	int ranks;
	bool schedule, help;
	int argc; /* configuration */
	const char **argv;
} plan_arguments;

static void help(void)
{
	printf("usage: mural plan [CONFIG] [--cluster FILE] [--ranks N] [OPTIONS]\n"
	       "       mural plan --calibrate [CONFIG] [--output FILE]\n"
	       "       mural plan --schedule [CONFIG] [OPTIONS]\n"
	       "       mural plan --balance --cluster FILE [OPTIONS]\n"
	       "       mural plan --fit MEASURED.csv --predict WANTED.csv [OPTIONS]\n"
	       "What a run will do, computed without running it: memory, traffic, time, scaling, money.\n\n"
	       "  mural plan ds_config.json --cluster examples/clusters/vector.json --ranks 8\n"
	       "  mural plan --model vit_b_16 --micro-batch 16 --batch 128 --ranks 8 --images 50000 --cluster "
	       "lab.json\n"
	       "  mural plan --calibrate ds_config.json --output here.json\n"
	       "  mural plan --schedule ds_config.json --images 50000 --epochs 10\n"
	       "  mural plan --schedule --images 50000 --batch 128 --schedule cosine --warmup-epochs 1 --epochs "
	       "10\n\n");
	command_plan_forecast_help();
	printf("\n");
	command_plan_calibrate_help();
	printf("\noptions of --schedule:\n"
	       "  --schedule [CONFIG]        the learning rate over the run, as a plot\n"
	       "  --csv FILE                 a row per update\n"
	       "  --svg FILE                 the plot as a figure\n"
	       "  --help                     this text\n\n");
	command_plan_fit_help();
	printf("\n");
	command_plan_balance_help();
	printf("\nconfiguration (over the file, which is over the preset):\n");
	mural_config_help_options(stdout, false);
}

static bool has_option(int argc, char **argv, const char *option)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], option) == 0 ||
		    (strncmp(argv[i], option, strlen(option)) == 0 && argv[i][strlen(option)] == '='))
			return true;
	return false;
}

/* An option of this command's own: *used arguments, 0 if it is none. */
static mural_status take_own(plan_arguments *a, int argc, char **argv, int i, int *used, mural_error *err)
{
	const struct {
		const char *option;
		const char **text;
	} texts[] = {{"--config", &a->config_file}, {"--csv", &a->csv}, {"--svg", &a->svg}, {"--result", &a->result}};
	const char *name = argv[i], *equals = strchr(name, '=');
	size_t length = equals ? (size_t)(equals - name) : strlen(name);
	const char *value = equals ? equals + 1 : i + 1 < argc ? argv[i + 1] : NULL;
	uint64_t count = 0;
	*used = equals ? 1 : 2;
	for (size_t t = 0; t < sizeof texts / sizeof *texts; t++)
		if (strlen(texts[t].option) == length && strncmp(name, texts[t].option, length) == 0) {
			*texts[t].text = value;
			return value && *value ? MURAL_OK : usage_wrong("plan", texts[t].option, "a file", NULL, err);
		}
	if (length == 8 && strncmp(name, "--images", 8) == 0)
		return usage_count("plan", "--images", value, UINT32_MAX, &a->images, err);
	if (length == 7 && strncmp(name, "--ranks", 7) == 0) {
		mural_status status = usage_count("plan", "--ranks", value, 1 << 20, &count, err);
		a->ranks = (int)count;
		return status;
	}
	*used = 0;
	return MURAL_OK;
}

static mural_status parse(plan_arguments *a, int argc, char **argv, mural_error *err)
{
	for (int i = 1, used; i < argc; i += used) {
		used = 1;
		/* The second --schedule is the configuration's option. */
		if (!a->schedule && strcmp(argv[i], "--schedule") == 0) {
			a->schedule = true;
			if (i + 1 < argc && argv[i + 1][0] != '-') {
				a->config_file = argv[i + 1];
				used = 2;
			}
		} else if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			a->help = true;
		} else {
			mural_status status = take_own(a, argc, argv, i, &used, err);
			if (status != MURAL_OK)
				return status;
			if (used == 0) {
				a->argv[a->argc++] = argv[i];
				used = 1;
			}
		}
	}
	return a->schedule || a->help ? MURAL_OK
	                              : usage_wrong("plan", "of mural plan",
	                                            "a configuration, --calibrate, --schedule, --fit or --balance",
	                                            argc > 1 ? argv[1] : NULL, err);
}

/* How many images an epoch has: as told, or as the data set says. */
static mural_status count_images(const plan_arguments *a, const mural_config *config, uint64_t *images,
                                 mural_error *err)
{
	const mural_model_config *m = &config->model;
	mural_data *data = NULL;
	*images = a->images;
	if (a->images > 0)
		return MURAL_OK;
	if (!config->data.path[0])
		return usage_wrong("plan", "--images", "the number of training images, or a data set with --data", NULL,
		                   err);
	mural_status status = mural_data_open(&data, &config->data, MURAL_SPLIT_TRAIN, config->run.seed, m->channels,
	                                      m->image_height, m->image_width, m->classes, err);
	if (status == MURAL_OK)
		*images = mural_data_get_facts(data)->images;
	mural_data_free(data);
	return status;
}

static bool ends_in(const char *path, const char *end)
{
	size_t n = strlen(path), m = strlen(end);
	return n >= m && strcmp(path + n - m, end) == 0;
}

static mural_status write_files(const plan_arguments *a, const mural_schedule_plan *plan, mural_error *err)
{
	mural_status status = MURAL_OK;
	if (a->csv)
		status = mural_plan_schedule_write_csv(plan, a->csv, err);
	if (status == MURAL_OK && a->svg)
		status = mural_plan_schedule_write_svg(plan, a->svg, err);
	if (status == MURAL_OK && a->result)
		status = ends_in(a->result, ".csv") ? mural_plan_schedule_write_csv(plan, a->result, err)
		                                    : mural_plan_schedule_write_json(plan, a->result, err);
	return status;
}

static void print_schedule(const mural_schedule_plan *plan, uint64_t images)
{
	printf("%llu images, %llu update%s per epoch, %llu in all; learning rate %.6g at first, %.6g at last, from "
	       "%.6g to "
	       "%.6g\n",
	       (unsigned long long)images, (unsigned long long)plan->steps_per_epoch,
	       plan->steps_per_epoch == 1 ? "" : "s", (unsigned long long)plan->steps, plan->first, plan->last,
	       plan->lowest, plan->highest);
	mural_plan_schedule_plot(plan, stdout, 80, 16);
	fflush(stdout); /* --result /dev/stdout comes after it */
}

static mural_status plan_schedule(const plan_arguments *a, mural_error *err)
{
	const mural_config_sources sources = {
	        .file = a->config_file, .argc = a->argc, .argv = a->argv, .ranks = a->ranks};
	mural_config config;
	mural_config_report *report = NULL;
	mural_schedule_plan plan;
	uint64_t images = 0;
	mural_status status = mural_config_resolve(&config, &report, &sources, err);
	for (size_t i = 0; status == MURAL_OK && i < mural_config_warnings(report); i++)
		fprintf(stderr, "mural: warning: %s\n", mural_config_warning(report, i));
	if (status == MURAL_OK)
		status = count_images(a, &config, &images, err);
	if (status == MURAL_OK)
		status = mural_plan_schedule(&plan, &config, images, err);
	if (status == MURAL_OK) {
		print_schedule(&plan, images);
		status = write_files(a, &plan, err);
	}
	mural_config_report_free(report);
	return status;
}

static int plan_schedule_or_help(int argc, char **argv)
{
	mural_error err = {0};
	plan_arguments arguments = {.ranks = 1};
	arguments.argv = calloc((size_t)argc + 1, sizeof *arguments.argv);
	mural_status status = MURAL_OUT_OF_MEMORY;
	if (arguments.argv)
		status = parse(&arguments, argc, argv, &err);
	else
		snprintf(err.message, sizeof err.message, "no memory for %d arguments", argc);
	if (status == MURAL_OK && arguments.help)
		help();
	else if (status == MURAL_OK)
		status = plan_schedule(&arguments, &err);
	free(arguments.argv);
	if (status != MURAL_OK)
		mural_error_print(&err, stderr);
	return mural_exit_code(status);
}

int command_plan(int argc, char **argv)
{
	const char *first = argc > 1 ? argv[1] : "";
	if (has_option(argc, argv, "--help") || has_option(argc, argv, "-h"))
		return plan_schedule_or_help(argc, argv);
	if (has_option(argc, argv, "--fit") || has_option(argc, argv, "--predict"))
		return command_plan_fit(argc, argv);
	if (has_option(argc, argv, "--calibrate"))
		return command_plan_calibrate(argc, argv);
	if (strcmp(first, "--balance") == 0)
		return command_plan_balance(argc, argv);
	/* further behind, --schedule is the configuration's own option */
	if (argc < 2 || strcmp(first, "--schedule") == 0)
		return plan_schedule_or_help(argc, argv);
	return command_plan_forecast(argc, argv);
}
