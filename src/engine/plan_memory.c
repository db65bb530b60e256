/* The engine's own memory plan without a training: the same code measures, nothing is allocated. SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "engine/engine_internal.h"
#include "mural/plan.h"

/* An engine as far as planning needs it: a rank among so many on this host. */
typedef struct planner {
	mural_engine *engine;
	mu_comm *alone;
	mu_comm_facts ranks;
} planner;

static void end(planner *p)
{
	mural_engine *engine = p->engine;
	if (engine) {
		mu_segments_release(&engine->segments);
		mu_sharing_release(&engine->sharing);
		if (engine->context)
			engine->ops->close(engine->context);
		mu_device_close(&engine->device);
		mu_vit_release(&engine->vit);
		free(engine);
	}
	if (p->alone)
		p->alone->table->close(p->alone);
}

static mural_status begin(planner *p, const mural_engine_settings *settings, int ranks, mural_error *err)
{
	mural_engine *engine = p->engine = calloc(1, sizeof *engine);
	if (!engine)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for a plan");
	MU_TRY(mu_comm_self.open(&p->alone, err));
	p->ranks = *p->alone->table->facts(p->alone);
	p->ranks.size = p->ranks.local_size = ranks;
	engine->config = *settings->config;
	engine->in_order = engine->config.data;
	engine->in_order.shuffle = false;
	engine->report = settings->report;
	engine->comm = p->alone;
	engine->ranks = &p->ranks;
	engine->training = settings->training;
	engine->train = settings->train;
	engine->evaluated[MU_EVALUATED_TEST].data = settings->test;
	engine->evaluated[MU_EVALUATED_VALIDATION].data = settings->validation;
	MU_TRY(mural_model_config_check(&engine->config.model, err));
	MU_TRY(mu_vit_init(&engine->vit, &engine->config.model, err));
	MU_TRY(mu_sharing_init(&engine->sharing, &engine->config, engine->ranks, engine->training, err));
	MU_TRY(mu_engine_choose_device(engine, err));
	MU_TRY(mu_engine_open_device(engine, err));
	MU_TRY(mu_engine_check_types(engine, err));
	MU_TRY(mu_engine_apply_rules(engine, err));
	mu_engine_prepare_plan(engine);
	return MURAL_OK;
}

/* Doubles until it is too much: what fits may be more than what is configured. */
static mural_status search(mural_engine *engine, uint64_t limit, uint64_t *largest, mural_error *err)
{
	enum { MOST = 1 << 16 };
	size_t fails = 1;
	mural_memory_plan plan;
	do {
		MU_TRY(mu_engine_measure(engine, fails, &plan, err));
		fails *= 2;
	} while (plan.total <= limit && fails <= MOST);
	*largest = plan.total <= limit ? fails / 2 : mu_engine_largest_fit(engine, limit, fails / 2);
	return MURAL_OK;
}

mural_status mural_plan_memory(mural_memory_plan *plan, const mural_engine_settings *settings, int ranks,
                               mural_memory_fit *fit, mural_error *err)
{
	planner p = {0};
	*plan = (mural_memory_plan){0};
	mural_status status = begin(&p, settings, ranks, err);
	if (status == MURAL_OK)
		status = mu_engine_measure(p.engine, p.engine->sharing.capacity, plan, err);
	if (status == MURAL_OK && fit) {
		mu_device_facts facts;
		status = p.engine->device.table->facts(p.engine->device.handle, &facts, err);
		if (status == MURAL_OK && fit->bytes == 0)
			fit->bytes = facts.free_bytes / (p.engine->shared ? (size_t)ranks : 1);
		if (status == MURAL_OK)
			status = search(p.engine, fit->bytes, &fit->largest_micro_batch, err);
	}
	end(&p);
	return status;
}
