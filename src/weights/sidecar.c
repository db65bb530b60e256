/* Configuration files beside weights: Hugging Face's config.json and preprocessor_config.json, timm's config.json. They tell
 * what tensors cannot, and what they tell twice must agree with the tensors. Other files of these names (the one of a run
 * of ours) are left alone.
 * SPDX-License-Identifier: MIT */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/hjson.h"
#include "weights/weights.h"

#define LONGEST_SIDECAR ((size_t)64 << 20) /* bytes; 21 thousand classes with names take two million */

typedef struct sidecar {
	char path[PATH_MAX];
	mu_hjson *tree;
	const mu_hjson_value *root;
} sidecar;

/* root is NULL when there is no such file. */
static mural_status open_sidecar(sidecar *s, const mural_weights *w, const char *name, mural_error *err)
{
	const char *slash = strrchr(w->facts.path, '/');
	char *text;
	*s = (sidecar){0};
	if (snprintf(s->path, sizeof s->path, "%.*s%s", slash ? (int)(slash - w->facts.path) + 1 : 0, w->facts.path,
	             name) >= (int)sizeof s->path ||
	    access(s->path, F_OK) != 0)
		return MURAL_OK;
	mu_hjson_source source = {.name = s->path, .kind = MURAL_DATA};
	MU_TRY(mu_file_read(s->path, "configuration beside the weights", LONGEST_SIDECAR, MURAL_DATA, &text,
	                    &source.bytes, err));
	source.text = text;
	mural_status status = mu_hjson_read(&s->tree, &source, err);
	free(text);
	if (status == MURAL_OK)
		s->root = mu_hjson_root(s->tree);
	return status;
}

static mural_status bad(const sidecar *s, const mu_hjson_value *value, const char *expected, mural_error *err)
{
	char where[MU_HJSON_WHERE];
	return mu_fail(err, MURAL_DATA, mu_hjson_where(s->tree, value, where), "expected %s", expected);
}

static bool is_null(const mu_hjson_value *value)
{
	return !value || value->kind == MU_HJSON_NULL;
}

static bool is_count(const mu_hjson_value *value)
{
	return value->kind == MU_HJSON_NUMBER && value->number.whole && !value->number.negative &&
	       value->number.magnitude <= MURAL_MAX_SIDE * (uint64_t)1024;
}

/* Leaves *to alone when there is no such key. */
static mural_status take_count(const sidecar *s, const mu_hjson_value *object, const char *key, size_t *to,
                               mural_error *err)
{
	const mu_hjson_value *value = mu_hjson_member(object, key);
	if (is_null(value))
		return MURAL_OK;
	if (!is_count(value))
		return bad(s, value, "a count", err);
	*to = (size_t)value->number.magnitude;
	return MURAL_OK;
}

static mural_status take_number(const sidecar *s, const mu_hjson_value *object, const char *key, double *to,
                                mural_error *err)
{
	const mu_hjson_value *value = mu_hjson_member(object, key);
	if (is_null(value))
		return MURAL_OK;
	if (value->kind != MU_HJSON_NUMBER || !isfinite(value->number.value))
		return bad(s, value, "a number", err);
	*to = value->number.value;
	return MURAL_OK;
}

static mural_status take_flag(const sidecar *s, const mu_hjson_value *object, const char *key, bool *to,
                              mural_error *err)
{
	const mu_hjson_value *value = mu_hjson_member(object, key);
	if (is_null(value))
		return MURAL_OK;
	if (value->kind != MU_HJSON_BOOL)
		return bad(s, value, "true or false", err);
	*to = value->boolean;
	return MURAL_OK;
}

/* A text, or NULL. */
static mural_status take_text(const sidecar *s, const mu_hjson_value *object, const char *key, const char **to,
                              mural_error *err)
{
	const mu_hjson_value *value = mu_hjson_member(object, key);
	*to = NULL;
	if (is_null(value))
		return MURAL_OK;
	if (value->kind != MU_HJSON_STRING)
		return bad(s, value, "a text", err);
	*to = value->text;
	return MURAL_OK;
}

