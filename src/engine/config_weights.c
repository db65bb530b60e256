/* What weights tell about the model and its images, below everything that a person says: with --init-weights or `eval --weights`
 * nobody has to repeat what the file knows.
 *
 * Rows are taken in groups: what belongs together (the model's shape; how images are resized; mean and std) comes from one
 * place. The file is opened only when a row is left to it, so a run's config.json, which says all, needs no weights.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "engine/config_build.h"
#include "engine/weights.h"

static const char *const shape_keys[] = {"mural.patch", "mural.depth", "mural.width", "mural.heads", "mural.mlp_width"};
static const char *const other_keys[] = {"mural.image_size",  "mural.channels", "mural.classes", "mural.pool",
                                         "mural.class_token", "mural.norm_eps", "mural.gelu"};
static const char *const resize_keys[] = {"mural.data.resize", "mural.data.interpolation", "mural.data.resize_side"};
static const char *const norm_keys[] = {"mural.data.mean", "mural.data.std"};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static bool said(const mu_config_build *b, const char *key)
{
	const mu_config_given *given = &b->given[mu_config_find(key)];
	return given->option || given->node;
}

static bool any_said(const mu_config_build *b, const char *const *keys, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (said(b, keys[i]))
			return true;
	return false;
}

static bool all_said(const mu_config_build *b, const char *const *keys, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!said(b, keys[i]))
			return false;
	return true;
}

static void *place_in(mural_config *config, size_t row)
{
	return (char *)config + mu_config_rows[row].offset;
}

static void tell_origin(mu_config_build *b, const char *key, const char *path)
{
	mu_config_given *given = &b->given[mu_config_find(key)];
	given->from = MU_FROM_DERIVED;
	snprintf(given->derived, sizeof given->derived, "weights %.180s", path);
}

/* The row's value out of `from`, which is laid out like the configuration. */
static void take(mu_config_build *b, const char *key, mural_config *from, const char *path)
{
	size_t row = mu_config_find(key);
	memcpy(place_in(&b->values.config, row), place_in(from, row), mu_config_rows[row].size);
	tell_origin(b, key, path);
}

static void take_group(mu_config_build *b, const char *const *keys, size_t n, mural_config *from, const char *path)
{
	for (size_t i = 0; i < n; i++)
		take(b, keys[i], from, path);
}

/* What the file would have the configuration be. */
static mural_config wanted_by(const mural_weights_facts *f, const mural_config *now)
{
	mural_config c = *now;
	c.model = f->model;
	c.data.resize = f->preprocess.resize;
	c.data.filter = f->preprocess.filter;
	c.data.resize_side = f->preprocess.resize_side;
	for (size_t i = 0; i < f->model.channels; i++) {
		c.data.mean[i] = f->preprocess.mean[i];
		c.data.std[i] = f->preprocess.std[i];
	}
	return c;
}

static void take_rows(mu_config_build *b, const mural_weights_facts *f, const char *path)
{
	mural_model_config *model = &b->values.config.model;
	mural_config from = wanted_by(f, &b->values.config);
	bool own_size = said(b, "mural.image_size");
	if (!said(b, "mural.model") && !any_said(b, shape_keys, COUNT(shape_keys))) {
		take_group(b, shape_keys, COUNT(shape_keys), &from, path);
		memcpy(model->preset, f->model.preset, sizeof model->preset);
		snprintf(b->values.model, sizeof b->values.model, "%s", model->preset);
		tell_origin(b, "mural.model", path);
	}
	for (size_t i = 0; i < COUNT(other_keys); i++) {
		bool is_classes = strcmp(other_keys[i], "mural.classes") == 0;
		if (is_classes && f->model.classes == 0)
			continue;
		if (!said(b, other_keys[i]))
			take(b, other_keys[i], &from, path);
	}
	if (!any_said(b, norm_keys, COUNT(norm_keys))) {
		take_group(b, norm_keys, COUNT(norm_keys), &from, path);
		b->values.config.data.normalise_given = true;
	}
	/* A training sees its images as its own settings say: enlarging 32 pixels to 256 and cutting 224 out of them is for
	 * evaluations. A side before the cut is for the weights' own image size. */
	if (b->sources->evaluation && !any_said(b, resize_keys, COUNT(resize_keys))) {
		if (own_size)
			from.data.resize_side = 0;
		take_group(b, resize_keys, COUNT(resize_keys), &from, path);
	}
}

/* Is there a row that only the weights could fill? */
static bool is_needed(const mu_config_build *b)
{
	return !(said(b, "mural.model") || all_said(b, shape_keys, COUNT(shape_keys))) ||
	       !all_said(b, other_keys, COUNT(other_keys)) || !any_said(b, norm_keys, COUNT(norm_keys)) ||
	       (b->sources->evaluation && !any_said(b, resize_keys, COUNT(resize_keys)));
}

mural_status mu_config_take_weights(mu_config_build *b)
{
	char found[MU_WEIGHTS_PATH];
	mural_weights *weights;
	const mu_config_given *given = &b->given[mu_config_find("mural.init_weights")];
	const char *path = b->sources->weights;
	if (!path && given->option)
		path = given->argument.item[0].text;
	if (!path && given->node)
		path = given->file.item[0].text;
	if (!path || !path[0] || !is_needed(b))
		return MURAL_OK;
	MU_TRY(mu_weights_locate(found, path, b->err));
	MU_TRY(mural_weights_open(&weights, found, b->err));
	take_rows(b, mural_weights_get_facts(weights), path);
	mural_weights_free(weights);
	return MURAL_OK;
}
