/* Whose weights are these, and what model are they for?
 *
 * A naming is known by its name for the patch weight. Everything else follows from shapes, but for four things: the number of
 * heads (where q, k and v are fused), the sides of a grid that is no square, eps and GELU. Those come from configuration
 * files or Mural's own note (sidecar.c), and otherwise from what the origin's models are like.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "weights/weights.h"

/* In the order in which they are tried: a prefix goes in front of all names but Hugging Face's head. */
static const struct signature {
	mu_naming naming;
	mural_naming family;
	const char *prefix, *patch,
	        *also; /* `also`: a name that tells generations apart, behind the prefix; may be NULL */
	const char *words;
} signatures[] = {
#define HF_PATCH "embeddings.patch_embeddings.projection.weight"
#define HF_NEW "layers.0.attention.q_proj.weight"
#define BV "Transformer/encoderblock_0/MlpBlock_0/Dense_0/kernel"
        {MU_NAMING_TORCHVISION_OLD, MURAL_NAMING_TORCHVISION, "", "conv_proj.weight",
         "encoder.layers.encoder_layer_0.mlp.linear_1.weight", "torchvision (names before 0.14)"},
        {MU_NAMING_TORCHVISION, MURAL_NAMING_TORCHVISION, "", "conv_proj.weight", NULL, "torchvision"},
        {MU_NAMING_TIMM, MURAL_NAMING_TIMM, "", "patch_embed.proj.weight", NULL, "timm"},
        {MU_NAMING_HUGGINGFACE_5, MURAL_NAMING_HUGGINGFACE, "vit.", HF_PATCH, HF_NEW,
         "Hugging Face ViTForImageClassification (names of transformers 5)"},
        {MU_NAMING_HUGGINGFACE, MURAL_NAMING_HUGGINGFACE, "vit.", HF_PATCH, NULL,
         "Hugging Face ViTForImageClassification"},
        {MU_NAMING_HUGGINGFACE_5, MURAL_NAMING_HUGGINGFACE, "", HF_PATCH, HF_NEW,
         "Hugging Face ViTModel (names of transformers 5)"},
        {MU_NAMING_HUGGINGFACE, MURAL_NAMING_HUGGINGFACE, "", HF_PATCH, NULL, "Hugging Face ViTModel"},
        {MU_NAMING_BIG_VISION, MURAL_NAMING_JAX, "", "embedding/kernel", BV, "JAX (big_vision)"},
        {MU_NAMING_JAX, MURAL_NAMING_JAX, "", "embedding/kernel", NULL, "JAX (vision_transformer)"},
        {MU_NAMING_BIG_VISION, MURAL_NAMING_JAX, "params/", "embedding/kernel", BV, "JAX (big_vision)"},
        {MU_NAMING_JAX, MURAL_NAMING_JAX, "params/", "embedding/kernel", NULL, "JAX (vision_transformer)"},
        {MU_NAMING_JAX, MURAL_NAMING_JAX, "opt/target/", "embedding/kernel", NULL, "JAX (vision_transformer)"},
};

static bool is_there(const mu_weights_file *file, const char *prefix, const char *name)
{
	char whole[128];
	snprintf(whole, sizeof whole, "%s%s", prefix, name);
	return mu_weights_file_find(file, whole) != NULL;
}

static mural_status find_naming(mural_weights *w, mural_error *err)
{
	for (size_t i = 0; i < sizeof signatures / sizeof *signatures; i++) {
		const struct signature *s = &signatures[i];
		if (!is_there(w->file, s->prefix, s->patch) || (s->also && !is_there(w->file, s->prefix, s->also)))
			continue;
		w->naming = s->naming;
		w->facts.naming = s->family;
		snprintf(w->prefix, sizeof w->prefix, "%s", s->prefix);
		snprintf(w->facts.origin, sizeof w->facts.origin, "%s", s->words);
		return MURAL_OK;
	}
	return mu_fail(
	        err, MURAL_DATA, w->facts.path,
	        "these are no Vision Transformer's weights under the names of torchvision, timm, Hugging Face or "
	        "Google's JAX code: the first of %zu tensors is '%.100s'",
	        mu_weights_file_count(w->file), mu_weights_file_at(w->file, 0)->name);
}

