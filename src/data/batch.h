/* What a micro-batch holds: a function of the settings and its number, whoever fills it.
 * SPDX-License-Identifier: MIT */
#ifndef MU_DATA_BATCH_H
#define MU_DATA_BATCH_H

#include <stdatomic.h>

#include "base/arena.h"
#include "data/fit.h"
#include "data/loader.h"
#include "data/resize.h"

mu_image_shape mu_batch_shape_of_set(const mu_loader_settings *settings);
mu_image_shape mu_batch_shape_of_model(const mu_loader_settings *settings);

/* A batch of full capacity with its arrays from the arena. */
mu_batch mu_batch_take(mu_arena *arena, const mu_loader_settings *settings);

/* Which micro-batch: `step` is of the run, counted from epoch 0. */
typedef struct mu_batch_at {
	uint64_t step, micro;
} mu_batch_at;

/* Says which one it is, with the shares of `sampler`. Sets everything but the arrays. */
void mu_batch_place(mu_batch *batch, const mu_loader_settings *settings, const mu_sampler *sampler, mu_batch_at at);

/* Does an image of the set go into a batch as it is? */
bool mu_batch_fits(const mu_loader_settings *settings);

/* How images become the model's shape, when they do not fit as they are. */
typedef struct mu_batch_tools {
	const mu_resize *resize; /* prepared; NULL: padded or cut around the centre */
	uint8_t *spare; /* one image in the set's shape, NULL when it fits */
	uint8_t *scratch; /* for resize */
} mu_batch_tools;

/* Reads the images of a placed batch with its index_B and sets all other arrays, zeros past the count. Leaves early when
 * *stopping: the batch is then not usable. */
mural_status mu_batch_fill(const mu_batch *batch, const mu_loader_settings *settings, const mu_batch_tools *tools,
                           const atomic_bool *stopping, mural_error *err);

#endif
