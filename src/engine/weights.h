/* A model's weights as a safetensors file under torchvision's names.
 *
 * Every tensor of the model must be in the file with its name, shape and type F32, and nothing else may be there.
 * SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_WEIGHTS_H
#define MU_ENGINE_WEIGHTS_H

#include "engine/store.h"
#include "model/vit.h"

/* Both work on host memory and on spans of type MU_F32. */

/* The file appears whole or not at all. */
mural_status mu_weights_save(const mu_vit *vit, const mu_store *store, const char *path, mural_error *err);

/* MURAL_DATA naming what is missing, unexpected, of another shape or type; nothing is changed then. A read error on the
 * way (MURAL_FAILED) leaves the spans half filled. Padding stays as it is. */
mural_status mu_weights_load(const mu_vit *vit, const mu_store *store, const char *path, mural_error *err);

#endif