const mu_stored *mu_weights_part(const mural_weights *w, mu_role role, int block, mural_pool pool, unsigned part,
                                 char name[128])
{
	char bare[96];
	bool head = role == MU_ROLE_HEAD_W || role == MU_ROLE_HEAD_B;
	mu_tensor_name(w->naming, role, block, pool, part, bare, sizeof bare);
	if (!bare[0]) {
		*name = '\0';
		return NULL;
	}
	bool prefixed = !(head && w->facts.naming == MURAL_NAMING_HUGGINGFACE);
	snprintf(name, 128, "%s%s", prefixed ? w->prefix : "", bare);
	return mu_weights_file_find(w->file, name);
}

/* ---- Geometry. ---- */

/* A tensor of so many dims, none of them 0. */
static mural_status shaped(const mural_weights *w, mu_role role, size_t n_dims, const mu_stored **found,
                           mural_error *err)
{
	char name[128];
	*found = mu_weights_part(w, role, 0, w->facts.model.pool, 0, name);
	if (!*found)
		return mu_fail(err, MURAL_DATA, w->facts.path,
		               "these look like weights of %s, but tensor '%s' is missing", w->facts.origin, name);
	if ((*found)->n_dims != n_dims || (*found)->elements == 0)
		return mu_fail(err, MURAL_DATA, w->facts.path, "tensor '%s' has %zu dims, expected %zu, none of them 0",
		               name, (*found)->n_dims, n_dims);
	return MURAL_OK;
}

static bool has(const mural_weights *w, mu_role role, int block)
{
	char name[128];
	return mu_weights_part(w, role, block, w->facts.model.pool, 0, name) != NULL;
}

static size_t square_root(size_t n)
{
	size_t root = (size_t)sqrt((double)n);
	return root * root == n ? root : 0;
}

/* The position table's rows: with one for the class token when that leaves a square, or when nothing else is known. */
static void split_positions(mural_weights *w, size_t rows)
{
	mural_model_config *m = &w->facts.model;
	w->position_prefix = m->class_token && (square_root(rows - 1) || !square_root(rows));
	w->grid_height = w->grid_width = square_root(rows - w->position_prefix);
}

static mural_status take_shapes(mural_weights *w, mural_error *err)
{
	mural_model_config *m = &w->facts.model;
	const mu_stored *patch, *fc1, *positions, *head;
	char name[128];
	bool jax = w->facts.naming == MURAL_NAMING_JAX;
	if (mu_weights_file_find(w->file, "fc_norm.weight"))
		m->pool = MURAL_POOL_MEAN;
	MU_TRY(shaped(w, MU_ROLE_PATCH_W, 4, &patch, err));
	MU_TRY(shaped(w, MU_ROLE_FC1_W, 2, &fc1, err));
	MU_TRY(shaped(w, MU_ROLE_POSITION, 3, &positions, err));
	m->width = patch->dims[jax ? 3 : 0];
	m->channels = patch->dims[jax ? 2 : 1];
	m->patch = patch->dims[jax ? 0 : 2];
	m->mlp_width = fc1->dims[jax ? 1 : 0];
	m->class_token = has(w, MU_ROLE_CLASS_TOKEN, 0);
	for (m->depth = 0; m->depth < w->facts.tensors && has(w, MU_ROLE_NORM1_W, (int)m->depth);)
		m->depth++;
	split_positions(w, positions->dims[1]);
	m->classes = 0;
	head = mu_weights_part(w, MU_ROLE_HEAD_W, 0, m->pool, 0, name);
	if (head && head->n_dims == 2)
		m->classes = head->dims[jax ? 1 : 0];
	return MURAL_OK;
}

/* What the origin's models are like, where nothing else tells. */
static void take_conventions(mural_weights *w)
{
	mural_model_config *m = &w->facts.model;
	m->norm_eps = w->facts.naming == MURAL_NAMING_HUGGINGFACE ? 1e-12 : 1e-6;
	m->gelu = w->facts.naming == MURAL_NAMING_JAX ? MURAL_GELU_TANH : MURAL_GELU_ERF;
	m->heads = 0;
	m->init = w->facts.naming == MURAL_NAMING_TORCHVISION ? MURAL_INIT_TORCHVISION : MURAL_INIT_TIMM;
}

