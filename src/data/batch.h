/* What a micro-batch holds: a function of the settings and its number, whoever fills it.
 * SPDX-License-Identifier: MIT */
#ifndef MU_DATA_BATCH_H
#define MU_DATA_BATCH_H

#include <stdatomic.h>

#include "base/arena.h"
#include "data/fit.h"
#include "data/loader.h"

mu_image_shape mu_batch_shape_of_set(const mu_loader_settings *settings);
mu_image_shape mu_batch_shape_of_model(const mu_loader_settings *settings);

/* A batch of full capacity with its arrays from the arena. */
mu_batch mu_batch_take(mu_arena *arena, const mu_loader_settings *settings);

/* Says which one it is: micro-batch `number`, counted from the start of first_epoch. Sets everything but the arrays. */
void mu_batch_place(mu_batch *batch, const mu_loader_settings *settings, uint64_t number);

/* Reads the images of a placed batch with its index_B and sets all other arrays, zeros past the count. spare: one image
 * of the set's shape, NULL when that is the model's. Leaves early when *stopping: the batch is then not usable. */
mural_status mu_batch_fill(const mu_batch *batch, const mu_loader_settings *settings, uint8_t *spare,
                           const atomic_bool *stopping, mural_error *err);

#endif
