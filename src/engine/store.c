/* Spans of parameters, gradients and optimizer state. SPDX-License-Identifier: MIT */
#include "engine/store.h"

#include <stdlib.h>

mu_store_rule mu_store_rule_for(int stage)
{
	return (mu_store_rule){
	        .optimizer = stage >= 1 ? MU_SHARDED : MU_REPLICATED,
	        .gradients = stage >= 2 ? MU_SHARDED : MU_REPLICATED,
	        .parameters = stage >= 3 ? MU_SHARDED : MU_REPLICATED,
	};
}

static void *take(mu_arena *arena, size_t bytes, size_t *counted)
{
	*counted += mu_arena_padded(bytes);
	return mu_arena_take(arena, bytes);
}

static void take_training(mu_store *store, mu_arena *model)
{
	const mu_store_settings *settings = &store->settings;
	const size_t state = store->elements * (store->type == MU_F64 ? sizeof(double) : sizeof(float));
	const bool apart = settings->gradient_type != store->type;
	mu_store_bytes *bytes = &store->bytes;
	store->gradients = take(model, store->elements * mu_dtype_bytes(settings->gradient_type), &bytes->gradients);
	if (apart)
		store->partial = take(model, store->elements * mu_dtype_bytes(store->type), &bytes->gradients);
	if (settings->wire)
		store->wire = take(model, store->elements * mu_dtype_bytes(settings->wire_type), &bytes->gradients);
	if (settings->moments > 0)
		store->m = take(model, state, &bytes->optimizer);
	if (settings->moments > 1)
		store->v = take(model, state, &bytes->optimizer);
	if (settings->direction)
		store->direction = mu_dtype_bytes(settings->gradient_type) >= sizeof(float)
		                           ? store->gradients
		                           : take(model, state, &bytes->optimizer);
	if (settings->average)
		store->average = take(model, store->elements * sizeof(float), &bytes->optimizer);
}

mural_status mu_store_init(mu_store *store, const mu_unit *units, size_t n_units, const mu_store_settings *settings,
                           mu_arena *model, mural_error *err)
{
	const mu_store_rule *rule = &settings->rule;
	*store = (mu_store){.units = units, .n_units = n_units, .settings = *settings, .type = settings->type};
	if (rule->optimizer == MU_SHARDED || rule->gradients == MU_SHARDED || rule->parameters == MU_SHARDED)
		return mu_fail(err, MURAL_USAGE, NULL,
		               "sharded optimizer state, gradients or parameters (ZeRO stage 1, 2, 3) are not "
		               "supported by this build; set zero_optimization.stage to 0");
	store->offset = calloc(n_units + 1, sizeof *store->offset);
	if (!store->offset)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the table of %zu units", n_units);
	for (size_t u = 0; u < n_units; u++)
		store->offset[u + 1] = store->offset[u] + units[u].elements;
	store->elements = store->offset[n_units];
	store->parameters = take(model, store->elements * mu_dtype_bytes(store->type), &store->bytes.parameters);
	if (mu_dtype_bytes(store->type) < sizeof(float))
		store->master = take(model, store->elements * sizeof(float), &store->bytes.optimizer);
	if (settings->training)
		take_training(store, model);
	return MURAL_OK;
}

void mu_store_release(mu_store *store)
{
	if (!store)
		return;
	free(store->offset);
	*store = (mu_store){0};
}

mu_store mu_store_view(const mu_store *store, float *values)
{
	return (mu_store){.units = store->units,
	                  .n_units = store->n_units,
	                  .settings = {.type = MU_F32},
	                  .type = MU_F32,
	                  .offset = store->offset,
	                  .elements = store->elements,
	                  .parameters = values};
}

float *mu_store_weights(const mu_store *store)
{
	return store->master ? store->master : store->parameters;
}

static void *unit_span(const mu_store *store, void *base, size_t unit)
{
	return (char *)base + store->offset[unit] * mu_dtype_bytes(store->type);
}

void *mu_store_parameters(const mu_store *store, size_t unit)
{
	return unit_span(store, store->parameters, unit);
}

void *mu_store_gradients(const mu_store *store, size_t unit)
{
	return unit_span(store, store->partial ? store->partial : store->gradients, unit);
}
