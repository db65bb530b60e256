/* A step on so many ranks of a cluster. SPDX-License-Identifier: MIT */
#include "mural/forecast.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "study/forecast_inside.h"

/* What the ranks add up at the end of each step: counts, loss, flags; the ledger's sums. */
#define SUMS_BYTES 64.0

static mural_status check_speeds(mural_forecast *f, mural_error *err)
{
	const mural_cluster *c = f->settings.cluster;
	for (uint32_t d = 0; d < c->n_devices; d++)
		f->known[d] = mural_device_profile_find(c->devices[d].name);
	for (uint32_t r = c->devices_in_all; r-- > 0;) {
		uint32_t device = f->places[r].device;
		char where[512];
		mu_forecast_speed(f, device, 1, &f->source);
		if (f->source != MU_SPEED_UNKNOWN)
			continue;
		snprintf(where, sizeof where, "%s:%u: devices.%s", c->file, c->devices[device].line,
		         c->devices[device].name);
		return mu_fail(
		        err, MURAL_USAGE, c->file[0] ? where : NULL,
		        "nothing tells how fast the device \"%s\" is: it has neither seconds_per_image nor tflops "
		        "nor rates for this precision, and is none that is known by name (`mural plan --calibrate` "
		        "measures one)",
		        c->devices[device].name);
	}
	return MURAL_OK;
}

static mural_status take_memory(mural_forecast *f, mural_error *err)
{
	const mural_cluster *c = f->settings.cluster;
	f->units = calloc(f->work.n_units, sizeof *f->units);
	f->places = calloc(c->devices_in_all, sizeof *f->places);
	f->nodes = calloc(c->nodes_in_all, sizeof *f->nodes);
	f->on_node = calloc(c->nodes_in_all, sizeof *f->on_node);
	if (!f->units || !f->places || !f->nodes || !f->on_node)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory to forecast %u devices", c->devices_in_all);
	return MURAL_OK;
}

mural_status mural_forecast_create(mural_forecast **forecast, const mural_forecast_settings *settings, mural_error *err)
{
	mural_forecast *f = *forecast = calloc(1, sizeof *f);
	mural_status status;
	if (!f)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for a forecast");
	f->settings = *settings;
	f->config = *settings->config;
	MU_TRY_OUT(mu_work_init(&f->work, &f->config, f->config.ranks, err));
	f->work.wire_bytes *= f->config.emulation.link_scale; /* a miniature's bytes stand for a large model's */
	MU_TRY_OUT(take_memory(f, err));
	for (size_t u = 0; u < f->work.n_units; u++) {
		f->units[u] = (mu_cost_unit){f->work.units[u].flops, f->work.units[u].elements};
		f->flops += 3 * f->units[u].flops;
	}
	MU_TRY_OUT(mural_cluster_place(settings->cluster, settings->placement, (int)settings->cluster->devices_in_all,
	                               f->places, err));
	MU_TRY_OUT(check_speeds(f, err));
	return MURAL_OK;
out:
	mural_forecast_free(f);
	*forecast = NULL;
	return status;
}

void mural_forecast_free(mural_forecast *f)
{
	if (!f)
		return;
	mu_work_release(&f->work);
	free(f->units);
	free(f->places);
	free(f->nodes);
	free(f->on_node);
	free(f);
}

const char *mural_forecast_source(const mural_forecast *f)
{
	switch (f->source) {
	case MU_SPEED_MEASURED_HERE: return "measured for this model";
	case MU_SPEED_MEASURED: return "measured for other models";
	case MU_SPEED_DESCRIBED: return "as described";
	case MU_SPEED_GUESSED:
	case MU_SPEED_UNKNOWN: break;
	}
	return f->settings.cluster->guessed ? "guessed from the processor's clock" : "known by its name, a guess";
}

uint64_t mural_forecast_collectives(const mural_forecast *f)
{
	return f->collectives;
}

typedef struct link_user {
	mural_forecast *forecast;
	const mu_links *links;
} link_user;