static mural_status settle_heads(mural_weights *w, mural_error *err)
{
	mural_model_config *m = &w->facts.model;
	char name[128];
	const mu_stored *query =
	        w->facts.naming == MURAL_NAMING_JAX ? mu_weights_part(w, MU_ROLE_QKV_B, 0, m->pool, 0, name) : NULL;
	size_t told = m->heads;
	bool family = mural_model_recognise(m);
	if (told) {
		m->heads = told;
	} else if (query && query->n_dims == 2) {
		m->heads = query->dims[0];
		snprintf(w->facts.heads_from, sizeof w->facts.heads_from, "shapes");
	} else if (family) {
		snprintf(w->facts.heads_from, sizeof w->facts.heads_from, "as in %s", m->preset);
	} else if (m->width % 64 == 0) {
		m->heads = m->width / 64;
		w->heads_assumed = true;
		snprintf(w->facts.heads_from, sizeof w->facts.heads_from, "assumed, of 64");
	} else {
		return mu_fail(err, MURAL_DATA, w->facts.path,
		               "the number of heads cannot be told from these weights (width %zu): put a config.json "
		               "with num_attention_heads beside them",
		               m->width);
	}
	if (m->width == 0 || m->heads == 0 || m->width % m->heads)
		return mu_fail(err, MURAL_DATA, w->facts.path, "%zu heads do not divide the width %zu", m->heads,
		               m->width);
	return MURAL_OK;
}

/* The image is as large as the grid; where the file tells the image's sides instead, they must agree. */
static mural_status settle_image(mural_weights *w, size_t rows, mural_error *err)
{
	mural_model_config *m = &w->facts.model;
	if (m->image_height && m->image_width && m->patch) {
		w->grid_height = m->image_height / m->patch;
		w->grid_width = m->image_width / m->patch;
		size_t patches = w->grid_height * w->grid_width;
		w->position_prefix = m->class_token && rows == patches + 1;
		if (rows != patches + w->position_prefix)
			return mu_fail(err, MURAL_DATA, w->facts.path,
			               "the weights have %zu positions, and the configuration beside them says an "
			               "image of %zu x %zu pixels in patches of %zu",
			               rows, m->image_height, m->image_width, m->patch);
	} else if (w->grid_height == 0) {
		return mu_fail(err, MURAL_DATA, w->facts.path,
		               "%zu positions are no square grid: put a config.json with image_size beside the weights",
		               rows);
	}
	if (m->patch == 0 || m->patch > MURAL_MAX_SIDE || w->grid_height > MURAL_MAX_SIDE / m->patch ||
	    w->grid_width > MURAL_MAX_SIDE / m->patch)
		return mu_fail(err, MURAL_DATA, w->facts.path,
		               "the weights are for images of more than %d pixels a side", MURAL_MAX_SIDE);
	m->image_height = w->grid_height * m->patch;
	m->image_width = w->grid_width * m->patch;
	return MURAL_OK;
}

/* The types that occur, "F32, BF16", and the number of elements. */
static void sum_up(mural_weights *w)
{
	mural_weights_facts *f = &w->facts;
	for (size_t i = 0; i < mu_weights_file_count(w->file); i++) {
		const mu_stored *tensor = mu_weights_file_at(w->file, i);
		size_t used = strlen(f->types);
		f->parameters += tensor->elements;
		if (!strstr(f->types, tensor->dtype))
			snprintf(f->types + used, sizeof f->types - used, "%s%s", used ? ", " : "", tensor->dtype);
	}
	f->tensors = mu_weights_file_count(w->file);
}

/* Known to be there and of no use: poolers that the classifier does not go through, tokens of pretraining. */
static bool is_of_no_use(const mural_weights *w, const char *name)
{
	size_t prefix = strlen(w->prefix);
	if (w->facts.naming != MURAL_NAMING_HUGGINGFACE || strncmp(name, w->prefix, prefix) != 0)
		return false;
	name += prefix;
	return strcmp(name, "pooler.dense.weight") == 0 || strcmp(name, "pooler.dense.bias") == 0 ||
	       strcmp(name, "embeddings.mask_token") == 0;
}

