/* Names of tensors in weight files. '#' stands for the block's number, '@' for query, key or value.
 * SPDX-License-Identifier: MIT */
#include "model/names.h"

#include <stdio.h>
#include <string.h>

#define TORCHVISION_LAYER "encoder.layers.encoder_layer_#."
#define HF_LAYER "encoder.layer.#."
#define JAX_BLOCK "Transformer/encoderblock_#/"
#define JAX_ATTENTION JAX_BLOCK "MultiHeadDotProductAttention_1/"
#define BV_ATTENTION JAX_BLOCK "MultiHeadDotProductAttention_0/"

/* A column is NULL where the older naming's name still holds: see `base`. */
static const char *const names[MU_ROLE_COUNT][MU_NAMING_COUNT] = {
        [MU_ROLE_PATCH_W] = {"conv_proj.weight", NULL, "patch_embed.proj.weight",
                             "embeddings.patch_embeddings.projection.weight", NULL, "embedding/kernel", NULL},
        [MU_ROLE_PATCH_B] = {"conv_proj.bias", NULL, "patch_embed.proj.bias",
                             "embeddings.patch_embeddings.projection.bias", NULL, "embedding/bias", NULL},
        [MU_ROLE_CLASS_TOKEN] = {"class_token", NULL, "cls_token", "embeddings.cls_token", NULL, "cls", NULL},
        [MU_ROLE_POSITION] = {"encoder.pos_embedding", NULL, "pos_embed", "embeddings.position_embeddings", NULL,
                              "Transformer/posembed_input/pos_embedding", "pos_embedding"},
        [MU_ROLE_NORM1_W] = {TORCHVISION_LAYER "ln_1.weight", NULL, "blocks.#.norm1.weight",
                             HF_LAYER "layernorm_before.weight", "layers.#.layernorm_before.weight",
                             JAX_BLOCK "LayerNorm_0/scale", NULL},
        [MU_ROLE_NORM1_B] = {TORCHVISION_LAYER "ln_1.bias", NULL, "blocks.#.norm1.bias",
                             HF_LAYER "layernorm_before.bias", "layers.#.layernorm_before.bias",
                             JAX_BLOCK "LayerNorm_0/bias", NULL},
        [MU_ROLE_QKV_W] = {TORCHVISION_LAYER "self_attention.in_proj_weight", NULL, "blocks.#.attn.qkv.weight",
                           HF_LAYER "attention.attention.@.weight", "layers.#.attention.@.weight",
                           JAX_ATTENTION "@/kernel", BV_ATTENTION "@/kernel"},
        [MU_ROLE_QKV_B] = {TORCHVISION_LAYER "self_attention.in_proj_bias", NULL, "blocks.#.attn.qkv.bias",
                           HF_LAYER "attention.attention.@.bias", "layers.#.attention.@.bias", JAX_ATTENTION "@/bias",
                           BV_ATTENTION "@/bias"},
        [MU_ROLE_OUT_W] = {TORCHVISION_LAYER "self_attention.out_proj.weight", NULL, "blocks.#.attn.proj.weight",
                           HF_LAYER "attention.output.dense.weight", "layers.#.attention.o_proj.weight",
                           JAX_ATTENTION "out/kernel", BV_ATTENTION "out/kernel"},
        [MU_ROLE_OUT_B] = {TORCHVISION_LAYER "self_attention.out_proj.bias", NULL, "blocks.#.attn.proj.bias",
                           HF_LAYER "attention.output.dense.bias", "layers.#.attention.o_proj.bias",
                           JAX_ATTENTION "out/bias", BV_ATTENTION "out/bias"},
        [MU_ROLE_NORM2_W] = {TORCHVISION_LAYER "ln_2.weight", NULL, "blocks.#.norm2.weight",
                             HF_LAYER "layernorm_after.weight", "layers.#.layernorm_after.weight",
                             JAX_BLOCK "LayerNorm_2/scale", JAX_BLOCK "LayerNorm_1/scale"},
        [MU_ROLE_NORM2_B] = {TORCHVISION_LAYER "ln_2.bias", NULL, "blocks.#.norm2.bias",
                             HF_LAYER "layernorm_after.bias", "layers.#.layernorm_after.bias",
                             JAX_BLOCK "LayerNorm_2/bias", JAX_BLOCK "LayerNorm_1/bias"},
        [MU_ROLE_FC1_W] = {TORCHVISION_LAYER "mlp.0.weight", TORCHVISION_LAYER "mlp.linear_1.weight",
                           "blocks.#.mlp.fc1.weight", HF_LAYER "intermediate.dense.weight", "layers.#.mlp.fc1.weight",
                           JAX_BLOCK "MlpBlock_3/Dense_0/kernel", JAX_BLOCK "MlpBlock_0/Dense_0/kernel"},
        [MU_ROLE_FC1_B] = {TORCHVISION_LAYER "mlp.0.bias", TORCHVISION_LAYER "mlp.linear_1.bias",
                           "blocks.#.mlp.fc1.bias", HF_LAYER "intermediate.dense.bias", "layers.#.mlp.fc1.bias",
                           JAX_BLOCK "MlpBlock_3/Dense_0/bias", JAX_BLOCK "MlpBlock_0/Dense_0/bias"},
        [MU_ROLE_FC2_W] = {TORCHVISION_LAYER "mlp.3.weight", TORCHVISION_LAYER "mlp.linear_2.weight",
                           "blocks.#.mlp.fc2.weight", HF_LAYER "output.dense.weight", "layers.#.mlp.fc2.weight",
                           JAX_BLOCK "MlpBlock_3/Dense_1/kernel", JAX_BLOCK "MlpBlock_0/Dense_1/kernel"},
        [MU_ROLE_FC2_B] = {TORCHVISION_LAYER "mlp.3.bias", TORCHVISION_LAYER "mlp.linear_2.bias",
                           "blocks.#.mlp.fc2.bias", HF_LAYER "output.dense.bias", "layers.#.mlp.fc2.bias",
                           JAX_BLOCK "MlpBlock_3/Dense_1/bias", JAX_BLOCK "MlpBlock_0/Dense_1/bias"},
        [MU_ROLE_NORM_W] = {"encoder.ln.weight", NULL, "norm.weight", "layernorm.weight", NULL,
                            "Transformer/encoder_norm/scale", NULL},
        [MU_ROLE_NORM_B] = {"encoder.ln.bias", NULL, "norm.bias", "layernorm.bias", NULL,
                            "Transformer/encoder_norm/bias", NULL},
        [MU_ROLE_HEAD_W] = {"heads.head.weight", NULL, "head.weight", "classifier.weight", NULL, "head/kernel", NULL},
        [MU_ROLE_HEAD_B] = {"heads.head.bias", NULL, "head.bias", "classifier.bias", NULL, "head/bias", NULL},
};

