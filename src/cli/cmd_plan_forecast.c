/* mural plan [CONFIG]: memory, traffic, time, scaling and money of a training, without running it. SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "mural/device.h"
#include "mural/plan.h"
#include "plan_print.h"
#include "usage.h"

typedef struct forecast_arguments {
	const char *config_file, *result;
	uint64_t images; /* 0: asked from the data set */
	int ranks;
	bool json, help;
	int argc; /* configuration */
	const char **argv;
} forecast_arguments;

/* Everything that a plan is made of. */
typedef struct planning {
	mural_config config;
	mural_config_report *report;
	mural_data *train, *validation, *test;
	mural_cluster *cluster;
	mural_memory_plan memory;
	mural_forecast_plan plan;
	plan_notes notes;
} planning;

void command_plan_forecast_help(void)
{
	printf("options of the plan itself (docs/predicting.md):\n"
	       "  --config FILE              a DeepSpeed-style configuration (HJSON); may stand first without its "
	       "name\n"
	       "  --ranks N                  devices that the run has (default 1)\n"
	       "  --images N                 size of the training set; asked from --data when not given\n"
	       "  --json                     print JSON instead of words\n"
	       "  --result FILE              the same as JSON\n");
}

static bool is_option(const char *argument, const char *name)
{
	size_t length = strlen(name);
	return strncmp(argument, name, length) == 0 && (argument[length] == '\0' || argument[length] == '=');
}

/* One with a value: *used arguments, 0 if it is none of this command's. */
static mural_status take_valued(forecast_arguments *a, int argc, char **argv, int i, int *used, mural_error *err)
{
	static const char *const names[] = {"--config", "--result", "--images", "--ranks"};
	size_t n = 0;
	while (n < 4 && !is_option(argv[i], names[n]))
		n++;
	*used = 0;
	if (n == 4)
		return MURAL_OK;
	const char *equals = strchr(argv[i], '='), *value = equals ? equals + 1 : i + 1 < argc ? argv[i + 1] : NULL;
	uint64_t count = 0;
	mural_status status = MURAL_OK;
	*used = equals ? 1 : 2;
	if (n < 2) {
		*(n == 0 ? &a->config_file : &a->result) = value;
		return value && *value ? MURAL_OK : usage_wrong("plan", names[n], "a file", NULL, err);
	}
	status = usage_count("plan", names[n], value, n == 2 ? UINT32_MAX : MURAL_CLUSTER_MOST, &count, err);
	if (n == 2)
		a->images = count;
	else
		a->ranks = (int)count;
	return status;
}

static mural_status parse(forecast_arguments *a, int argc, char **argv, mural_error *err)
{
	int i = 1;
	if (argc > 1 && argv[1][0] != '-')
		a->config_file = argv[i++];
	for (int used; i < argc; i += used) {
		mural_status status = take_valued(a, argc, argv, i, &used, err);
		if (status != MURAL_OK)
			return status;
		if (used > 0)
			continue;
		used = 1;
		if (strcmp(argv[i], "--json") == 0)
			a->json = true;
		else
			a->argv[a->argc++] = argv[i];
	}
	return MURAL_OK;
}

static mural_status resolve(const forecast_arguments *a, planning *p, mural_error *err)
{
	const mural_config_sources sources = {
	        .file = a->config_file, .argc = a->argc, .argv = a->argv, .ranks = a->ranks};
	mural_status status = mural_config_resolve(&p->config, &p->report, &sources, err);
	for (size_t i = 0; status == MURAL_OK && i < mural_config_warnings(p->report); i++)
		fprintf(stderr, "mural: warning: %s\n", mural_config_warning(p->report, i));
	p->notes.zero_stage = p->config.engine.zero_stage;
	p->config.engine.zero_stage = 0; /* what the engine runs */
	return status;
}

static mural_status open_cluster(planning *p, mural_error *err)
{
	p->notes.here = p->config.emulation.cluster[0] == '\0';
	return p->notes.here ? mural_cluster_here(&p->cluster, err)
	                     : mural_cluster_read(&p->cluster, p->config.emulation.cluster, err);
}

static mural_status open_data(planning *p, mural_error *err)
{
	const mural_model_config *m = &p->config.model;
	const mural_data_config *d = &p->config.data;
	uint32_t seed = p->config.run.seed;
	if (!d->path[0])
		return MURAL_OK;
	mural_status status = mural_data_open(&p->train, d, MURAL_SPLIT_TRAIN, seed, m->channels, m->image_height,
	                                      m->image_width, m->classes, err);
	if (p->config.run.measure_only) /* nothing is evaluated */
		return status;
	if (status == MURAL_OK)
		status = mural_data_open_validation(&p->validation, p->train, d, seed, m->channels, m->image_height,
		                                    m->image_width, m->classes, err);
	if (status == MURAL_OK)
		status = mural_data_open(&p->test, d, MURAL_SPLIT_TEST, seed, m->channels, m->image_height,
		                         m->image_width, m->classes, err);
	return status;
}

