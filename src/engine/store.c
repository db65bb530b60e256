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

mural_status mu_store_init(mu_store *store, const mu_unit *units, size_t n_units, mu_dtype type, mu_store_rule rule,
                           bool training, mu_arena *model, mural_error *err)
{
	*store = (mu_store){.units = units, .n_units = n_units, .type = type, .rule = rule};
	if (rule.optimizer == MU_SHARDED || rule.gradients == MU_SHARDED || rule.parameters == MU_SHARDED)
		return mu_fail(err, MURAL_USAGE, NULL,
		               "sharded optimizer state, gradients or parameters (ZeRO stage 1, 2, 3) are not "
		               "supported by this build; set zero_optimization.stage to 0");
	store->offset = calloc(n_units + 1, sizeof *store->offset);
	if (!store->offset)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the table of %zu units", n_units);
	for (size_t u = 0; u < n_units; u++)
		store->offset[u + 1] = store->offset[u] + units[u].elements;
	store->elements = store->offset[n_units];
	size_t span = store->elements * mu_dtype_bytes(type);
	store->parameters = take(model, span, &store->bytes.parameters);
	if (!training)
		return MURAL_OK;
	size_t state = store->elements * (type == MU_F64 ? sizeof(double) : sizeof(float));
	store->gradients = take(model, span, &store->bytes.gradients);
	store->m = take(model, state, &store->bytes.optimizer);
	store->v = take(model, state, &store->bytes.optimizer);
	return MURAL_OK;
}

void mu_store_release(mu_store *store)
{
	if (!store)
		return;
	free(store->offset);
	*store = (mu_store){0};
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
	return unit_span(store, store->gradients, unit);
}
