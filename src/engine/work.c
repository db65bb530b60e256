/* A configuration as numbers of operations, elements and bytes. SPDX-License-Identifier: MIT */
#include "engine/work.h"

#include <math.h>
#include <stdlib.h>

#include "engine/engine_internal.h"

static double values_of(const mu_vit *vit)
{
	const mural_model_config *c = &vit->config;
	double tokens = (double)vit->tokens;
	return (double)c->depth *
	       (tokens * (8 * (double)c->width + 2 * (double)c->mlp_width) + (double)c->heads * tokens * tokens);
}

static mural_status count_units(mu_work *work, const mu_vit *vit, mural_error *err)
{
	work->units = calloc(vit->n_units, sizeof *work->units);
	if (!work->units)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for a table of %zu units", vit->n_units);
	work->n_units = vit->n_units;
	for (size_t u = 0; u < vit->n_units; u++) {
		work->units[u].flops = mu_vit_unit_flops(vit, u);
		work->units[u].elements = (double)vit->units[u].elements;
		work->largest_unit = fmax(work->largest_unit, work->units[u].elements);
	}
	return MURAL_OK;
}

/* The store's own layout, measured; sharded stages hold the same elements, divided. */
static mural_status count_bytes(mu_work *work, const mu_vit *vit, const mural_config *config, int ranks,
                                mural_error *err)
{
	mu_store_settings settings = mu_engine_store_settings(config, true, ranks);
	mu_arena arena = {0};
	mu_store store;
	settings.rule = mu_store_rule_for(0);
	mu_arena_measure(&arena, "model");
	MU_TRY(mu_store_init(&store, vit->units, vit->n_units, &settings, &arena, err));
	double elements = (double)store.elements;
	work->elements = elements;
	work->parameter_bytes = (double)store.bytes.parameters / elements;
	work->gradient_bytes = (double)store.bytes.gradients / elements;
	work->state_bytes = (double)store.bytes.optimizer / elements;
	work->wire_bytes = (double)mu_dtype_bytes(settings.wire_type);
	work->bucket_elements = (double)mu_reducer_bucket_limit(store.elements, config->engine.reduce_bucket);
	mu_store_release(&store);
	return MURAL_OK;
}

mural_status mu_work_init(mu_work *work, const mural_config *config, int ranks, mural_error *err)
{
	mu_vit vit = {0};
	mural_status status;
	*work = (mu_work){0};
	MU_TRY(mural_model_config_check(&config->model, err));
	MU_TRY(mu_vit_init(&vit, &config->model, err));
	MU_TRY_OUT(mu_vit_freeze(&vit, config->optimizer.freeze, err));
	MU_TRY_OUT(count_units(work, &vit, err));
	MU_TRY_OUT(count_bytes(work, &vit, config, ranks, err));
	work->first_trained = mu_vit_first_trained(&vit);
	work->parameters = (double)vit.parameters;
	work->values_per_image = values_of(&vit);
out:
	if (status != MURAL_OK)
		mu_work_release(work);
	mu_vit_release(&vit);
	return status;
}

void mu_work_release(mu_work *work)
{
	if (!work)
		return;
	free(work->units);
	*work = (mu_work){0};
}
