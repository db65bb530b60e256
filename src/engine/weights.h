/* A model's weights: saved as a safetensors file under torchvision's names, loaded from any file that src/weights reads.
 * SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_WEIGHTS_H
#define MU_ENGINE_WEIGHTS_H

#include "base/safetensors.h"
#include "engine/store.h"
#include "weights/weights.h"

#define MU_WEIGHTS_PATH 1400 /* bytes for the path of a weight file */

/* Where the weights of `path` are: the newest whole checkpoint's when it is a run's folder that has not ended, else itself. */
mural_status mu_weights_locate(char found[MU_WEIGHTS_PATH], const char *path, mural_error *err);

/* All work on host memory and on spans of type MU_F32. */

/* The file appears whole or not at all. note: what the tensors do not tell (mu_weights_describe), or NULL. */
mural_status mu_weights_save(const mu_vit *vit, const mu_store *store, const char *note, const char *path,
                             mural_error *err);
/* That file, to be written by others; here the store may lie anywhere. The caller releases it after success. */
mural_status mu_weights_lay_out(const mu_vit *vit, const mu_store *store, const char *note,
                                mu_safetensors_layout *layout, mural_error *err);

/* MURAL_DATA naming what is missing, unexpected, of another shape or type; nothing is changed then. A read error on the
 * way (MURAL_FAILED) leaves the spans half filled. Padding stays as it is, and what the wish lets differ is told in notes (may be
 * NULL). */
mural_status mu_weights_load(const mu_vit *vit, const mu_store *store, const char *path, mu_weights_wish wish,
                             char notes[MURAL_WEIGHTS_NOTES], mural_error *err);

#endif
