/* A calibration as a cluster file. SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/files.h"
#include "base/json.h"
#include "base/number.h"
#include "base/version.h"
#include "study/calibrate_inside.h"

static void write_rate(mu_json *json, const mural_cluster_rate *r)
{
	static const char *const precisions[] = {"fp32", "bf16", "fp16"};
	mu_json_line_begin(json, NULL);
	mu_json_string(json, "precision", precisions[r->precision]);
	mu_json_unsigned(json, "ranks", r->ranks);
	if (r->model[0]) {
		mu_json_string(json, "model", r->model);
		mu_json_number(json, "gflop_per_image", r->flops_per_image / 1e9);
		mu_json_number(json, "parameters", r->parameters);
		mu_json_number(json, "seconds_per_image", r->seconds_per_image);
		mu_json_number(json, "seconds_per_batch", r->seconds_per_batch);
	} else {
		mu_json_number(json, "s_per_tflop", r->seconds_per_flop * 1e12);
		mu_json_number(json, "ns_per_value", r->seconds_per_value * 1e9);
		mu_json_number(json, "ns_per_parameter", r->seconds_per_parameter * 1e9);
		mu_json_number(json, "us_per_unit", r->seconds_per_unit * 1e6);
	}
	mu_json_number(json, "update_ns_per_parameter", r->update_seconds_per_parameter * 1e9);
	mu_json_number(json, "update_us", r->update_seconds * 1e6);
	mu_json_number(json, "wait_share", r->wait_share);
	mu_json_number(json, "loader_us_per_image", r->loader_seconds_per_image * 1e6);
	mu_json_object_end(json);
}

static void write_device(mu_json *json, const mural_cluster *cluster)
{
	mu_json_object_begin(json, "devices");
	mu_json_object_begin(json, cluster->devices[0].name);
	mu_json_array_begin(json, "rates");
	for (uint32_t i = 0; i < cluster->n_rates; i++)
		write_rate(json, &cluster->rates[i]);
	mu_json_array_end(json);
	mu_json_object_end(json);
	mu_json_object_end(json);
}

static void write_links_and_nodes(mu_json *json, const mural_cluster *cluster)
{
	const mural_cluster_link *link = &cluster->links[0];
	mu_json_object_begin(json, "links");
	mu_json_line_begin(json, link->name);
	mu_json_number(json, "gb_per_s", link->bytes_per_second / 1e9);
	mu_json_number(json, "latency_us", link->latency_seconds * 1e6);
	mu_json_object_end(json);
	mu_json_object_end(json);
	mu_json_array_begin(json, "nodes");
	mu_json_object_begin(json, NULL);
	mu_json_string(json, "name", cluster->nodes[0].name);
	mu_json_object_begin(json, "devices");
	mu_json_unsigned(json, cluster->devices[0].name, cluster->nodes[0].slots[0].count);
	mu_json_object_end(json);
	mu_json_string(json, "inside", link->name);
	mu_json_object_end(json);
	mu_json_array_end(json);
}

/* Keys that begin with _ are comments. */
static void write_origin(mu_json *json, const mural_calibration *found)
{
	char when[32] = "";
	time_t now = time(NULL);
	struct tm parts;
	if (gmtime_r(&now, &parts))
		strftime(when, sizeof when, "%Y-%m-%dT%H:%MZ", &parts);
	mu_json_object_begin(json, "_measured");
	mu_json_string(json, "by", "mural plan --calibrate, " MU_VERSION);
	mu_json_string(json, "on", when);
	mu_json_unsigned(json, "trainings", found->trainings);
	mu_json_number(json, "seconds", found->seconds);
	mu_json_number(json, "load_per_core_before", found->load_per_core);
	mu_json_number(json, "median_error", found->median_error);
	mu_json_number(json, "max_error", found->max_error);
	mu_json_object_end(json);
}

mural_status mu_calibration_write(const mu_calibration *c, const mural_cluster *cluster, const mural_calibration *found,
                                  mural_error *err)
{
	mu_file file = {0};
	mu_json json;
	MU_TRY(mu_file_begin(&file, c->settings->output, err));
	mu_json_init(&json, file.out, MU_JSON_PRETTY);
	mu_json_object_begin(&json, NULL);
	write_origin(&json, found);
	mu_json_string(&json, "name", cluster->name);
	write_device(&json, cluster);
	write_links_and_nodes(&json, cluster);
	mu_json_object_end(&json);
	return mu_file_commit(&file, err);
}
