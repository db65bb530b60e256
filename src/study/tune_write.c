/* A search's files: tune.json, and the configuration with the choice in it. SPDX-License-Identifier: MIT */
#include <time.h>
#include <unistd.h>

#include "base/affinity.h"
#include "base/files.h"
#include "base/json.h"
#include "base/version.h"
#include "study/tune_inside.h"

static void write_settings(const mu_tune *t, mu_json *json)
{
	const mural_tune_settings *s = &t->settings;
	char host[256] = "", date[32] = "";
	time_t now = time(NULL);
	struct tm utc;
	(void)gethostname(host, sizeof host - 1);
	if (gmtime_r(&now, &utc))
		strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
	mu_json_string(json, "mural_version", MU_VERSION);
	mu_json_string(json, "host", host);
	mu_json_string(json, "date", date);
	mu_json_integer(json, "cores", mu_affinity_cores());
	mu_json_string(json, "config", s->config_file);
	mu_json_array_begin(json, "arguments");
	for (int i = 0; i < s->argc; i++)
		mu_json_string(json, NULL, s->argv[i]);
	mu_json_array_end(json);
	mu_json_number(json, "tolerance", s->tolerance);
	mu_json_number(json, "budget", s->budget);
	mu_json_number(json, "trial_seconds", s->trial_seconds);
	mu_json_unsigned(json, "warm_up_steps", s->warm_up);
}

static void write_point_members(const mural_tune_point *p, mu_json *json)
{
	static const char *const states[] = {[MURAL_TUNE_OPEN] = "expected",
	                                     [MURAL_TUNE_MEASURED] = "measured",
	                                     [MURAL_TUNE_FAILED] = "failed",
	                                     [MURAL_TUNE_TOO_LARGE] = "too large"};
	mu_json_unsigned(json, "ranks", p->ranks);
	mu_json_unsigned(json, "threads", p->threads);
	mu_json_unsigned(json, "micro_batch", p->micro_batch);
	mu_json_unsigned(json, "accumulation", p->accumulation);
	mu_json_unsigned(json, "train_batch", p->train_batch);
	mu_json_unsigned(json, "memory_bytes", p->memory_bytes);
	mu_json_string(json, "state", states[p->state]);
	mu_json_unsigned(json, "trials", p->trials);
	mu_json_number(json, "images_per_second", p->images_per_second);
	mu_json_number(json, "low", p->low);
	mu_json_number(json, "high", p->high);
	mu_json_string(json, "why", p->why[0] ? p->why : NULL);
}

static void write_trial(const mural_tune_trial *trial, mu_json *json)
{
	mu_json_line_begin(json, NULL);
	mu_json_unsigned(json, "point", trial->point);
	mu_json_unsigned(json, "round", trial->round);
	mu_json_unsigned(json, "steps", trial->steps);
	mu_json_bool(json, "measured", trial->measured);
	mu_json_bool(json, "reused", trial->reused);
	mu_json_number(json, "images_per_second", trial->images_per_second);
	mu_json_number(json, "error", trial->error);
	mu_json_number(json, "step_seconds", trial->step_seconds);
	mu_json_number(json, "fixed_seconds", trial->fixed_seconds);
	mu_json_number(json, "seconds", trial->seconds);
	mu_json_object_end(json);
}

static void write_result(const mural_tune_result *r, mu_json *json)
{
	if (r->chosen < r->n_points) {
		mu_json_line_begin(json, "chosen");
		write_point_members(&r->points[r->chosen], json);
		mu_json_object_end(json);
	} else {
		mu_json_null(json, "chosen");
	}
	mu_json_array_begin(json, "why");
	for (size_t i = 0; i < MURAL_TUNE_WHY && r->why[i][0]; i++)
		mu_json_string(json, NULL, r->why[i]);
	mu_json_array_end(json);
	mu_json_string(json, "output", r->output[0] ? r->output : NULL);
	mu_json_bool(json, "settled", r->settled);
	mu_json_number(json, "could_gain", r->could_gain);
	mu_json_number(json, "seconds", r->seconds);
	mu_json_number(json, "sweep_seconds", r->sweep_seconds);
	mu_json_array_begin(json, "trials");
	for (size_t i = 0; i < r->n_trials; i++)
		write_trial(&r->trials[i], json);
	mu_json_array_end(json);
	mu_json_array_begin(json, "points");
	for (size_t i = 0; i < r->n_points; i++) {
		mu_json_line_begin(json, NULL);
		write_point_members(&r->points[i], json);
		mu_json_object_end(json);
	}
	mu_json_array_end(json);
}

mural_status mu_tune_write(const mu_tune *t, mural_error *err)
{
	char path[1100];
	mu_file file = {0};
	mu_json json;
	snprintf(path, sizeof path, "%.1000s/tune.json", t->settings.folder);
	MU_TRY(mu_file_begin(&file, path, err));
	mu_json_init(&json, file.out, MU_JSON_PRETTY);
	mu_json_object_begin(&json, NULL);
	write_settings(t, &json);
	write_result(t->result, &json);
	mu_json_object_end(&json);
	return mu_file_commit(&file, err);
}

mural_status mu_tune_check_output(const mu_tune *t, mural_error *err)
{
	mu_file file = {0};
	MU_TRY(mu_file_begin(&file, t->settings.output, err));
	mu_file_abandon(&file);
	return MURAL_OK;
}

mural_status mu_tune_write_config(mu_tune *t, mural_error *err)
{
	static const char *const keys[] = {"train_batch_size", "train_micro_batch_size_per_gpu",
	                                   "gradient_accumulation_steps", "mural.threads", NULL};
	mural_tune_result *r = t->result;
	const mural_config config = mu_tune_config_at(t, &r->points[r->chosen]);
	const mural_config_edit edit = {
	        .config = &config, .report = t->report, .file = t->settings.config_file, .keys = keys};
	MU_TRY(mural_config_save(t->settings.output, &edit, err));
	snprintf(r->output, sizeof r->output, "%.1023s", t->settings.output);
	return MURAL_OK;
}
