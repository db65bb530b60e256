/* Writing weights for other libraries.
 *
 *     export.c          a conversion from end to end
 *     export_pth.c      tensors as PyTorch's ZIP of a pickle
 *     export_config.c   the configuration files that stand beside them
 * SPDX-License-Identifier: MIT */
#ifndef MU_WEIGHTS_EXPORT_H
#define MU_WEIGHTS_EXPORT_H

#include "base/safetensors.h"
#include "weights/weights.h"

/* Writes fp32 tensors as torch.save writes a state_dict, in this order. Whole or not at all. */
mural_status mu_pth_write(const char *path, const mu_safetensors_item *items, size_t n, mural_error *err);

/* config.json, and preprocessor_config.json for Hugging Face, into a folder. MURAL_USAGE for what they cannot express. */
mural_status mu_export_configuration(const mural_weights *weights, mural_naming naming, const char *folder,
                                     mural_error *err);

#endif
