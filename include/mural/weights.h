/* Weights of Vision Transformers made elsewhere: looked at, loaded, converted.
 *
 * Read are safetensors (one file, or several with an index), PyTorch's .pth and .bin files (a ZIP of a pickle, of which nothing
 * is ever executed) and JAX's .npz, under the names of torchvision, timm, Hugging Face (both generations), and Google's JAX
 * repositories. What the model looks like is told from names and shapes, and from a config.json beside them.
 *
 *     mural_weights *weights;
 *     if (mural_weights_open(&weights, "google-vit/model.safetensors", &err) == MURAL_OK) {
 *             const mural_weights_facts *facts = mural_weights_get_facts(weights);
 *             printf("%s: %zu classes\n", facts->origin, facts->model.classes);
 *     }
 *     mural_weights_free(weights);
 *
 * docs/weights.md has the formats and what is taken from where. SPDX-License-Identifier: MIT */
#ifndef MURAL_WEIGHTS_H
#define MURAL_WEIGHTS_H

#include "mural/data.h"
#include "mural/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum mural_naming {
	MURAL_NAMING_TORCHVISION,
	MURAL_NAMING_TIMM,
	MURAL_NAMING_HUGGINGFACE,
	MURAL_NAMING_JAX /* read only */
} mural_naming;

/* What happens to an image before it reaches the model. */
typedef struct mural_preprocess {
	mural_resize resize;
	mural_filter filter;
	unsigned resize_side; /* MURAL_RESIZE_BILINEAR: short side before the cut, 0: just fits */
	float mean[MURAL_MAX_CHANNELS], std[MURAL_MAX_CHANNELS]; /* of pixels in [0, 1] */
	char source[96]; /* where this comes from: "preprocessor_config.json" */
} mural_preprocess;

typedef struct mural_weights_facts {
	char path[1024]; /* of the file that was found */
	char format[64]; /* "safetensors", "safetensors in 3 files", "PyTorch file", "NumPy npz" */
	char origin[96]; /* "timm", "Hugging Face ViTForImageClassification (names of transformers 5)", ... */
	mural_naming naming;
	mural_model_config model; /* classes 0: the weights have no classifier */
	char heads_from[64]; /* how the number of heads is known: no shape tells it where q, k and v are fused */
	char types[64]; /* of the elements: "F32", "F16, F32" */
	uint64_t tensors, parameters; /* as stored */
	mural_preprocess preprocess;
	size_t class_names; /* 0, or model.classes of them */
} mural_weights_facts;

typedef struct mural_weights mural_weights;

/* path: a file, or a folder in which weights.safetensors, model.safetensors, model.safetensors.index.json or pytorch_model.bin
 * is looked for. MURAL_DATA when it is no such file, or not a Vision Transformer's. On failure *weights is NULL. */
MURAL_API mural_status mural_weights_open(mural_weights **weights, const char *path, mural_error *err);
MURAL_API void mural_weights_free(mural_weights *weights);
/* Lives as long as the weights. */
MURAL_API const mural_weights_facts *mural_weights_get_facts(const mural_weights *weights);
/* NULL when there are no names or no such class. Lives as long as the weights. */
MURAL_API const char *mural_weights_class_name(const mural_weights *weights, size_t label);
/* Names in the file that the model has no place for; NULL behind the last. */
MURAL_API const char *mural_weights_unmatched(const mural_weights *weights, size_t i);

/* The facts as JSON, whole or not at all. */
MURAL_API mural_status mural_weights_write_json(const mural_weights *weights, const char *path, mural_error *err);

typedef struct mural_weights_conversion {
	const char *from, *to; /* paths. `to`: NAME.safetensors, NAME.pth, or a folder that does not exist yet */
	mural_naming naming; /* not MURAL_NAMING_JAX */
	bool ignore_unmatched; /* names that the model has no place for are left out; otherwise they are MURAL_DATA */
} mural_weights_conversion;

#define MURAL_WEIGHTS_NOTES 2048 /* bytes for what has to be said about weights, a line each */

/* Writes the weights under other names, whole or not at all. Into a folder: model.safetensors with the configuration files that
 * Hugging Face (config.json, preprocessor_config.json) and timm (config.json) expect. What the naming's library
 * cannot express is MURAL_USAGE; what it computes a little differently is told in notes. */
MURAL_API mural_status mural_weights_convert(const mural_weights_conversion *conversion,
                                             char notes[MURAL_WEIGHTS_NOTES], mural_error *err);

#ifdef __cplusplus
}
#endif
#endif