/* Names without a place in the model, sorted into the two lists. */
static mural_status sort_out(mural_weights *w, const mu_vit *vit, mural_error *err)
{
	size_t n = mu_weights_file_count(w->file), n_unmatched = 0, n_aside = 0;
	bool *placed = calloc(n, sizeof *placed);
	w->unmatched = calloc(n + 1, sizeof *w->unmatched);
	w->set_aside = calloc(n + 1, sizeof *w->set_aside);
	if (!placed || !w->unmatched || !w->set_aside) {
		free(placed);
		return mu_fail(err, MURAL_OUT_OF_MEMORY, w->facts.path, "no memory for the table of tensors");
	}
	for (size_t u = 0; u < vit->n_units; u++)
		for (size_t i = 0; i < vit->units[u].n_tensors; i++)
			for (unsigned part = 0; part < mu_naming_parts(w->naming, vit->units[u].tensors[i].role);
			     part++) {
				char name[128];
				const mu_stored *found =
				        mu_weights_part(w, vit->units[u].tensors[i].role, vit->units[u].block,
				                        vit->config.pool, part, name);
				if (found)
					placed[found - mu_weights_file_at(w->file, 0)] = true;
			}
	for (size_t i = 0; i < n; i++) {
		const char *name = mu_weights_file_at(w->file, i)->name;
		if (!placed[i] && is_of_no_use(w, name))
			w->set_aside[n_aside++] = name;
		else if (!placed[i])
			w->unmatched[n_unmatched++] = name;
	}
	free(placed);
	return MURAL_OK;
}

/* The weights must be whole by themselves, whatever model they are wanted for. */
static mural_status check_whole(mural_weights *w, mural_error *err)
{
	mural_model_config config = w->facts.model;
	mural_error why = {0};
	mu_vit vit;
	if (config.classes == 0)
		config.classes = 1;
	if (mural_model_config_check(&config, &why) != MURAL_OK)
		return mu_fail(err, MURAL_DATA, w->facts.path, "the weights are for no model that can be: %s",
		               why.message);
	MU_TRY(mu_vit_init(&vit, &config, err));
	mural_status status = sort_out(w, &vit, err);
	const mu_weights_wish wish = {.new_head = true, .ignore_unmatched = true};
	if (status == MURAL_OK)
		status = mu_weights_match(w, &vit, wish, NULL, err);
	mu_vit_release(&vit);
	return status;
}

static mural_status look(mural_weights *w, const char *path, mural_error *err)
{
	char name[128];
	MU_TRY(mu_weights_file_open(&w->file, path, err));
	snprintf(w->facts.path, sizeof w->facts.path, "%s", mu_weights_file_path(w->file));
	snprintf(w->facts.format, sizeof w->facts.format, "%s", mu_weights_file_format(w->file));
	sum_up(w);
	MU_TRY(find_naming(w, err));
	MU_TRY(take_shapes(w, err));
	take_conventions(w);
	MU_TRY(mu_weights_read_sidecars(w, err));
	MU_TRY(settle_heads(w, err));
	MU_TRY(settle_image(w, mu_weights_part(w, MU_ROLE_POSITION, 0, w->facts.model.pool, 0, name)->dims[1], err));
	if (!w->facts.preprocess.source[0])
		mu_preprocess_default(&w->facts.preprocess, w->naming, &w->facts.model);
	w->facts.class_names = w->class_names.n;
	return check_whole(w, err);
}

mural_status mural_weights_open(mural_weights **weights, const char *path, mural_error *err)
{
	*weights = NULL;
	mural_weights *w = calloc(1, sizeof *w);
	if (!w)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, path, "no memory to open weights");
	mural_status status = look(w, path, err);
	if (status == MURAL_OK)
		*weights = w;
	else
		mural_weights_free(w);
	return status;
}

void mural_weights_free(mural_weights *w)
{
	if (!w)
		return;
	mu_weights_file_free(w->file);
	mu_class_names_release(&w->class_names);
	free(w->unmatched);
	free(w->set_aside);
	free(w);
}

const mural_weights_facts *mural_weights_get_facts(const mural_weights *w)
{
	return &w->facts;
}

const char *mural_weights_class_name(const mural_weights *w, size_t label)
{
	return label < w->class_names.n ? w->class_names.names[label] : NULL;
}

const char *mural_weights_unmatched(const mural_weights *w, size_t i)
{
	return w->unmatched[i];
}
