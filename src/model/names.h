/* What weight files call a tensor: one column per naming, one row per role.
 *
 * A further naming is a further column of the table in names.c. SPDX-License-Identifier: MIT */
#ifndef MU_MODEL_NAMES_H
#define MU_MODEL_NAMES_H

#include "model/unit.h"
#include "mural/model.h"

typedef enum mu_naming {
	MU_NAMING_TORCHVISION, /* timm's name where torchvision has none: fc_norm, the norm behind mean pooling */
	MU_NAMING_TORCHVISION_OLD, /* before version 0.14: mlp.linear_1 and mlp.linear_2 */
	MU_NAMING_TIMM,
	MU_NAMING_HUGGINGFACE, /* ViTModel on disk; in ViTForImageClassification with "vit." in front of all but the head */
	MU_NAMING_HUGGINGFACE_5, /* the same as transformers 5 names it in memory */
	MU_NAMING_JAX, /* google-research/vision_transformer */
	MU_NAMING_BIG_VISION, /* google-research/big_vision, which numbers the layers of a block otherwise */
	MU_NAMING_COUNT
} mu_naming;

/* In how many tensors a file of this naming holds a role: 3 where query, key and value are apart, else 1. */
unsigned mu_naming_parts(mu_naming naming, mu_role role);

/* Writes the name of part `part` of `role` in block `block` (ignored outside blocks), cut to `size` bytes. "" when the naming
 * has no such tensor: the norm behind mean pooling outside of timm and Mural. */
void mu_tensor_name(mu_naming naming, mu_role role, int block, mural_pool pool, unsigned part, char *name, size_t size);

#endif
