/* mural plan --balance: equal shares against balanced ones on a described cluster. SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "mural/balance.h"
#include "usage.h"

typedef struct balance_arguments {
	const char *config_file, *ranks, *per_rank, *result;
	bool batch, micro_batch; /* given */
	int argc; /* configuration */
	const char **argv;
} balance_arguments;

void command_plan_balance_help(void)
{
	printf("options of --balance (docs/unequal-workers.md):\n"
	       "  --cluster FILE             the described cluster: its devices need seconds_per_image or tflops\n"
	       "  --ranks N                  most ranks (default all its devices)\n"
	       "  --per-rank N               the batch is N images for each rank (default: --batch, on any number of "
	       "them)\n"
	       "  --micro-batch N            a rank with more images takes several micro-batches (default no bound)\n"
	       "  --result FILE              the same as JSON; with it all configuration that `mural train` takes\n");
}

static mural_status parse(balance_arguments *a, int argc, char **argv, mural_error *err)
{
	const struct {
		const char *name, **value;
	} own[] = {{"--config", &a->config_file},
	           {"--ranks", &a->ranks},
	           {"--per-rank", &a->per_rank},
	           {"--result", &a->result}};
	const size_t n = sizeof own / sizeof *own;
	bool mode = false;
	for (int i = 1; i < argc; i++) {
		size_t length = strcspn(argv[i], "="), o = 0;
		while (o < n && (strlen(own[o].name) != length || strncmp(argv[i], own[o].name, length) != 0))
			o++;
		if (o < n) {
			*own[o].value = argv[i][length] ? argv[i] + length + 1 : i + 1 < argc ? argv[++i] : "";
			if (!**own[o].value)
				return usage_wrong("plan", own[o].name, "a value", NULL, err);
		} else if (!mode && strcmp(argv[i], "--balance") == 0) {
			mode = true; /* the second one is the configuration's option */
		} else {
			a->batch |= length == 7 && strncmp(argv[i], "--batch", 7) == 0;
			a->micro_batch |= length == 13 && strncmp(argv[i], "--micro-batch", 13) == 0;
			a->argv[a->argc++] = argv[i];
		}
	}
	if (a->per_rank && !a->batch && !a->micro_batch) { /* of one rank, for what reads the configuration */
		a->argv[a->argc++] = "--batch";
		a->argv[a->argc++] = a->per_rank;
	}
	return MURAL_OK;
}

/* text NULL: 0. */
static mural_status take_count(const char *option, const char *text, int most, int *count, mural_error *err)
{
	uint64_t value = 0;
	mural_status status = text ? usage_count("plan", option, text, (uint64_t)most, &value, err) : MURAL_OK;
	*count = (int)value;
	return status;
}

static void print_shares(const mural_balance_line *line, const mural_balance_split *split)
{
	enum { LISTED = 8 };
	int least = split->shares[0], most = split->shares[0];
	for (int r = 0; r < line->ranks; r++) {
		if (line->ranks <= LISTED)
			printf("%s%d", r ? " " : "", split->shares[r]);
		least = split->shares[r] < least ? split->shares[r] : least;
		most = split->shares[r] > most ? split->shares[r] : most;
	}
	if (line->ranks > LISTED)
		printf("%d to %d", least, most);
	putchar('\n');
}

static void print_forecast(const mural_balance_forecast *forecast)
{
	printf("images per second, expected; best: without ranks that cost more than they bring\n"
	       "ranks  batch      equal   balanced       best  of ranks  best shares\n");
	for (size_t i = 0; i < mural_balance_forecast_lines(forecast); i++) {
		const mural_balance_line *line = mural_balance_forecast_line(forecast, i);
		const mural_balance_split *best = &line->split[MURAL_BALANCE_BEST];
		printf("%5d %6d %10.2f %10.2f %10.2f %9d  ", line->ranks, line->batch,
		       line->split[MURAL_BALANCE_EQUAL].images_per_second,
		       line->split[MURAL_BALANCE_ALL].images_per_second, best->images_per_second, best->members);
		print_shares(line, best);
	}
	if (*mural_balance_forecast_advice(forecast))
		printf("\n%s", mural_balance_forecast_advice(forecast));
	fflush(stdout); /* --result /dev/stdout comes after it */
}

static mural_status forecast_cluster(const balance_arguments *a, const mural_config *config, mural_error *err)
{
	mural_balance_settings settings = {.config = config};
	mural_cluster *cluster = NULL;
	mural_balance_forecast *forecast = NULL;
	mural_status status = take_count("--ranks", a->ranks, MURAL_BALANCE_RANKS, &settings.ranks, err);
	if (status == MURAL_OK)
		status = take_count("--per-rank", a->per_rank, 1 << 20, &settings.batch_per_rank, err);
	if (status == MURAL_OK && !config->emulation.cluster[0])
		status = usage_wrong("plan", "--cluster", "a file that describes the cluster", NULL, err);
	if (status == MURAL_OK)
		status = mural_cluster_read(&cluster, config->emulation.cluster, err);
	settings.cluster = cluster;
	settings.micro_batch =
	        a->micro_batch && config->batch.micro_batch < (1 << 20) ? (int)config->batch.micro_batch : 0;
	if (status == MURAL_OK)
		status = mural_balance_forecast_create(&forecast, &settings, err);
	if (status == MURAL_OK) {
		print_forecast(forecast);
		if (a->result)
			status = mural_balance_forecast_write_json(forecast, a->result, err);
	}
	mural_balance_forecast_free(forecast);
	mural_cluster_free(cluster);
	return status;
}

static mural_status plan_balance(const balance_arguments *a, mural_error *err)
{
	const mural_config_sources sources = {.file = a->config_file, .argc = a->argc, .argv = a->argv, .ranks = 1};
	mural_config config;
	mural_config_report *report = NULL;
	mural_status status = mural_config_resolve(&config, &report, &sources, err);
	for (size_t i = 0; status == MURAL_OK && i < mural_config_warnings(report); i++)
		fprintf(stderr, "mural: warning: %s\n", mural_config_warning(report, i));
	if (status == MURAL_OK)
		status = forecast_cluster(a, &config, err);
	mural_config_report_free(report);
	return status;
}

int command_plan_balance(int argc, char **argv)
{
	mural_error err = {0};
	balance_arguments arguments = {0};
	arguments.argv = calloc((size_t)argc + 2, sizeof *arguments.argv);
	mural_status status = MURAL_OUT_OF_MEMORY;
	if (arguments.argv)
		status = parse(&arguments, argc, argv, &err);
	else
		snprintf(err.message, sizeof err.message, "no memory for %d arguments", argc);
	if (status == MURAL_OK)
		status = plan_balance(&arguments, &err);
	free(arguments.argv);
	if (status != MURAL_OK)
		mural_error_print(&err, stderr);
	return mural_exit_code(status);
}
