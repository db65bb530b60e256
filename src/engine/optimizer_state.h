/* Optimizer state as safetensors: the moments of each parameter by its name, so that any number of ranks and any sharding can
 * read what any other has written.
 *
 * A tensor "exp_avg.NAME" (first moment or momentum) or "exp_avg_sq.NAME" (second moment), as many as the optimizer has, F32
 * with one dim, holds elements [begin, end) of the parameter NAME, counted in
 * row-major order. The metadata say under the tensor's name "BEGIN END TOTAL". A state may be spread over several files, each
 * with its ranges; taken in order they tile every parameter. This build writes one file with whole tensors and reads any.
 * SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_OPTIMIZER_STATE_H
#define MU_ENGINE_OPTIMIZER_STATE_H

#include "base/safetensors.h"
#include "engine/store.h"
#include "model/vit.h"

/* The file, to be written by others; the store may lie anywhere. The caller releases it after success. */
mural_status mu_optimizer_state_lay_out(const mu_vit *vit, const mu_store *store, mu_safetensors_layout *layout,
                                        mural_error *err);

/* Into host memory. MURAL_DATA naming file and tensor when ranges do not tile the parameters, or belong to another model. Nothing is promised of the
 * moments then. Padding stays as it is. */
mural_status mu_optimizer_state_load(const mu_vit *vit, const mu_store *store, const char *const *paths, size_t n,
                                     mural_error *err);

#endif