static double link_seconds(const void *user, mu_cost_collective collective, double bytes)
{
	const link_user *u = user;
	u->forecast->collectives++;
	switch (collective) {
	case MU_COST_ALL_REDUCE: return mu_cluster_all_reduce(u->links, bytes);
	case MU_COST_REDUCE_SCATTER: return mu_cluster_reduce_scatter(u->links, bytes);
	case MU_COST_ALL_GATHER: break;
	}
	return mu_cluster_all_gather(u->links, bytes);
}

/* Ranks alike in device and company are equally fast; they mostly stand behind each other. */
typedef struct team {
	mu_speed slowest;
	double longest, shortest; /* micro-batch */
} team;

static void find_slowest(mural_forecast *f, int ranks, double images, team *t, mural_forecast_step *step)
{
	uint32_t device = UINT32_MAX, company = 0;
	*t = (team){.shortest = INFINITY};
	memset(f->on_node, 0, f->settings.cluster->nodes_in_all * sizeof *f->on_node);
	for (int r = 0; r < ranks; r++)
		f->on_node[f->places[r].node]++;
	for (int r = 0; r < ranks; r++) {
		const mural_place *place = &f->places[r];
		if (place->device == device && f->on_node[place->node] == company)
			continue;
		device = place->device;
		company = f->on_node[place->node];
		mu_speed speed = mu_forecast_speed(f, device, company, NULL);
		double seconds = speed.per_batch + images * speed.per_image;
		t->shortest = fmin(t->shortest, seconds);
		if (seconds > t->longest) {
			t->longest = seconds;
			t->slowest = speed;
			step->slowest_device = device;
			step->slowest_rank = r;
		}
	}
	step->slowness = t->shortest > 0 ? t->longest / t->shortest : 1;
}

static void add_up_devices(const mural_forecast *f, int ranks, mural_forecast_step *step)
{
	bool prices = true, watts = true;
	for (int r = 0; r < ranks; r++) {
		const mural_cluster_device *d = &f->settings.cluster->devices[f->places[r].device];
		step->price_per_hour += d->price_per_hour;
		step->watts += d->watts;
		prices &= d->price_per_hour > 0;
		watts &= d->watts > 0;
	}
	if (!prices)
		step->price_per_hour = 0;
	if (!watts)
		step->watts = 0;
}

static void find_slowest_uplink(const mural_forecast *f, int ranks, mural_forecast_step *step)
{
	const mural_cluster *c = f->settings.cluster;
	step->slowest_node = -1;
	step->slowest_uplink = step->other_uplinks = INFINITY;
	for (int r = 0; r < ranks && step->nodes > 1; r++) {
		const mural_place *place = &f->places[r];
		double speed = c->links[c->nodes[place->entry].uplink].bytes_per_second;
		if ((int)place->node == step->slowest_node)
			continue;
		if (speed < step->slowest_uplink) {
			step->other_uplinks = step->slowest_uplink;
			step->slowest_uplink = speed;
			step->slowest_node = (int)place->node;
			step->slowest_entry = place->entry;
		} else {
			step->other_uplinks = fmin(step->other_uplinks, speed);
		}
	}
	if (!isfinite(step->other_uplinks))
		step->other_uplinks = 0;
	if (!isfinite(step->slowest_uplink))
		step->slowest_uplink = 0;
}

static void change_uplinks(mural_forecast *f, const mural_forecast_point *point, int n_nodes)
{
	for (int i = 0; i < n_nodes; i++) {
		double *speed = &f->nodes[i].uplink.bytes_per_second;
		if (point->uplink_bytes_per_second > 0)
			*speed = point->uplink_bytes_per_second;
		*speed = fmax(*speed, point->slowest_uplink_at_least);
	}
}

static mural_status check_point(const mural_forecast *f, int ranks, mural_error *err)
{
	const mural_cluster *c = f->settings.cluster;
	if (ranks >= 1 && (uint32_t)ranks <= c->devices_in_all)
		return MURAL_OK;
	return mu_fail(err, MURAL_USAGE, c->file[0] ? c->file : NULL,
	               "the cluster '%s' has %u device%s, too few for %d ranks", c->name, c->devices_in_all,
	               c->devices_in_all == 1 ? "" : "s", ranks);
}