/* One count for both sides, or [height, width]. */
static mural_status take_sides(const sidecar *s, const mu_hjson_value *value, size_t *height, size_t *width,
                               mural_error *err)
{
	if (is_null(value))
		return MURAL_OK;
	bool pair = value->kind == MU_HJSON_ARRAY && value->count == 2;
	const mu_hjson_value *h = pair ? value->first : value, *wide = pair ? value->first->next : value;
	if (!is_count(h) || !is_count(wide))
		return bad(s, value, "a count of pixels, or two", err);
	*height = (size_t)h->number.magnitude;
	*width = (size_t)wide->number.magnitude;
	return MURAL_OK;
}

/* Per channel; one number stands for all. */
static mural_status take_channels(const sidecar *s, const mu_hjson_value *object, const char *key, float *to,
                                  mural_error *err)
{
	const mu_hjson_value *list = mu_hjson_member(object, key);
	size_t n = 0;
	if (is_null(list))
		return MURAL_OK;
	const mu_hjson_value *first = list->kind == MU_HJSON_ARRAY ? list->first : list;
	for (const mu_hjson_value *v = first; v && n < MURAL_MAX_CHANNELS; v = list == first ? NULL : v->next) {
		if (v->kind != MU_HJSON_NUMBER || !isfinite(v->number.value))
			return bad(s, v, "a number per channel", err);
		to[n++] = (float)v->number.value;
	}
	for (size_t c = 1; n == 1 && c < MURAL_MAX_CHANNELS; c++)
		to[c] = to[0];
	return MURAL_OK;
}

/* The tensors tell it, too. */
static mural_status agree(const sidecar *s, const mu_hjson_value *object, const char *key, size_t by_tensors,
                          mural_error *err)
{
	size_t told = by_tensors;
	char expected[80];
	MU_TRY(take_count(s, object, key, &told, err));
	snprintf(expected, sizeof expected, "%zu, as the weights beside it have", by_tensors);
	return told == by_tensors ? MURAL_OK : bad(s, mu_hjson_member(object, key), expected, err);
}

/* ---- Hugging Face. ---- */

static mural_status take_activation(mural_weights *w, const sidecar *s, mural_error *err)
{
	static const char *const tanhs[] = {"gelu_new", "gelu_pytorch_tanh", "gelu_fast", "gelu_python_tanh"};
	const char *name;
	MU_TRY(take_text(s, s->root, "hidden_act", &name, err));
	if (!name || strcmp(name, "gelu") == 0 || strcmp(name, "gelu_python") == 0)
		return MURAL_OK;
	for (size_t i = 0; i < sizeof tanhs / sizeof *tanhs; i++)
		if (strcmp(name, tanhs[i]) == 0) {
			w->facts.model.gelu = MURAL_GELU_TANH;
			return MURAL_OK;
		}
	return bad(s, mu_hjson_member(s->root, "hidden_act"), "gelu or one of its tanh approximations", err);
}

/* id2label has a text per class under its number. LABEL_0 and so on are nobody's names. */
static mural_status take_labels(mural_weights *w, const sidecar *s, mural_error *err)
{
	const mu_hjson_value *labels = mu_hjson_member(s->root, "id2label");
	size_t classes = w->facts.model.classes;
	if (is_null(labels) || labels->count != classes || classes == 0)
		return MURAL_OK;
	const mu_hjson_value *first = mu_hjson_member(labels, "0");
	if (first && first->kind == MU_HJSON_STRING && strcmp(first->text, "LABEL_0") == 0)
		return MURAL_OK;
	for (size_t i = 0; i < classes; i++) {
		char key[24];
		snprintf(key, sizeof key, "%zu", i);
		const mu_hjson_value *name = mu_hjson_member(labels, key);
		if (!name || name->kind != MU_HJSON_STRING)
			return bad(s, labels, "a text for every class", err);
		MU_TRY(mu_class_names_add(&w->class_names, name->text, strlen(name->text), err));
	}
	return MURAL_OK;
}

/* A file that is no project's own: torchvision has none, and people write one by hand where Mural asks for what tensors cannot tell. In
 * Hugging Face's words for it, whoever gave the tensors their names. */
