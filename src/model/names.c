/* Names of tensors in weight files. '#' stands for the block's number.
 * SPDX-License-Identifier: MIT */
#include "model/names.h"

#include <stdio.h>
#include <string.h>

#define TORCHVISION_LAYER "encoder.layers.encoder_layer_#."

static const char *const names[MU_ROLE_COUNT][MU_NAMING_COUNT] = {
        [MU_ROLE_PATCH_W] = {"conv_proj.weight"},
        [MU_ROLE_PATCH_B] = {"conv_proj.bias"},
        [MU_ROLE_CLASS_TOKEN] = {"class_token"},
        [MU_ROLE_POSITION] = {"encoder.pos_embedding"},
        [MU_ROLE_NORM1_W] = {TORCHVISION_LAYER "ln_1.weight"},
        [MU_ROLE_NORM1_B] = {TORCHVISION_LAYER "ln_1.bias"},
        [MU_ROLE_QKV_W] = {TORCHVISION_LAYER "self_attention.in_proj_weight"},
        [MU_ROLE_QKV_B] = {TORCHVISION_LAYER "self_attention.in_proj_bias"},
        [MU_ROLE_OUT_W] = {TORCHVISION_LAYER "self_attention.out_proj.weight"},
        [MU_ROLE_OUT_B] = {TORCHVISION_LAYER "self_attention.out_proj.bias"},
        [MU_ROLE_NORM2_W] = {TORCHVISION_LAYER "ln_2.weight"},
        [MU_ROLE_NORM2_B] = {TORCHVISION_LAYER "ln_2.bias"},
        [MU_ROLE_FC1_W] = {TORCHVISION_LAYER "mlp.0.weight"},
        [MU_ROLE_FC1_B] = {TORCHVISION_LAYER "mlp.0.bias"},
        [MU_ROLE_FC2_W] = {TORCHVISION_LAYER "mlp.3.weight"},
        [MU_ROLE_FC2_B] = {TORCHVISION_LAYER "mlp.3.bias"},
        [MU_ROLE_NORM_W] = {"encoder.ln.weight"},
        [MU_ROLE_NORM_B] = {"encoder.ln.bias"},
        [MU_ROLE_HEAD_W] = {"heads.head.weight"},
        [MU_ROLE_HEAD_B] = {"heads.head.bias"},
};

/* The norm behind mean pooling is another tensor than the norm of all tokens: a file of one must not fill the other. */
static const char *const mean_pool_names[MU_ROLE_COUNT][MU_NAMING_COUNT] = {
        [MU_ROLE_NORM_W] = {"fc_norm.weight"},
        [MU_ROLE_NORM_B] = {"fc_norm.bias"},
};

void mu_tensor_name(mu_naming naming, mu_role role, int block, mural_pool pool, char *name, size_t size)
{
	const char *pattern = names[role][naming];
	if (pool == MURAL_POOL_MEAN && mean_pool_names[role][naming])
		pattern = mean_pool_names[role][naming];
	const char *mark = strchr(pattern, '#');
	if (mark)
		snprintf(name, size, "%.*s%d%s", (int)(mark - pattern), pattern, block, mark + 1);
	else
		snprintf(name, size, "%s", pattern);
}
