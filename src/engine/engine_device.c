/* Which operations a rank computes with, and on which device. SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "base/affinity.h"
#include "engine/engine_internal.h"
#include "kernels/cuda.h"

static const char *origin(const mural_engine *engine)
{
	return engine->report ? mural_config_origin(engine->report, "mural.ops") : NULL;
}

/* Gradients of several ranks are added up in host memory, which a card's operations do not use. */
static mural_status refuse_ranks_on_cards(const mural_engine *engine, mural_error *err)
{
	return mu_fail(err, MURAL_USAGE, origin(engine),
	               "%d ranks cannot train on GPUs together yet: use one rank, or the processor (--ops cpu)",
	               engine->ranks->size);
}

/* "auto" is the fastest that works here: a GPU for a rank alone, else the processor. */
static mural_status choose(mural_engine *engine, mural_error *err)
{
	const char *name = engine->config.run.ops;
	const bool any = name[0] == '\0' || strcmp(name, "auto") == 0, alone = engine->ranks->size == 1;
	if (!any && strcmp(name, "cuda") == 0)
		return alone ? mu_cuda_ops(&engine->ops, err) : refuse_ranks_on_cards(engine, err);
	if (any && alone && mu_cuda_ops(&engine->ops, NULL) == MURAL_OK)
		return MURAL_OK;
	engine->ops = mu_ops_find(any ? "cpu" : name);
	if (engine->ops)
		return MURAL_OK;
	return mu_fail(err, MURAL_USAGE, origin(engine), "there is no operations table '%s' in this build", name);
}

mural_status mu_engine_open_device(mural_engine *engine, mural_error *err)
{
	mu_device_facts facts;
	if (!engine->ops)
		MU_TRY(choose(engine, err));
	const bool host = engine->ops->device == &mu_device_host;
	MU_TRY(mu_device_open(&engine->device, engine->ops->device, host ? 0 : mural_comm_slot(engine->comm), err));
	MU_TRY(engine->device.table->facts(engine->device.handle, &facts, err));
	engine->shared = facts.shares_host_memory;
	snprintf(engine->bus, sizeof engine->bus, "%s", facts.bus);
	engine->can_replay = facts.can_capture && !engine->config.run.eager;
	engine->threads = engine->config.run.threads;
	if (engine->threads == 0)
		engine->threads = (unsigned)mu_affinity_threads(engine->ranks->local_size);
	MU_TRY(engine->ops->open(engine->device.queue, (int)engine->threads, &engine->context, err));
	if (engine->ops->fix_algorithms)
		engine->ops->fix_algorithms(engine->context, engine->config.run.deterministic);
	return MURAL_OK;
}
