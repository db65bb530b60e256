/* What weights are, as JSON. SPDX-License-Identifier: MIT */
#include "base/files.h"
#include "base/json.h"
#include "weights/weights.h"

static void write_floats(mu_json *json, const char *key, const float *values, size_t n)
{
	mu_json_array_begin(json, key);
	for (size_t i = 0; i < n; i++)
		mu_json_number(json, NULL, (double)values[i]);
	mu_json_array_end(json);
}

static void write_model(mu_json *json, const mural_model_config *m)
{
	mu_json_object_begin(json, "model");
	mu_json_string(json, "preset", m->preset);
	mu_json_array_begin(json, "image_size");
	mu_json_unsigned(json, NULL, m->image_height);
	mu_json_unsigned(json, NULL, m->image_width);
	mu_json_array_end(json);
	mu_json_unsigned(json, "channels", m->channels);
	mu_json_unsigned(json, "patch", m->patch);
	mu_json_unsigned(json, "depth", m->depth);
	mu_json_unsigned(json, "width", m->width);
	mu_json_unsigned(json, "heads", m->heads);
	mu_json_unsigned(json, "mlp_width", m->mlp_width);
	mu_json_unsigned(json, "classes", m->classes);
	mu_json_string(json, "pool", m->pool == MURAL_POOL_MEAN ? "mean" : "token");
	mu_json_bool(json, "class_token", m->class_token);
	mu_json_number(json, "norm_eps", m->norm_eps);
	mu_json_string(json, "gelu", m->gelu == MURAL_GELU_TANH ? "tanh" : "erf");
	mu_json_object_end(json);
}

static void write_preprocess(mu_json *json, const mural_preprocess *p, size_t channels)
{
	static const char *const resizes[] = {"none", "bilinear", "squash"};
	mu_json_object_begin(json, "preprocess");
	mu_json_string(json, "source", p->source);
	mu_json_string(json, "resize", resizes[p->resize]);
	mu_json_string(json, "interpolation", p->filter == MURAL_FILTER_BICUBIC ? "bicubic" : "bilinear");
	mu_json_unsigned(json, "resize_side", p->resize_side);
	write_floats(json, "mean", p->mean, channels);
	write_floats(json, "std", p->std, channels);
	mu_json_object_end(json);
}

static void write_names(mu_json *json, const char *key, const char *const *names)
{
	mu_json_array_begin(json, key);
	for (size_t i = 0; names[i]; i++)
		mu_json_string(json, NULL, names[i]);
	mu_json_array_end(json);
}

static void write_facts(mu_json *json, const mural_weights *w)
{
	const mural_weights_facts *f = &w->facts;
	mu_json_object_begin(json, NULL);
	mu_json_string(json, "path", f->path);
	mu_json_string(json, "format", f->format);
	mu_json_string(json, "origin", f->origin);
	mu_json_unsigned(json, "tensors", f->tensors);
	mu_json_unsigned(json, "parameters", f->parameters);
	mu_json_string(json, "types", f->types);
	write_model(json, &f->model);
	mu_json_string(json, "heads_from", f->heads_from);
	write_preprocess(json, &f->preprocess, f->model.channels);
	mu_json_array_begin(json, "class_names");
	for (size_t i = 0; i < f->class_names; i++)
		mu_json_string(json, NULL, mural_weights_class_name(w, i));
	mu_json_array_end(json);
	write_names(json, "unmatched", w->unmatched);
	write_names(json, "set_aside", w->set_aside);
	mu_json_object_end(json);
}

mural_status mural_weights_write_json(const mural_weights *w, const char *path, mural_error *err)
{
	mu_file file = {0};
	mu_json json;
	MU_TRY(mu_file_begin(&file, path, err));
	mu_json_init(&json, file.out, MU_JSON_PRETTY);
	write_facts(&json, w);
	if (!mu_json_finished(&json) && !ferror(file.out)) {
		mu_file_abandon(&file);
		return mu_bug(err, "the facts of weights were not written in order");
	}
	return mu_file_commit(&file, err);
}
