/* Configuration files for Hugging Face and timm. SPDX-License-Identifier: MIT */
#include <limits.h>
#include <string.h>

#include "base/files.h"
#include "base/json.h"
#include "weights/export.h"

static void write_counts(mu_json *json, const char *key, const size_t *values, size_t n)
{
	mu_json_array_begin(json, key);
	for (size_t i = 0; i < n; i++)
		mu_json_unsigned(json, NULL, values[i]);
	mu_json_array_end(json);
}

/* As short as they were meant: a float's digits, not its double's. */
static void write_floats(mu_json *json, const char *key, const float *values, size_t n)
{
	mu_json_array_begin(json, key);
	for (size_t i = 0; i < n; i++) {
		char text[32];
		double value = (double)values[i];
		for (int digits = 6; digits < 10; digits++) {
			snprintf(text, sizeof text, "%.*g", digits, (double)values[i]);
			sscanf(text, "%lf", &value);
			if ((float)value == values[i])
				break;
		}
		mu_json_number(json, NULL, value);
	}
	mu_json_array_end(json);
}

/* One count when both sides are alike. */
static void write_sides(mu_json *json, const char *key, size_t height, size_t width)
{
	if (height == width)
		mu_json_unsigned(json, key, height);
	else
		write_counts(json, key, (const size_t[]){height, width}, 2);
}

static const char *label(const mural_weights *w, size_t i, char text[32])
{
	const char *name = mural_weights_class_name(w, i);
	snprintf(text, 32, "LABEL_%zu", i);
	return name ? name : text;
}

static void write_huggingface(mu_json *json, const mural_weights *w)
{
	const mural_model_config *m = &w->facts.model;
	char text[32];
	mu_json_object_begin(json, NULL);
	mu_json_array_begin(json, "architectures");
	mu_json_string(json, NULL, m->classes ? "ViTForImageClassification" : "ViTModel");
	mu_json_array_end(json);
	mu_json_string(json, "model_type", "vit");
	mu_json_unsigned(json, "hidden_size", m->width);
	mu_json_unsigned(json, "num_hidden_layers", m->depth);
	mu_json_unsigned(json, "num_attention_heads", m->heads);
	mu_json_unsigned(json, "intermediate_size", m->mlp_width);
	mu_json_string(json, "hidden_act", m->gelu == MURAL_GELU_TANH ? "gelu_pytorch_tanh" : "gelu");
	mu_json_number(json, "layer_norm_eps", m->norm_eps);
	write_sides(json, "image_size", m->image_height, m->image_width);
	mu_json_unsigned(json, "patch_size", m->patch);
	mu_json_unsigned(json, "num_channels", m->channels);
	mu_json_bool(json, "qkv_bias", true);
	mu_json_number(json, "hidden_dropout_prob", 0);
	mu_json_number(json, "attention_probs_dropout_prob", 0);
	mu_json_number(json, "initializer_range", 0.02);
	mu_json_string(json, "torch_dtype", "float32");
	if (m->classes) {
		mu_json_object_begin(json, "id2label");
		for (size_t i = 0; i < m->classes; i++) {
			char key[24];
			snprintf(key, sizeof key, "%zu", i);
			mu_json_string(json, key, label(w, i, text));
		}
		mu_json_object_end(json);
		mu_json_object_begin(json, "label2id");
		for (size_t i = 0; i < m->classes; i++)
			mu_json_unsigned(json, label(w, i, text), i);
		mu_json_object_end(json);
	}
	mu_json_object_end(json);
}

static void write_hw(mu_json *json, const char *key, size_t height, size_t width)
{
	mu_json_object_begin(json, key);
	mu_json_unsigned(json, "height", height);
	mu_json_unsigned(json, "width", width);
	mu_json_object_end(json);
}

/* A short side and a cut belong to another of its image processors, which knows shortest_edge. */
static void write_preprocessor(mu_json *json, const mural_weights *w)
{
	const mural_model_config *m = &w->facts.model;
	const mural_preprocess *p = &w->facts.preprocess;
	size_t least = m->image_height < m->image_width ? m->image_height : m->image_width;
	bool cut = p->resize == MURAL_RESIZE_BILINEAR;
	mu_json_object_begin(json, NULL);
	mu_json_string(json, "image_processor_type", cut ? "CLIPImageProcessor" : "ViTImageProcessor");
	mu_json_bool(json, "do_resize", p->resize != MURAL_RESIZE_NONE);
	if (cut) {
		mu_json_object_begin(json, "size");
		mu_json_unsigned(json, "shortest_edge", p->resize_side ? p->resize_side : least);
		mu_json_object_end(json);
		mu_json_bool(json, "do_center_crop", true);
		write_hw(json, "crop_size", m->image_height, m->image_width);
		mu_json_bool(json, "do_convert_rgb", true);
	} else {
		write_hw(json, "size", m->image_height, m->image_width);
	}
	mu_json_unsigned(json, "resample", p->filter == MURAL_FILTER_BICUBIC ? 3 : 2);
	mu_json_bool(json, "do_rescale", true);
	mu_json_number(json, "rescale_factor", 1.0 / 255);
	mu_json_bool(json, "do_normalize", true);
	write_floats(json, "image_mean", p->mean, m->channels);
	write_floats(json, "image_std", p->std, m->channels);
	mu_json_object_end(json);
}

