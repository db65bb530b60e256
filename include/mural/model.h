/* The model: a Vision Transformer's shape and its presets.
 *
 * Plain data; nothing here is allocated. Fill with mural_model_preset or mural_model_defaults, change fields, check.
 * SPDX-License-Identifier: MIT */
#ifndef MURAL_MODEL_H
#define MURAL_MODEL_H

#include <stddef.h>

#include "mural/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum mural_pool {
	MURAL_POOL_TOKEN, /* the class token after the last block */
	MURAL_POOL_MEAN /* the mean of the patch tokens; the norm comes after it, as in timm */
} mural_pool;

typedef enum mural_gelu {
	MURAL_GELU_ERF, /* torchvision, timm, Hugging Face */
	MURAL_GELU_TANH /* JAX */
} mural_gelu;

typedef enum mural_init { MURAL_INIT_TORCHVISION, MURAL_INIT_TIMM } mural_init;

typedef struct mural_model_config {
	char preset[32]; /* "vit_b_16" or "custom" */
	size_t image_height, image_width; /* pixels the model sees; multiples of patch */
	size_t channels; /* 1 .. 16 */
	size_t patch; /* P */
	size_t depth, width, heads, mlp_width; /* L, D, H (divides D), F */
	size_t classes; /* C, 1 .. 2^24 */
	mural_pool pool;
	bool class_token; /* required by MURAL_POOL_TOKEN */
	double norm_eps; /* default 1e-6 */
	mural_gelu gelu;
	double dropout; /* [0, 1): after positions, in the MLP and on both branches, as torchvision */
	double attention_dropout; /* [0, 1) */
	double drop_path; /* [0, 1): rises linearly from 0 at block 0 to this at block L - 1 */
	mural_init init;
} mural_model_config;

/* vit_b_16 at 224 x 224, 3 channels, 1000 classes. */
MURAL_API void mural_model_defaults(mural_model_config *config);

/* By name: vit_{ti,s,m,b,l,so400m,h,g,gopt,G,...}_{patch}, torchvision's vit_b_16 among them, or "mu" for tests.
 * Unknown: MURAL_USAGE with the nearest name. Only shape fields change: image size, channels and classes stay. */
MURAL_API mural_status mural_model_preset(mural_model_config *config, const char *name, mural_error *err);

/* Is it one of the presets' families? By width, depth and MLP width; sets heads and the preset's name then, "custom" otherwise. */
MURAL_API bool mural_model_recognise(mural_model_config *config);

/* Fills `names` with a line per preset family for help: NULL-terminated array of static strings. */
MURAL_API const char *const *mural_model_presets(void);

/* MURAL_USAGE naming the numbers that do not go together (patch does not divide the image, heads the width, ...). err->where
 * has their keys in a configuration, without "mural.": "heads, width". */
MURAL_API mural_status mural_model_config_check(const mural_model_config *config, mural_error *err);

/* Exact number of parameters. */
MURAL_API size_t mural_model_parameters(const mural_model_config *config);

/* Floating-point operations of one image's forward: matrix products and attention, 2 per multiply-add. Training costs three times this. */
MURAL_API double mural_model_forward_flops(const mural_model_config *config);

#ifdef __cplusplus
}
#endif
#endif
