/* mural plan --fit: predicts epochs from measured ones. SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "mural/fit.h"
#include "usage.h"

typedef struct fit_arguments {
	const char *measured, *wanted, *output, *cluster, *placement, *model, *images, *result;
	bool describe;
} fit_arguments;

void command_plan_fit_help(void)
{
	printf("options of --fit (docs/predicting.md):\n"
	       "  --fit MEASURED.csv         rows of measured epochs\n"
	       "  --predict WANTED.csv       rows to predict; written with predicted_seconds and relative_error "
	       "appended\n"
	       "  --output FILE              where to (default: the standard output)\n"
	       "  --cluster FILE             devices and links of the cluster with this name in the rows\n"
	       "  --placement pack|spread    in which order its devices join (default pack)\n"
	       "  --model NAME               whose gradients travel (default vit_b_16, 1000 classes)\n"
	       "  --describe                 tell what was fitted\n");
}

static mural_status parse(fit_arguments *a, int argc, char **argv, mural_error *err)
{
	const struct {
		const char *name, **value;
	} options[] = {{"--fit", &a->measured},    {"--predict", &a->wanted},      {"--output", &a->output},
	               {"--cluster", &a->cluster}, {"--placement", &a->placement}, {"--model", &a->model},
	               {"--images", &a->images},   {"--result", &a->result}};
	const size_t n = sizeof options / sizeof *options;
	for (int i = 1; i < argc; i++) {
		size_t length = strcspn(argv[i], "="), o = 0;
		while (o < n && (strlen(options[o].name) != length || strncmp(argv[i], options[o].name, length) != 0))
			o++;
		if (o == n && strcmp(argv[i], "--describe") == 0)
			a->describe = true;
		else if (o == n)
			return usage_wrong("plan", argv[i], "an option of --fit", "an unknown one", err);
		else if (argv[i][length] == '=')
			*options[o].value = argv[i] + length + 1;
		else
			*options[o].value = i + 1 < argc ? argv[++i] : "";
		if (o < n && !**options[o].value)
			return usage_wrong("plan", options[o].name, "a value", NULL, err);
	}
	if (!a->measured)
		return usage_wrong("plan", "--fit", "a CSV file of measured epochs", NULL, err);
	if (!a->wanted && !a->describe)
		return usage_wrong("plan", "--predict", "a CSV file of wanted epochs, or --describe", NULL, err);
	return MURAL_OK;
}

/* Everything but the cluster. */
static mural_status settle(const fit_arguments *a, mural_fit_settings *settings, mural_error *err)
{
	mural_model_config model;
	mural_model_defaults(&model);
	mural_status status = a->model ? mural_model_preset(&model, a->model, err) : MURAL_OK;
	if (status != MURAL_OK)
		return status;
	settings->parameters = (double)mural_model_parameters(&model);
	settings->flops_per_image = 3 * mural_model_forward_flops(&model);
	if (a->images)
		status = usage_count("plan", "--images", a->images, UINT32_MAX, &settings->images, err);
	if (status != MURAL_OK)
		return status;
	if (a->placement && strcmp(a->placement, "spread") == 0)
		settings->placement = MURAL_PLACE_SPREAD;
	else if (a->placement && strcmp(a->placement, "pack") != 0)
		return usage_wrong("plan", "--placement", "pack or spread", a->placement, err);
	return MURAL_OK;
}

static void say_reason(void *user, unsigned line, const char *reason)
{
	fprintf(stderr, "mural: no prediction for %s:%u: %s\n", (const char *)user, line, reason);
}

/* The predictions are the output; words about them go elsewhere. */
static void sum_up(const mural_fit_summary *s, FILE *out)
{
	fprintf(out, "%zu rows fitted", s->fitted);
	if (s->empty > 0)
		fprintf(out, " (%zu more have no measured seconds)", s->empty);
	fprintf(out, "; %zu of %zu wanted rows predicted", s->predicted, s->wanted);
	if (s->compared > 0)
		fprintf(out,
		        "; %zu compared with measured seconds: median error %.2f %%, 90th percentile %.2f %%, maximum "
		        "%.2f %%",
		        s->compared, 100 * s->median_error, 100 * s->p90_error, 100 * s->max_error);
	fprintf(out, "\n");
}

static mural_status predict(const fit_arguments *a, const mural_fit *fit, mural_error *err)
{
	mural_fit_summary summary;
	mural_status status;
	if (a->output) {
		status = mural_fit_predict_to(fit, a->wanted, a->output, say_reason, (void *)a->wanted, &summary, err);
	} else {
		status = mural_fit_predict(fit, a->wanted, stdout, say_reason, (void *)a->wanted, &summary, err);
		fflush(stdout);
	}
	if (status == MURAL_OK)
		sum_up(&summary, a->output ? stdout : stderr);
	if (status == MURAL_OK && a->result)
		status = mural_fit_write_json(a->result, &summary, err);
	return status;
}

static mural_status run(const fit_arguments *a, mural_error *err)
{
	mural_fit_settings settings = {0};
	mural_cluster *cluster = NULL;
	mural_fit *fit = NULL;
	mural_status status = settle(a, &settings, err);
	if (status == MURAL_OK && a->cluster)
		status = mural_cluster_read(&cluster, a->cluster, err);
	settings.cluster = cluster;
	if (status == MURAL_OK)
		status = mural_fit_create(&fit, a->measured, &settings, err);
	if (status == MURAL_OK && a->describe)
		mural_fit_describe(fit, a->wanted && !a->output ? stderr : stdout);
	if (status == MURAL_OK && a->wanted)
		status = predict(a, fit, err);
	mural_fit_free(fit);
	mural_cluster_free(cluster);
	return status;
}

int command_plan_fit(int argc, char **argv)
{
	fit_arguments arguments = {0};
	mural_error err = {0};
	mural_status status = parse(&arguments, argc, argv, &err);
	if (status == MURAL_OK)
		status = run(&arguments, &err);
	if (status != MURAL_OK)
		mural_error_print(&err, stderr);
	return mural_exit_code(status);
}