static mu_cost_work work_of(const mural_forecast *f, const mural_forecast_point *point, double images,
                            const mural_forecast_step *step)
{
	return (mu_cost_work){.units = f->units,
	                      .n_units = f->work.n_units,
	                      .first_trained = f->work.first_trained,
	                      .images = images,
	                      .accumulation = (double)step->accumulation,
	                      .parameter_bytes = f->work.parameter_bytes,
	                      .gradient_bytes = f->work.wire_bytes,
	                      .bucket_elements = f->work.bucket_elements,
	                      .sums_bytes = SUMS_BYTES,
	                      .overlap = f->config.engine.overlap_comm,
	                      .zero_stage = point->sharded ? point->zero_stage : 0};
}

static void fill_times(const mu_cost *cost, double images, mural_forecast_step *step)
{
	const double ranks = step->ranks;
	step->data = cost->data;
	step->forward = cost->forward;
	step->backward = cost->backward;
	step->exposed = cost->exposed;
	step->hidden = fmax(0, cost->communication - cost->exposed);
	step->optimizer = cost->optimizer;
	step->seconds = cost->step;
	step->bytes = cost->bytes;
	step->ring_bytes = cost->bytes * 2 * (ranks - 1) / ranks;
	step->images = images * (double)step->accumulation * ranks;
	step->images_per_second = step->images / step->seconds;
}

mural_status mu_forecast_step_of(mural_forecast *f, const mural_forecast_point *point, double images,
                                 mural_forecast_step *step, mural_error *err)
{
	const mural_batch_config *batch = &f->config.batch;
	const int ranks = point->ranks ? point->ranks : f->config.ranks;
	mu_links links;
	team t;
	*step = (mural_forecast_step){.ranks = ranks,
	                              .micro_batch = point->micro_batch ? point->micro_batch : batch->micro_batch,
	                              .accumulation = point->accumulation ? point->accumulation : batch->accumulation};
	MU_TRY(check_point(f, ranks, err));
	if (!(images > 0))
		images = (double)step->micro_batch;
	mu_cluster_links(f->settings.cluster, f->places, ranks, f->nodes, &links);
	step->nodes = links.n_nodes;
	change_uplinks(f, point, links.n_nodes);
	find_slowest(f, ranks, images, &t, step);
	add_up_devices(f, ranks, step);
	find_slowest_uplink(f, ranks, step);
	const link_user user = {f, &links};
	const mu_cost_machine machine = {.seconds_per_image = t.slowest.per_image,
	                                 .seconds_per_batch = t.slowest.per_batch,
	                                 .seconds_per_parameter = t.slowest.per_parameter,
	                                 .seconds_per_update = t.slowest.per_update,
	                                 .wait_share = t.slowest.wait_share,
	                                 .data_seconds_per_image = t.slowest.load,
	                                 .ranks = ranks,
	                                 .link = link_seconds,
	                                 .user = &user};
	const mu_cost_work work = work_of(f, point, images, step);
	const mu_cost cost = mu_cost_step(&work, &machine);
	fill_times(&cost, images, step);
	return MURAL_OK;
}

mural_status mural_forecast_at(mural_forecast *f, const mural_forecast_point *point, mural_forecast_step *step,
                               mural_error *err)
{
	return mu_forecast_step_of(f, point, 0, step, err);
}

/* Full steps, and a short one with what is left, evenly shared. */
mural_status mural_forecast_epoch(mural_forecast *f, const mural_forecast_point *point, uint64_t images,
                                  double *seconds, mural_error *err)
{
	mural_forecast_step step;
	*seconds = 0;
	MU_TRY(mu_forecast_step_of(f, point, 0, &step, err));
	double full = floor((double)images / step.images), rest = (double)images - full * step.images;
	*seconds = full * step.seconds;
	if (rest < 1 || f->config.data.drop_last)
		return MURAL_OK;
	double share = ceil(rest / step.ranks / (double)step.accumulation);
	MU_TRY(mu_forecast_step_of(f, point, share, &step, err));
	*seconds += step.seconds;
	return MURAL_OK;
}