/* The least memory that one of the first devices has; 0: nobody says. */
static uint64_t device_memory(const planning *p)
{
	uint64_t least = 0;
	for (uint32_t d = 0; d < p->cluster->n_devices; d++) {
		const mural_device_profile *known = mural_device_profile_find(p->cluster->devices[d].name);
		uint64_t bytes = p->cluster->devices[d].memory_bytes;
		if (bytes == 0 && known)
			bytes = known->memory_bytes;
		if (bytes > 0 && (least == 0 || bytes < least))
			least = bytes;
	}
	return least;
}

/* The engine's own plan. It speaks of this machine's backend; one that cannot compute so is no reason not to forecast another. */
static mural_status plan_memory(planning *p, mural_error *err)
{
	const mural_engine_settings settings = {.config = &p->config,
	                                        .report = p->report,
	                                        .training = true,
	                                        .train = p->train,
	                                        .test = p->test,
	                                        .validation = p->validation};
	mural_memory_fit fit = {.bytes = device_memory(p)};
	mural_error why = {0};
	mural_status status = mural_plan_memory(&p->memory, &settings, p->plan.ranks, &fit, &why);
	if (status == MURAL_OK) {
		p->plan.memory = &p->memory;
		p->notes.memory_limit = fit.bytes;
		p->notes.largest_batch = fit.largest_micro_batch;
		p->notes.loader_known = p->train != NULL;
		return MURAL_OK;
	}
	snprintf(p->notes.no_memory, sizeof p->notes.no_memory, "%.200s", why.message);
	if (p->notes.here)
		*err = why;
	return p->notes.here ? status : MURAL_OK;
}

static mural_status forecast(const forecast_arguments *a, planning *p, mural_error *err)
{
	const mural_forecast_settings settings = {.config = &p->config,
	                                          .cluster = p->cluster,
	                                          .placement = (mural_placement)p->config.emulation.placement,
	                                          .images = a->images  ? a->images
	                                                    : p->train ? mural_data_get_facts(p->train)->images
	                                                               : 0};
	mural_forecast_plan *plan = &p->plan;
	p->notes.images = settings.images;
	mural_status status = mural_forecast_create(&plan->forecast, &settings, err);
	const mural_forecast_point here = {.ranks = plan->ranks};
	if (status == MURAL_OK)
		status = mural_forecast_at(plan->forecast, &here, &plan->step, err);
	if (status == MURAL_OK)
		status = mural_forecast_scaling(plan->forecast, (int)p->cluster->devices_in_all, plan->rows,
		                                &plan->n_rows, err);
	if (status == MURAL_OK)
		status = mural_forecast_answer(plan->forecast, plan->ranks, (int)p->cluster->devices_in_all,
		                               p->notes.largest_batch, &plan->answers, err);
	return status;
}

static mural_status make(const forecast_arguments *a, planning *p, mural_error *err)
{
	mural_status status = resolve(a, p, err);
	p->plan.ranks = a->ranks;
	if (status == MURAL_OK)
		status = open_cluster(p, err);
	if (status == MURAL_OK)
		status = open_data(p, err);
	if (status == MURAL_OK)
		status = plan_memory(p, err);
	if (status == MURAL_OK)
		status = forecast(a, p, err);
	if (status == MURAL_OK && !a->json) {
		plan_print(&p->config, p->cluster, &p->plan, &p->notes);
		fflush(stdout); /* --result /dev/stdout comes after it */
	}
	if (status == MURAL_OK && a->json)
		status = mural_forecast_write_json(&p->plan, "/dev/stdout", err);
	if (status == MURAL_OK && a->result)
		status = mural_forecast_write_json(&p->plan, a->result, err);
	return status;
}

int command_plan_forecast(int argc, char **argv)
{
	mural_error err = {0};
	forecast_arguments a = {.ranks = 1};
	planning *p = calloc(1, sizeof *p);
	a.argv = calloc((size_t)argc + 1, sizeof *a.argv);
	mural_status status = MURAL_OUT_OF_MEMORY;
	if (p && a.argv)
		status = parse(&a, argc, argv, &err);
	else
		snprintf(err.message, sizeof err.message, "no memory for %d arguments", argc);
	if (status == MURAL_OK)
		status = make(&a, p, &err);
	if (p) {
		mural_forecast_free(p->plan.forecast);
		mural_cluster_free(p->cluster);
		mural_data_free(p->train);
		mural_data_free(p->validation);
		mural_data_free(p->test);
		mural_config_report_free(p->report);
	}
	free(p);
	free(a.argv);
	if (status != MURAL_OK)
		mural_error_print(&err, stderr);
	return mural_exit_code(status);
}
