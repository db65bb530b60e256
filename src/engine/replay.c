/* Capture and replay. SPDX-License-Identifier: MIT */
#include "engine/replay.h"

/* A capture that was begun is ended, whatever the work says. */
static mural_status capture(mu_replay *replay, const mu_device *device, mu_replay_work work, void *argument,
                            mural_error *err)
{
	const mu_device_table *table = device->table;
	mu_graph *graph = NULL;
	MU_TRY(table->capture_begin(device->queue, err));
	const mural_status status = work(argument, err);
	const mural_status ended = table->capture_end(device->queue, &graph, status == MURAL_OK ? err : NULL);
	if (status == MURAL_OK && ended == MURAL_OK) {
		replay->graph = graph;
		return MURAL_OK;
	}
	if (graph)
		table->graph_free(graph);
	return status == MURAL_OK ? ended : status;
}

mural_status mu_replay_run(mu_replay *replay, const mu_device *device, bool enabled, mu_replay_work work,
                           void *argument, mural_error *err)
{
	if (!enabled || !replay->ran) {
		replay->ran = true;
		return work(argument, err);
	}
	if (!replay->graph)
		MU_TRY(capture(replay, device, work, argument, err));
	return device->table->graph_replay(replay->graph, device->queue, err);
}

void mu_replay_release(mu_replay *replay, const mu_device *device)
{
	if (replay->graph)
		device->table->graph_free(replay->graph);
	*replay = (mu_replay){0};
}
