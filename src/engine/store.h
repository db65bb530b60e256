/* The store: who holds what of a model's state, and where.
 *
 * For each of {optimizer state, gradients, parameters} a rule answers: replicated on every data rank or sharded over
 * them. ZeRO (Rajbhandari et al. 2020, arXiv:1910.02054) is one mechanism: stage 0 shards nothing, 1 the optimizer
 * state, 2 also gradients, 3 also parameters. This build holds everything replicated on the device; other rules are refused by name.
 *
 * Spans of all units lie behind each other in unit order, in each of the arrays below, so a run of neighbouring units
 * is one contiguous range: a bucket, or one pass of the optimizer.
 *
 *     parameters: | unit 0 | unit 1 | ... | unit L + 1 |       all other spans: the same layout
 *                 ^ offset[0] ^ offset[1]               ^ offset[n_units] = elements
 *
 *     span         type                       there is one
 *     parameters   parameters'                always
 *     master       fp32                       for narrow parameters: what the optimizer changes, and files keep
 *     gradients    gradients'                 training: of the step
 *     partial      parameters'                training, if gradients have another type: of one micro-batch
 *     wire         any                        training on several ranks, if gradients travel as another type
 *     m, v         fp32                       training: moments, as many as the optimizer has
 *     direction    fp32                       training: where the optimizer's step is made up first; may be gradients
 *     average      fp32                       training with an average of weights
 * SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_STORE_H
#define MU_ENGINE_STORE_H

#include "base/arena.h"
#include "base/types.h"
#include "model/unit.h"

typedef enum mu_holding { MU_REPLICATED, MU_SHARDED } mu_holding;

typedef struct mu_store_rule {
	mu_holding optimizer, gradients, parameters;
} mu_store_rule;

/* Bytes of each part, padding of the arena included. */
typedef struct mu_store_bytes {
	size_t parameters, gradients, optimizer;
} mu_store_bytes;

typedef struct mu_store_settings {
	mu_dtype type; /* of parameters and activations */
	mu_dtype gradient_type; /* type, or MU_F32 */
	mu_store_rule rule;
	bool training;
	size_t moments; /* 0, 1, 2 */
	bool direction, average;
	mu_dtype wire_type; /* of gradients between ranks */
	bool wire; /* they travel in it, apart */
} mu_store_settings;

typedef struct mu_store {
	const mu_unit *units; /* borrowed */
	size_t n_units;
	mu_store_settings settings;
	mu_dtype type; /* of parameters */
	size_t *offset; /* [n_units + 1] elements */
	size_t elements;
	void *parameters;
	float *master;
	void *gradients, *partial, *wire;
	void *m, *v, *direction;
	float *average;
	mu_store_bytes bytes;
} mu_store;

/* What ZeRO stage 0 .. 3 means. */
mu_store_rule mu_store_rule_for(int stage);

/* Lays the spans out in `model`. Contents are undefined. */
mural_status mu_store_init(mu_store *store, const mu_unit *units, size_t n_units, const mu_store_settings *settings,
                           mu_arena *model, mural_error *err);
void mu_store_release(mu_store *store);

/* The same layout with fp32 weights alone, at `values`: for files. Borrows the store's table. */
mu_store mu_store_view(const mu_store *store, float *values);

/* The weights that count, fp32: masters, or parameters that are their own. */
float *mu_store_weights(const mu_store *store);

/* A unit's whole span, ready to compute with, until the next call for another unit (a sharded store gathers it). */
void *mu_store_parameters(const mu_store *store, size_t unit);
/* Where backward adds a unit's gradients. */
void *mu_store_gradients(const mu_store *store, size_t unit);

#endif
