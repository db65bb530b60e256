/* A plan as JSON. SPDX-License-Identifier: MIT */
#include "base/files.h"
#include "base/json.h"
#include "base/version.h"
#include "engine/run_files.h"
#include "study/forecast_inside.h"

static void write_parts(mu_json *json, const mural_forecast_step *s)
{
	mu_json_number(json, "data_seconds", s->data);
	mu_json_number(json, "forward_seconds", s->forward);
	mu_json_number(json, "backward_seconds", s->backward);
	mu_json_number(json, "communication_exposed_seconds", s->exposed);
	mu_json_number(json, "communication_hidden_seconds", s->hidden);
	mu_json_number(json, "optimizer_seconds", s->optimizer);
	mu_json_number(json, "step_seconds", s->seconds);
	mu_json_number(json, "images_per_second", s->images_per_second);
}

/* 0 stands for what is not known: null in the file. */
static void write_known(mu_json *json, const char *key, double value)
{
	if (value > 0)
		mu_json_number(json, key, value);
	else
		mu_json_null(json, key);
}

static void write_step(mu_json *json, const mural_forecast_plan *p)
{
	const mural_forecast_step *s = &p->step;
	const mural_cluster *c = p->forecast->settings.cluster;
	mu_json_object_begin(json, "step");
	mu_json_integer(json, "ranks", s->ranks);
	mu_json_integer(json, "nodes", s->nodes);
	mu_json_unsigned(json, "micro_batch", s->micro_batch);
	mu_json_unsigned(json, "accumulation", s->accumulation);
	write_parts(json, s);
	mu_json_number(json, "collective_bytes", s->bytes);
	mu_json_number(json, "ring_bytes", s->ring_bytes);
	mu_json_string(json, "slowest_device", c->devices[s->slowest_device].name);
	mu_json_number(json, "slowness", s->slowness);
	mu_json_string(json, "slowest_uplink_of", s->slowest_node < 0 ? NULL : c->nodes[s->slowest_entry].name);
	mu_json_object_end(json);
}

static void write_stages(mu_json *json, const mural_forecast_plan *p)
{
	mu_json_array_begin(json, "zero_stages");
	for (int stage = 0; stage <= 3; stage++) {
		mural_forecast_state s = mural_forecast_memory(p->forecast, stage, p->ranks);
		mu_json_line_begin(json, NULL);
		mu_json_integer(json, "stage", stage);
		mu_json_bool(json, "runs", stage == 0);
		mu_json_number(json, "parameters", s.parameters);
		mu_json_number(json, "gradients", s.gradients);
		mu_json_number(json, "optimizer", s.optimizer);
		mu_json_number(json, "gathered", s.gathered);
		mu_json_number(json, "total", s.total);
		mu_json_object_end(json);
	}
	mu_json_array_end(json);
}

static void write_rows(mu_json *json, const mural_forecast_plan *p)
{
	mu_json_array_begin(json, "scaling");
	for (size_t i = 0; i < p->n_rows; i++) {
		const mural_forecast_row *r = &p->rows[i];
		mu_json_line_begin(json, NULL);
		mu_json_integer(json, "devices", r->step.ranks);
		mu_json_integer(json, "nodes", r->step.nodes);
		mu_json_number(json, "batch", r->step.images);
		write_parts(json, &r->step);
		mu_json_number(json, "weak_efficiency", r->efficiency);
		write_known(json, "epoch_seconds", r->epoch);
		write_known(json, "strong_efficiency", r->strong_efficiency);
		write_known(json, "same_batch_step_seconds", r->same_batch_seconds);
		write_known(json, "same_batch_efficiency", r->same_batch_efficiency);
		write_known(json, "epoch_price", r->money);
		write_known(json, "epoch_joules", r->joules);
		mu_json_object_end(json);
	}
	mu_json_array_end(json);
}

static void write_answers(mu_json *json, const mural_forecast_answers *a)
{
	mu_json_object_begin(json, "answers");
	mu_json_integer(json, "devices_looked_at", a->looked_at);
	write_known(json, "devices_below_80_percent", a->inefficient_from);
	mu_json_number(json, "efficiency_there", a->last_efficiency);
	mu_json_unsigned(json, "largest_micro_batch", a->largest_batch);
	mu_json_unsigned(json, "micro_batch_for_95_percent", a->batch);
	mu_json_number(json, "images_per_second_with_it", a->batch_images_per_second);
	mu_json_number(json, "images_per_second_at_best", a->best_images_per_second);
	write_known(json, "step_seconds_with_10_gb_per_s", a->ten_gigabit_seconds);
	write_known(json, "step_seconds_without_slowest_uplink", a->even_uplinks_seconds);
	mu_json_object_end(json);
}

mural_status mural_forecast_write_json(const mural_forecast_plan *p, const char *path, mural_error *err)
{
	const mural_forecast *f = p->forecast;
	mu_file file = {0};
	mu_json json;
	MU_TRY(mu_file_begin(&file, path, err));
	mu_json_init(&json, file.out, MU_JSON_PRETTY);
	mu_json_object_begin(&json, NULL);
	mu_json_string(&json, "mural_version", MU_VERSION);
	mu_json_string(&json, "model", f->config.model.preset);
	mu_json_number(&json, "parameters", f->work.parameters);
	mu_json_number(&json, "flops_per_image", f->flops);
	mu_json_string(&json, "cluster", f->settings.cluster->name);
	mu_json_unsigned(&json, "devices", f->settings.cluster->devices_in_all);
	mu_json_string(&json, "speeds", mural_forecast_source(f));
	mu_json_string(&json, "currency", f->settings.cluster->currency);
	mu_json_unsigned(&json, "images_per_epoch", f->settings.images);
	mu_json_unsigned(&json, "epochs", f->config.run.epochs);
	write_step(&json, p);
	if (p->memory)
		mu_memory_write(&json, "memory", p->memory);
	write_stages(&json, p);
	write_rows(&json, p);
	write_answers(&json, &p->answers);
	mu_json_object_end(&json);
	return mu_file_commit(&file, err);
}
