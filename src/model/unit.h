/* Units and their tensors: what a model is made of, as the store, the optimizer and checkpoints see it.
 *
 * A model is an ordered list of units: patch embedding, each block, head. All parameters of a unit lie in one padded
 * span of one element type, with a table of its tensors. Gradients and optimizer state use the same layout.
 *
 *     span of unit u:  | tensor 0 | pad | tensor 1 | pad | ... |      offsets and sizes in elements
 *
 * Every tensor starts at a multiple of MU_TENSOR_ALIGN elements; padding is zero and stays zero.
 * SPDX-License-Identifier: MIT */
#ifndef MU_MODEL_UNIT_H
#define MU_MODEL_UNIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MU_TENSOR_ALIGN 32 /* elements: 64 bytes in bf16 */
#define MU_TENSOR_MAX_DIMS 4

typedef enum mu_unit_kind { MU_UNIT_EMBED, MU_UNIT_BLOCK, MU_UNIT_HEAD } mu_unit_kind;

/* What a tensor is, whatever a weight file calls it. Order = order inside its unit. */
typedef enum mu_role {
	MU_ROLE_PATCH_W,
	MU_ROLE_PATCH_B,
	MU_ROLE_CLASS_TOKEN,
	MU_ROLE_POSITION,
	MU_ROLE_NORM1_W,
	MU_ROLE_NORM1_B,
	MU_ROLE_QKV_W,
	MU_ROLE_QKV_B,
	MU_ROLE_OUT_W,
	MU_ROLE_OUT_B,
	MU_ROLE_NORM2_W,
	MU_ROLE_NORM2_B,
	MU_ROLE_FC1_W,
	MU_ROLE_FC1_B,
	MU_ROLE_FC2_W,
	MU_ROLE_FC2_B,
	MU_ROLE_NORM_W,
	MU_ROLE_NORM_B,
	MU_ROLE_HEAD_W,
	MU_ROLE_HEAD_B,
	MU_ROLE_COUNT
} mu_role;

typedef enum mu_tensor_flag {
	MU_TENSOR_DECAYS = 1, /* weight decay applies (set from the configuration's rule) */
	MU_TENSOR_FROZEN = 2,
	MU_TENSOR_TRUST = 4, /* its step is scaled by a trust ratio of its own (LAMB) */
	MU_TENSOR_MUON = 8 /* a matrix whose step is made orthogonal (Muon) */
} mu_tensor_flag;

typedef struct mu_tensor {
	char name[96]; /* torchvision's name; timm's where torchvision has none */
	mu_role role;
	int n_dims;
	size_t dims[MU_TENSOR_MAX_DIMS];
	size_t elements; /* product of dims */
	size_t offset; /* in the unit's span, in elements */
	unsigned flags;
	float lr_scale; /* layer-wise learning rate, 1 by default */
	uint32_t number; /* counts tensors over the whole model: the layer of MU_PURPOSE_INIT */
} mu_tensor;

typedef struct mu_unit {
	mu_unit_kind kind;
	int block; /* 0 .. L-1 for blocks, -1 otherwise */
	size_t n_tensors;
	mu_tensor *tensors;
	size_t elements; /* of the span, padding included */
} mu_unit;

#endif
