/* Mural's own note in a safetensors file: what the tensors do not tell, as JSON.
 *
 *     {"version": 1, "image_size": [224, 224], "heads": 12, "norm_eps": 1e-06, "gelu": "erf",
 *      "resize": "bilinear", "interpolation": "bilinear", "resize_side": 0, "mean": [...], "std": [...],
 *      "class_names": ["airplane", ...]}
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/hjson.h"
#include "base/json.h"
#include "weights/weights.h"

static const char *const resizes[] = {"none", "bilinear", "squash"};
static const char *const filters[] = {"bilinear", "bicubic"};

static void write_floats(mu_json *json, const char *key, const float *values, size_t n)
{
	mu_json_array_begin(json, key);
	for (size_t i = 0; i < n; i++)
		mu_json_number(json, NULL, (double)values[i]);
	mu_json_array_end(json);
}

char *mu_weights_describe(const mural_model_config *m, const mural_preprocess *p, const char *const *class_names)
{
	char *text = NULL;
	size_t bytes;
	mu_json json;
	FILE *memory = open_memstream(&text, &bytes);
	if (!memory)
		return NULL;
	mu_json_init(&json, memory, MU_JSON_COMPACT);
	mu_json_object_begin(&json, NULL);
	mu_json_unsigned(&json, "version", 1);
	mu_json_array_begin(&json, "image_size");
	mu_json_unsigned(&json, NULL, m->image_height);
	mu_json_unsigned(&json, NULL, m->image_width);
	mu_json_array_end(&json);
	mu_json_unsigned(&json, "heads", m->heads);
	mu_json_number(&json, "norm_eps", m->norm_eps);
	mu_json_string(&json, "gelu", m->gelu == MURAL_GELU_TANH ? "tanh" : "erf");
	mu_json_string(&json, "resize", resizes[p->resize]);
	mu_json_string(&json, "interpolation", filters[p->filter]);
	mu_json_unsigned(&json, "resize_side", p->resize_side);
	write_floats(&json, "mean", p->mean, m->channels);
	write_floats(&json, "std", p->std, m->channels);
	if (class_names) {
		mu_json_array_begin(&json, "class_names");
		for (size_t i = 0; i < m->classes; i++)
			mu_json_string(&json, NULL, class_names[i]);
		mu_json_array_end(&json);
	}
	mu_json_object_end(&json);
	bool finished = mu_json_finished(&json);
	if (fclose(memory) != 0 || !finished) {
		free(text);
		return NULL;
	}
	return text;
}

/* ---- Reading. ---- */

static mural_status bad(const mural_weights *w, const char *key, mural_error *err)
{
	return mu_fail(err, MURAL_DATA, w->facts.path, "Mural's note in the metadata has no fitting '%s'", key);
}

static bool take_count(const mu_hjson_value *value, size_t most, size_t *to)
{
	if (!value || value->kind != MU_HJSON_NUMBER || !value->number.whole || value->number.negative ||
	    value->number.magnitude > most)
		return false;
	*to = (size_t)value->number.magnitude;
	return true;
}

static bool take_choice(const mu_hjson_value *value, const char *const *choices, size_t n, size_t *to)
{
	for (size_t i = 0; value && value->kind == MU_HJSON_STRING && i < n; i++)
		if (strcmp(value->text, choices[i]) == 0) {
			*to = i;
			return true;
		}
	return false;
}

static bool take_floats(const mu_hjson_value *values, float *to)
{
	size_t n = 0;
	if (!values || values->kind != MU_HJSON_ARRAY)
		return false;
	for (const mu_hjson_value *v = values->first; v; v = v->next) {
		if (v->kind != MU_HJSON_NUMBER || n == MURAL_MAX_CHANNELS)
			return false;
		to[n++] = (float)v->number.value;
	}
	return true;
}

static mural_status take_names(mural_weights *w, const mu_hjson_value *names, mural_error *err)
{
	if (!names)
		return MURAL_OK;
	if (names->kind != MU_HJSON_ARRAY || names->count != w->facts.model.classes)
		return bad(w, "class_names", err);
	for (const mu_hjson_value *v = names->first; v; v = v->next) {
		if (v->kind != MU_HJSON_STRING)
			return bad(w, "class_names", err);
		MU_TRY(mu_class_names_add(&w->class_names, v->text, strlen(v->text), err));
	}
	return MURAL_OK;
}

static mural_status take_all(mural_weights *w, const mu_hjson_value *root, mural_error *err)
{
	static const char *const gelus[] = {"erf", "tanh"};
	mural_model_config *m = &w->facts.model;
	mural_preprocess *p = &w->facts.preprocess;
	size_t version, gelu, resize, filter, side;
	const mu_hjson_value *size = mu_hjson_member(root, "image_size"), *eps = mu_hjson_member(root, "norm_eps");
	if (!take_count(mu_hjson_member(root, "version"), 1, &version) || version != 1)
		return bad(w, "version", err);
	if (!size || size->kind != MU_HJSON_ARRAY || size->count != 2 ||
	    !take_count(size->first, MURAL_MAX_SIDE, &m->image_height) ||
	    !take_count(size->first->next, MURAL_MAX_SIDE, &m->image_width))
		return bad(w, "image_size", err);
	if (!take_count(mu_hjson_member(root, "heads"), m->width, &m->heads))
		return bad(w, "heads", err);
	if (!eps || eps->kind != MU_HJSON_NUMBER)
		return bad(w, "norm_eps", err);
	m->norm_eps = eps->number.value;
	if (!take_choice(mu_hjson_member(root, "gelu"), gelus, 2, &gelu))
		return bad(w, "gelu", err);
	m->gelu = (mural_gelu)gelu;
	if (!take_choice(mu_hjson_member(root, "resize"), resizes, 3, &resize))
		return bad(w, "resize", err);
	if (!take_choice(mu_hjson_member(root, "interpolation"), filters, 2, &filter))
		return bad(w, "interpolation", err);
	if (!take_count(mu_hjson_member(root, "resize_side"), MURAL_MAX_SIDE, &side))
		return bad(w, "resize_side", err);
	if (!take_floats(mu_hjson_member(root, "mean"), p->mean))
		return bad(w, "mean", err);
	if (!take_floats(mu_hjson_member(root, "std"), p->std))
		return bad(w, "std", err);
	p->resize = (mural_resize)resize;
	p->filter = (mural_filter)filter;
	p->resize_side = (unsigned)side;
	snprintf(p->source, sizeof p->source, "Mural's training");
	snprintf(w->facts.heads_from, sizeof w->facts.heads_from, "Mural's note");
	snprintf(w->facts.origin, sizeof w->facts.origin, "Mural (torchvision's names)");
	return take_names(w, mu_hjson_member(root, "class_names"), err);
}

mural_status mu_weights_read_description(mural_weights *w, const char *text, mural_error *err)
{
	mu_hjson *tree;
	mu_hjson_source source = {
	        .name = w->facts.path, .text = text, .bytes = strlen(text), .strict = true, .kind = MURAL_DATA};
	MU_TRY(mu_hjson_read(&tree, &source, err));
	mural_status status = take_all(w, mu_hjson_root(tree), err);
	mu_hjson_free(tree);
	return status;
}