/* ---- timm. ---- */

/* int(width * ratio) must give the MLP's width back. */
static double mlp_ratio(const mural_model_config *m)
{
	double ratio = (double)m->mlp_width / (double)m->width;
	return (size_t)((double)m->width * ratio) == m->mlp_width ? ratio
	                                                          : ((double)m->mlp_width + 0.5) / (double)m->width;
}

/* One architecture of timm's with everything said in its arguments: not every size has a name there. */
static void write_model_args(mu_json *json, const mural_model_config *m)
{
	mu_json_object_begin(json, "model_args");
	write_sides(json, "img_size", m->image_height, m->image_width);
	mu_json_unsigned(json, "patch_size", m->patch);
	mu_json_unsigned(json, "in_chans", m->channels);
	mu_json_unsigned(json, "embed_dim", m->width);
	mu_json_unsigned(json, "depth", m->depth);
	mu_json_unsigned(json, "num_heads", m->heads);
	mu_json_number(json, "mlp_ratio", mlp_ratio(m));
	mu_json_bool(json, "class_token", m->class_token);
	mu_json_string(json, "global_pool", m->pool == MURAL_POOL_MEAN ? "avg" : "token");
	if (m->gelu == MURAL_GELU_TANH)
		mu_json_string(json, "act_layer", "gelu_tanh");
	mu_json_object_end(json);
}

static void write_pretrained_cfg(mu_json *json, const mural_weights *w)
{
	const mural_model_config *m = &w->facts.model;
	const mural_preprocess *p = &w->facts.preprocess;
	size_t most = m->image_height > m->image_width ? m->image_height : m->image_width;
	mu_json_object_begin(json, "pretrained_cfg");
	write_counts(json, "input_size", (const size_t[]){m->channels, m->image_height, m->image_width}, 3);
	mu_json_bool(json, "fixed_input_size", true);
	mu_json_string(json, "interpolation", p->filter == MURAL_FILTER_BICUBIC ? "bicubic" : "bilinear");
	mu_json_number(json, "crop_pct", p->resize_side ? (double)most / (double)p->resize_side : 1);
	mu_json_string(json, "crop_mode", p->resize == MURAL_RESIZE_SQUASH ? "squash" : "center");
	write_floats(json, "mean", p->mean, m->channels);
	write_floats(json, "std", p->std, m->channels);
	mu_json_unsigned(json, "num_classes", m->classes);
	mu_json_string(json, "pool_size", NULL);
	mu_json_string(json, "first_conv", "patch_embed.proj");
	mu_json_string(json, "classifier", "head");
	mu_json_object_end(json);
}

static void write_timm(mu_json *json, const mural_weights *w)
{
	const mural_model_config *m = &w->facts.model;
	mu_json_object_begin(json, NULL);
	mu_json_string(json, "architecture", "vit_base_patch16_224");
	mu_json_unsigned(json, "num_classes", m->classes);
	mu_json_unsigned(json, "num_features", m->width);
	mu_json_string(json, "global_pool", m->pool == MURAL_POOL_MEAN ? "avg" : "token");
	if (w->class_names.n) {
		mu_json_array_begin(json, "label_names");
		for (size_t i = 0; i < w->class_names.n; i++)
			mu_json_string(json, NULL, w->class_names.names[i]);
		mu_json_array_end(json);
	}
	write_model_args(json, m);
	write_pretrained_cfg(json, w);
	mu_json_object_end(json);
}

static mural_status write_one(const mural_weights *w, const char *folder, const char *name,
                              void (*write)(mu_json *, const mural_weights *), mural_error *err)
{
	char path[PATH_MAX];
	mu_file file = {0};
	mu_json json;
	if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
		return mu_fail(err, MURAL_USAGE, folder, "the path is too long");
	MU_TRY(mu_file_begin(&file, path, err));
	mu_json_init(&json, file.out, MU_JSON_PRETTY);
	write(&json, w);
	if (!mu_json_finished(&json) && !ferror(file.out)) {
		mu_file_abandon(&file);
		return mu_bug(err, "a configuration was not written in order");
	}
	return mu_file_commit(&file, err);
}

mural_status mu_export_configuration(const mural_weights *w, mural_naming naming, const char *folder, mural_error *err)
{
	if (naming == MURAL_NAMING_TIMM)
		return write_one(w, folder, "config.json", write_timm, err);
	if (naming != MURAL_NAMING_HUGGINGFACE)
		return MURAL_OK;
	MU_TRY(write_one(w, folder, "config.json", write_huggingface, err));
	return write_one(w, folder, "preprocessor_config.json", write_preprocessor, err);
}
