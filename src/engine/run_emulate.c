/* The cluster that a run stands for: read by rank 0, sent to all, put around the collectives. SPDX-License-Identifier: MIT */
#include "engine/run_emulate.h"

#include <stdlib.h>

#include "comm/emulated.h"
#include "engine/run_internal.h"

static mural_status share_cluster(mu_run *r, mural_cluster **cluster, mural_error *err)
{
	mural_status status = MURAL_OK;
	if (r->rank == 0) {
		status = mural_cluster_read(cluster, r->config->emulation.cluster, err);
	} else {
		*cluster = calloc(1, sizeof **cluster);
		if (!*cluster)
			status = mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for a cluster");
	}
	if (status != MURAL_OK && r->report)
		mu_context(err, "wanted by %s", mural_config_origin(r->report, "mural.cluster"));
	MU_TRY(mu_comm_agree(r->comm, status, err));
	return mu_comm_broadcast(r->comm, *cluster, sizeof **cluster, 0, err);
}

/* The device that this rank stands for. */
static mural_status find_device(mu_run *r, const mural_cluster *cluster, mural_placement placement, mural_error *err)
{
	mural_place *places = calloc((size_t)r->ranks, sizeof *places);
	mural_status status = places ? mural_cluster_place(cluster, placement, r->ranks, places, err)
	                             : mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory to place %d ranks", r->ranks);
	if (status == MURAL_OK)
		r->device = cluster->devices[places[r->rank].device];
	free(places);
	return mu_comm_agree(r->comm, status, err);
}

mural_status mu_run_emulate(mu_run *r, mural_error *err)
{
	const mural_emulation_config *c = &r->config->emulation;
	mural_cluster *cluster = NULL;
	if (!c->cluster[0])
		return MURAL_OK;
	mural_status status = share_cluster(r, &cluster, err);
	if (status == MURAL_OK)
		status = find_device(r, cluster, (mural_placement)c->placement, err);
	if (status == MURAL_OK)
		status = mural_comm_emulate(&r->emulated, r->comm, cluster, (mural_placement)c->placement,
		                            c->link_scale, err);
	if (status == MURAL_OK)
		r->comm = r->emulated;
	mural_cluster_free(cluster);
	return status;
}

void mu_run_tell_emulation(mu_run *r)
{
	mu_emulated_counts links;
	if (r->rank != 0 || !r->emulated || !mu_emulated_read(r->emulated, &links))
		return;
	mural_pace_facts pace = mural_engine_pace(r->engine);
	mu_progress_line(
	        &r->progress,
	        "emulated: %llu collectives, %llu of them late by %.3f s in all; %llu steps, %llu of them late by "
	        "%.3f s (late: this machine was slower than the described cluster)",
	        (unsigned long long)links.collectives, (unsigned long long)links.late, links.late_seconds,
	        (unsigned long long)pace.steps, (unsigned long long)pace.late_steps, pace.late_seconds);
}

void mu_emulation_write(mu_json *json, const mural_comm *emulated, const mural_engine *engine)
{
	mu_emulated_counts links;
	if (!emulated || !mu_emulated_read(emulated, &links))
		return;
	mural_pace_facts pace = mural_engine_pace(engine);
	mu_json_object_begin(json, "emulation");
	mu_json_unsigned(json, "collectives", links.collectives);
	mu_json_number(json, "collective_seconds", links.seconds);
	mu_json_unsigned(json, "late_collectives", links.late);
	mu_json_number(json, "late_collective_seconds", links.late_seconds);
	mu_json_unsigned(json, "steps", pace.steps);
	mu_json_number(json, "step_seconds", pace.seconds);
	mu_json_unsigned(json, "late_steps", pace.late_steps);
	mu_json_number(json, "late_step_seconds", pace.late_seconds);
	mu_json_object_end(json);
}