static mural_status take_hints(mural_weights *w, const sidecar *s, mural_error *err)
{
	mural_model_config *m = &w->facts.model;
	MU_TRY(take_sides(s, mu_hjson_member(s->root, "image_size"), &m->image_height, &m->image_width, err));
	MU_TRY(take_count(s, s->root, "num_attention_heads", &m->heads, err));
	if (m->heads)
		snprintf(w->facts.heads_from, sizeof w->facts.heads_from, "config.json");
	return MURAL_OK;
}

static mural_status take_huggingface(mural_weights *w, const sidecar *s, mural_error *err)
{
	mural_model_config *m = &w->facts.model;
	const char *type;
	MU_TRY(take_text(s, s->root, "model_type", &type, err));
	if (!type)
		return take_hints(w, s, err);
	if (strcmp(type, "vit") != 0)
		return bad(s, mu_hjson_member(s->root, "model_type"), "vit: no other model's weights can be read", err);
	MU_TRY(agree(s, s->root, "hidden_size", m->width, err));
	MU_TRY(agree(s, s->root, "num_hidden_layers", m->depth, err));
	MU_TRY(agree(s, s->root, "intermediate_size", m->mlp_width, err));
	MU_TRY(agree(s, s->root, "patch_size", m->patch, err));
	MU_TRY(take_count(s, s->root, "num_attention_heads", &m->heads, err));
	MU_TRY(take_number(s, s->root, "layer_norm_eps", &m->norm_eps, err));
	MU_TRY(take_sides(s, mu_hjson_member(s->root, "image_size"), &m->image_height, &m->image_width, err));
	MU_TRY(take_activation(w, s, err));
	snprintf(w->facts.heads_from, sizeof w->facts.heads_from, "config.json");
	return take_labels(w, s, err);
}

/* Pillow's numbers for its filters. */
static mural_status take_resample(mural_preprocess *p, const sidecar *s, mural_error *err)
{
	size_t resample = 2;
	MU_TRY(take_count(s, s->root, "resample", &resample, err));
	if (resample != 2 && resample != 3)
		return bad(s, mu_hjson_member(s->root, "resample"), "2 (bilinear) or 3 (bicubic)", err);
	p->filter = resample == 3 ? MURAL_FILTER_BICUBIC : MURAL_FILTER_BILINEAR;
	return MURAL_OK;
}

/* A size of both sides squashes; {"shortest_edge": n} keeps the aspect, with a cut behind it. */
static mural_status take_size(mural_preprocess *p, const sidecar *s, mural_error *err)
{
	bool resized = true;
	size_t edge = 0;
	const mu_hjson_value *size = mu_hjson_member(s->root, "size");
	MU_TRY(take_flag(s, s->root, "do_resize", &resized, err));
	p->resize = resized ? MURAL_RESIZE_SQUASH : MURAL_RESIZE_NONE;
	if (!size || size->kind != MU_HJSON_OBJECT)
		return MURAL_OK;
	MU_TRY(take_count(s, size, "shortest_edge", &edge, err));
	if (edge && edge <= MURAL_MAX_SIDE && resized) {
		p->resize = MURAL_RESIZE_BILINEAR;
		p->resize_side = (unsigned)edge;
	}
	return MURAL_OK;
}

/* Pixels times a factor, less mean, over std: brought to pixels in [0, 1], which are pixels times 1/255. */
static mural_status take_norm(mural_preprocess *p, const sidecar *s, mural_error *err)
{
	bool rescaled = true, normalised = true;
	double factor = 1.0 / 255;
	MU_TRY(take_flag(s, s->root, "do_rescale", &rescaled, err));
	MU_TRY(take_flag(s, s->root, "do_normalize", &normalised, err));
	MU_TRY(take_number(s, s->root, "rescale_factor", &factor, err));
	MU_TRY(take_channels(s, s->root, "image_mean", p->mean, err));
	MU_TRY(take_channels(s, s->root, "image_std", p->std, err));
	double scale = (rescaled ? factor : 1) * 255;
	if (!(scale > 0))
		return bad(s, mu_hjson_member(s->root, "rescale_factor"), "a number above 0", err);
	for (size_t c = 0; c < MURAL_MAX_CHANNELS; c++) {
		double mean = normalised ? (double)p->mean[c] : 0, std = normalised ? (double)p->std[c] : 1;
		if (!(std > 0))
			return bad(s, mu_hjson_member(s->root, "image_std"), "numbers above 0", err);
		if (fabs(scale - 1) > 1e-6 || !normalised) {
			p->mean[c] = (float)(mean / scale);
			p->std[c] = (float)(std / scale);
		}
	}
	return MURAL_OK;
}