/* The naming that a column leaves NULL to. */
static const mu_naming base[MU_NAMING_COUNT] = {MU_NAMING_TORCHVISION, MU_NAMING_TORCHVISION, MU_NAMING_TIMM,
                                                MU_NAMING_HUGGINGFACE, MU_NAMING_HUGGINGFACE, MU_NAMING_JAX,
                                                MU_NAMING_JAX};

static const char *const part_names[MU_NAMING_COUNT][3] = {
        [MU_NAMING_HUGGINGFACE] = {"query", "key", "value"},
        [MU_NAMING_HUGGINGFACE_5] = {"q_proj", "k_proj", "v_proj"},
        [MU_NAMING_JAX] = {"query", "key", "value"},
        [MU_NAMING_BIG_VISION] = {"query", "key", "value"},
};

/* The norm behind mean pooling is another tensor than the norm of all tokens: a file of one must not fill the other. */
static const char *pattern_of(mu_naming naming, mu_role role, mural_pool pool)
{
	if (pool == MURAL_POOL_MEAN && (role == MU_ROLE_NORM_W || role == MU_ROLE_NORM_B)) {
		if (base[naming] != MU_NAMING_TORCHVISION && naming != MU_NAMING_TIMM)
			return "";
		return role == MU_ROLE_NORM_W ? "fc_norm.weight" : "fc_norm.bias";
	}
	return names[role][naming] ? names[role][naming] : names[role][base[naming]];
}

unsigned mu_naming_parts(mu_naming naming, mu_role role)
{
	return strchr(pattern_of(naming, role, MURAL_POOL_TOKEN), '@') ? 3 : 1;
}

void mu_tensor_name(mu_naming naming, mu_role role, int block, mural_pool pool, unsigned part, char *name, size_t size)
{
	size_t used = 0;
	*name = '\0';
	for (const char *c = pattern_of(naming, role, pool); *c && used + 1 < size; c++) {
		if (*c == '#')
			snprintf(name + used, size - used, "%d", block);
		else if (*c == '@')
			snprintf(name + used, size - used, "%s", part_names[naming][part]);
		else
			snprintf(name + used, size - used, "%c", *c);
		used = strlen(name);
	}
}
