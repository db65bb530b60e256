/* What weight files call a tensor: one column per naming, one row per role.
 *
 * A further naming (timm, Hugging Face) is a further column of the table in names.c.
 * SPDX-License-Identifier: MIT */
#ifndef MU_MODEL_NAMES_H
#define MU_MODEL_NAMES_H

#include "model/unit.h"
#include "mural/model.h"

typedef enum mu_naming {
	MU_NAMING_TORCHVISION, /* timm's name where torchvision has none: fc_norm, the norm behind mean pooling */
	MU_NAMING_COUNT
} mu_naming;

/* Writes the name of `role` in block `block` (ignored outside blocks), cut to `size` bytes. */
void mu_tensor_name(mu_naming naming, mu_role role, int block, mural_pool pool, char *name, size_t size);

#endif