static mural_status take_preprocessor(mural_weights *w, const sidecar *s, mural_error *err)
{
	mural_preprocess *p = &w->facts.preprocess;
	mu_preprocess_default(p, w->naming, &w->facts.model);
	MU_TRY(take_resample(p, s, err));
	MU_TRY(take_size(p, s, err));
	MU_TRY(take_norm(p, s, err));
	snprintf(p->source, sizeof p->source, "preprocessor_config.json");
	return MURAL_OK;
}

/* ---- timm. ---- */

/* [channels, height, width] */
static mural_status take_input_size(mural_weights *w, const sidecar *s, const mu_hjson_value *cfg, mural_error *err)
{
	const mu_hjson_value *size = mu_hjson_member(cfg, "input_size");
	mural_model_config *m = &w->facts.model;
	if (is_null(size))
		return MURAL_OK;
	if (size->kind != MU_HJSON_ARRAY || size->count != 3 || !is_count(size->first->next) ||
	    !is_count(size->first->next->next))
		return bad(s, size, "[channels, height, width]", err);
	m->image_height = (size_t)size->first->next->number.magnitude;
	m->image_width = (size_t)size->first->next->next->number.magnitude;
	return MURAL_OK;
}

static mural_status take_timm_preprocess(mural_weights *w, const sidecar *s, const mu_hjson_value *cfg,
                                         mural_error *err)
{
	mural_preprocess *p = &w->facts.preprocess;
	const mural_model_config *m = &w->facts.model;
	const char *filter, *mode;
	double crop = 0.9;
	mu_preprocess_default(p, w->naming, m);
	MU_TRY(take_text(s, cfg, "interpolation", &filter, err));
	MU_TRY(take_text(s, cfg, "crop_mode", &mode, err));
	MU_TRY(take_number(s, cfg, "crop_pct", &crop, err));
	MU_TRY(take_channels(s, cfg, "mean", p->mean, err));
	MU_TRY(take_channels(s, cfg, "std", p->std, err));
	if (filter && strcmp(filter, "bicubic") != 0 && strcmp(filter, "bilinear") != 0)
		return bad(s, mu_hjson_member(cfg, "interpolation"), "bilinear or bicubic", err);
	if (!(crop > 0 && crop <= 1))
		return bad(s, mu_hjson_member(cfg, "crop_pct"), "a number above 0, at most 1", err);
	bool squash = mode && strcmp(mode, "squash") == 0;
	if (mode && strcmp(mode, "center") != 0 && !(squash && crop == 1))
		return bad(s, mu_hjson_member(cfg, "crop_mode"), "center, or squash with crop_pct 1", err);
	for (size_t c = 0; c < m->channels && c < MURAL_MAX_CHANNELS; c++)
		if (!(p->std[c] > 0))
			return bad(s, mu_hjson_member(cfg, "std"), "numbers above 0", err);
	size_t side = m->image_height > m->image_width ? m->image_height : m->image_width;
	side = side ? side : w->grid_height * m->patch;
	p->resize = squash ? MURAL_RESIZE_SQUASH : MURAL_RESIZE_BILINEAR;
	p->filter = filter && strcmp(filter, "bilinear") == 0 ? MURAL_FILTER_BILINEAR : MURAL_FILTER_BICUBIC;
	double whole = floor((double)side / crop);
	p->resize_side = squash || crop == 1 || whole > MURAL_MAX_SIDE ? 0 : (unsigned)whole;
	snprintf(p->source, sizeof p->source, "pretrained_cfg in config.json");
	return MURAL_OK;
}

/* label_names has a short name per class, label_descriptions words for some of these. */
static mural_status take_timm_labels(mural_weights *w, const sidecar *s, const mu_hjson_value *cfg, mural_error *err)
{
	const mu_hjson_value *names = mu_hjson_member(s->root, "label_names");
	const mu_hjson_value *words = mu_hjson_member(s->root, "label_descriptions");
	if (is_null(names))
		names = mu_hjson_member(cfg, "label_names");
	if (is_null(words))
		words = mu_hjson_member(cfg, "label_descriptions");
	if (is_null(names) || names->kind != MU_HJSON_ARRAY || names->count != w->facts.model.classes)
		return MURAL_OK;
	for (const mu_hjson_value *v = names->first; v; v = v->next) {
		if (v->kind != MU_HJSON_STRING)
			return bad(s, names, "a text for every class", err);
		const mu_hjson_value *more = mu_hjson_member(words, v->text);
		const char *name = more && more->kind == MU_HJSON_STRING ? more->text : v->text;
		MU_TRY(mu_class_names_add(&w->class_names, name, strlen(name), err));
	}
	return MURAL_OK;
}

static mural_status take_timm_arguments(mural_weights *w, const sidecar *s, const mu_hjson_value *arguments,
                                        mural_error *err)
{
	mural_model_config *m = &w->facts.model;
	const char *activation;
	MU_TRY(take_sides(s, mu_hjson_member(arguments, "img_size"), &m->image_height, &m->image_width, err));
	MU_TRY(take_count(s, arguments, "num_heads", &m->heads, err));
	MU_TRY(take_text(s, arguments, "act_layer", &activation, err));
	if (activation && strcmp(activation, "gelu") != 0 && strcmp(activation, "gelu_tanh") != 0)
		return bad(s, mu_hjson_member(arguments, "act_layer"), "gelu or gelu_tanh", err);
	if (activation)
		m->gelu = strcmp(activation, "gelu_tanh") == 0 ? MURAL_GELU_TANH : MURAL_GELU_ERF;
	if (m->heads)
		snprintf(w->facts.heads_from, sizeof w->facts.heads_from, "config.json");
	return MURAL_OK;
}

static mural_status take_timm(mural_weights *w, const sidecar *s, mural_error *err)
{
	mural_model_config *m = &w->facts.model;
	const mu_hjson_value *cfg = mu_hjson_member(s->root, "pretrained_cfg");
	const mu_hjson_value *arguments = mu_hjson_member(s->root, "model_args");
	const char *architecture, *pool;
	MU_TRY(take_text(s, s->root, "architecture", &architecture, err));
	if (!architecture || is_null(cfg))
		return take_hints(w, s, err);
	MU_TRY(take_text(s, s->root, "global_pool", &pool, err));
	if (pool && strcmp(pool, m->pool == MURAL_POOL_MEAN ? "avg" : "token") != 0 && strcmp(pool, "") != 0)
		return bad(s, mu_hjson_member(s->root, "global_pool"),
		           m->pool == MURAL_POOL_MEAN ? "avg, as the weights' fc_norm says"
		                                      : "token: Mural's mean pooling is the kind with an fc_norm",
		           err);
	MU_TRY(take_input_size(w, s, cfg, err));
	if (!is_null(arguments))
		MU_TRY(take_timm_arguments(w, s, arguments, err));
	MU_TRY(take_timm_preprocess(w, s, cfg, err));
	return take_timm_labels(w, s, cfg, err);
}

static mural_status read_one(mural_weights *w, const char *name,
                             mural_status (*take)(mural_weights *, const sidecar *, mural_error *), mural_error *err)
{
	sidecar s;
	mural_status status = open_sidecar(&s, w, name, err);
	if (status == MURAL_OK && s.root)
		status = take(w, &s, err);
	mu_hjson_free(s.tree);
	return status;
}

mural_status mu_weights_read_sidecars(mural_weights *w, mural_error *err)
{
	const char *note = mu_weights_file_note(w->file, MU_WEIGHTS_NOTE_KEY);
	if (note)
		return mu_weights_read_description(w, note, err);
	if (w->facts.naming == MURAL_NAMING_TIMM)
		return read_one(w, "config.json", take_timm, err);
	if (w->facts.naming == MURAL_NAMING_JAX)
		return MURAL_OK; /* shapes tell */
	if (w->facts.naming == MURAL_NAMING_TORCHVISION)
		return read_one(w, "config.json", take_hints, err);
	MU_TRY(read_one(w, "config.json", take_huggingface, err));
	return read_one(w, "preprocessor_config.json", take_preprocessor, err);
}
