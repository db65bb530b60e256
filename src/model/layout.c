/* The unit table of a Vision Transformer: which tensors a unit has, their shapes and places.
 *
 *     unit 0          patch weight, patch bias, class token (if any), positions
 *     units 1 .. L    norm 1, qkv, attention output, norm 2, fc1, fc2: weight then bias of each
 *     unit L + 1      norm, head
 *
 * Shapes are torch's, so that a weight file needs no thought. All tensors of all units lie in one allocation.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>

#include "model/names.h"
#include "model/vit.h"

#define EMBED_TENSORS 4
#define BLOCK_TENSORS 12
#define HEAD_TENSORS 4

/* A shape, its number of dims counted from the arguments. */
#define DIMS(...) (const size_t[]){__VA_ARGS__}, (int)(sizeof((const size_t[]){__VA_ARGS__}) / sizeof(size_t))

static size_t aligned(size_t elements)
{
	return (elements + MU_TENSOR_ALIGN - 1) / MU_TENSOR_ALIGN * MU_TENSOR_ALIGN;
}

/* Appends a tensor to the unit that is being built. */
static void add(mu_vit *vit, mu_unit *unit, mu_role role, const size_t *dims, int n_dims)
{
	mu_tensor *tensor = &unit->tensors[unit->n_tensors];
	*tensor = (mu_tensor){.role = role,
	                      .n_dims = n_dims,
	                      .elements = 1,
	                      .offset = unit->elements,
	                      .flags = MU_TENSOR_DECAYS,
	                      .lr_scale = 1.0f,
	                      .number = (uint32_t)(tensor - vit->units[0].tensors)};
	mu_tensor_name(MU_NAMING_TORCHVISION, role, unit->block, vit->config.pool, 0, tensor->name,
	               sizeof tensor->name);
	for (int i = 0; i < n_dims; i++) {
		tensor->dims[i] = dims[i];
		tensor->elements *= dims[i];
	}
	unit->n_tensors++;
	unit->elements += aligned(tensor->elements);
	vit->parameters += tensor->elements;
}

/* Starts unit `number` behind the tensors of the one before it. */
static mu_unit *begin_unit(mu_vit *vit, size_t number, mu_unit_kind kind)
{
	mu_unit *unit = &vit->units[number];
	unit->kind = kind;
	unit->block = kind == MU_UNIT_BLOCK ? (int)number - 1 : -1;
	if (number > 0)
		unit->tensors = unit[-1].tensors + unit[-1].n_tensors;
	return unit;
}

static void lay_embed(mu_vit *vit, mu_unit *unit)
{
	const mural_model_config *c = &vit->config;
	add(vit, unit, MU_ROLE_PATCH_W, DIMS(c->width, c->channels, c->patch, c->patch));
	add(vit, unit, MU_ROLE_PATCH_B, DIMS(c->width));
	if (c->class_token)
		add(vit, unit, MU_ROLE_CLASS_TOKEN, DIMS(1, 1, c->width));
	add(vit, unit, MU_ROLE_POSITION, DIMS(1, vit->tokens, c->width));
}

static void lay_block(mu_vit *vit, mu_unit *unit)
{
	const size_t width = vit->config.width, mlp_width = vit->config.mlp_width;
	add(vit, unit, MU_ROLE_NORM1_W, DIMS(width));
	add(vit, unit, MU_ROLE_NORM1_B, DIMS(width));
	add(vit, unit, MU_ROLE_QKV_W, DIMS(3 * width, width));
	add(vit, unit, MU_ROLE_QKV_B, DIMS(3 * width));
	add(vit, unit, MU_ROLE_OUT_W, DIMS(width, width));
	add(vit, unit, MU_ROLE_OUT_B, DIMS(width));
	add(vit, unit, MU_ROLE_NORM2_W, DIMS(width));
	add(vit, unit, MU_ROLE_NORM2_B, DIMS(width));
	add(vit, unit, MU_ROLE_FC1_W, DIMS(mlp_width, width));
	add(vit, unit, MU_ROLE_FC1_B, DIMS(mlp_width));
	add(vit, unit, MU_ROLE_FC2_W, DIMS(width, mlp_width));
	add(vit, unit, MU_ROLE_FC2_B, DIMS(width));
}

static void lay_head(mu_vit *vit, mu_unit *unit)
{
	const mural_model_config *c = &vit->config;
	add(vit, unit, MU_ROLE_NORM_W, DIMS(c->width));
	add(vit, unit, MU_ROLE_NORM_B, DIMS(c->width));
	add(vit, unit, MU_ROLE_HEAD_W, DIMS(c->classes, c->width));
	add(vit, unit, MU_ROLE_HEAD_B, DIMS(c->classes));
}

mural_status mu_vit_init(mu_vit *vit, const mural_model_config *config, mural_error *err)
{
	*vit = (mu_vit){.config = *config, .n_units = config->depth + 2};
	vit->patches = config->image_height / config->patch * (config->image_width / config->patch);
	vit->prefix = config->class_token ? 1 : 0;
	vit->tokens = vit->prefix + vit->patches;
	vit->units = calloc(vit->n_units, sizeof *vit->units);
	mu_tensor *tensors = calloc(EMBED_TENSORS + BLOCK_TENSORS * config->depth + HEAD_TENSORS, sizeof *tensors);
	if (!vit->units || !tensors) {
		free(tensors);
		free(vit->units);
		*vit = (mu_vit){0};
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the table of %zu blocks", config->depth);
	}
	vit->units[0].tensors = tensors;
	lay_embed(vit, begin_unit(vit, 0, MU_UNIT_EMBED));
	for (size_t l = 0; l < config->depth; l++)
		lay_block(vit, begin_unit(vit, l + 1, MU_UNIT_BLOCK));
	lay_head(vit, begin_unit(vit, config->depth + 1, MU_UNIT_HEAD));
	for (size_t u = 0; u < vit->n_units; u++)
		vit->elements += vit->units[u].elements;
	return MURAL_OK;
}

void mu_vit_release(mu_vit *vit)
{
	if (!vit)
		return;
	if (vit->units)
		free(vit->units[0].tensors);
	free(vit->units);
	*vit = (mu_vit){0};
}

const mu_tensor *mu_unit_tensor(const mu_unit *unit, mu_role role)
{
	for (size_t i = 0; i < unit->n_tensors; i++)
		if (unit->tensors[i].role == role)
			return &unit->tensors[i];
	return NULL;
}

static bool is_weight(mu_role role)
{
	switch (role) {
	case MU_ROLE_PATCH_W:
	case MU_ROLE_QKV_W:
	case MU_ROLE_OUT_W:
	case MU_ROLE_FC1_W:
	case MU_ROLE_FC2_W:
	case MU_ROLE_HEAD_W: return true;
	default: return false;
	}
}

static void set_flag(mu_tensor *tensor, mu_tensor_flag flag, bool on)
{
	tensor->flags = on ? tensor->flags | (unsigned)flag : tensor->flags & ~(unsigned)flag;
}

void mu_vit_apply_decay_rule(mu_vit *vit, bool weights_only)
{
	for (size_t u = 0; u < vit->n_units; u++)
		for (size_t i = 0; i < vit->units[u].n_tensors; i++) {
			mu_tensor *tensor = &vit->units[u].tensors[i];
			set_flag(tensor, MU_TENSOR_DECAYS, !weights_only || is_weight(tensor->role));
		}
}

void mu_vit_apply_lr_decay(mu_vit *vit, double decay)
{
	for (size_t u = 0; u < vit->n_units; u++)
		for (size_t i = 0; i < vit->units[u].n_tensors; i++)
			vit->units[u].tensors[i].lr_scale = (float)pow(decay, (double)(vit->n_units - 1 - u));
}

void mu_vit_apply_trust_rule(mu_vit *vit, bool decaying_only)
{
	for (size_t u = 0; u < vit->n_units; u++)
		for (size_t i = 0; i < vit->units[u].n_tensors; i++) {
			mu_tensor *tensor = &vit->units[u].tensors[i];
			set_flag(tensor, MU_TENSOR_TRUST, !decaying_only || tensor->flags & MU_TENSOR_DECAYS);
		}
}

void mu_vit_apply_muon_rule(mu_vit *vit)
{
	for (size_t u = 0; u < vit->n_units; u++)
		for (size_t i = 0; i < vit->units[u].n_tensors; i++) {
			mu_tensor *tensor = &vit->units[u].tensors[i];
			set_flag(tensor, MU_TENSOR_MUON, is_weight(tensor->role) && tensor->n_dims == 2);
		}
}

static double unit_flops(const mural_model_config *c, mu_unit_kind kind)
{
	size_t rows = c->image_height / c->patch, columns = c->image_width / c->patch; /* whole patches */
	double width = (double)c->width, patches = (double)(rows * columns);
	double tokens = patches + (c->class_token ? 1 : 0);
	switch (kind) {
	case MU_UNIT_EMBED: return 2 * patches * (double)(c->channels * c->patch * c->patch) * width;
	case MU_UNIT_BLOCK:
		return 2 *
		       (tokens * (4 * width * width + 2 * width * (double)c->mlp_width) + 2 * tokens * tokens * width);
	case MU_UNIT_HEAD: break;
	}
	return 2 * (double)c->classes * width;
}

double mu_vit_unit_flops(const mu_vit *vit, size_t unit)
{
	return unit_flops(&vit->config, vit->units[unit].kind);
}

double mural_model_forward_flops(const mural_model_config *c)
{
	return unit_flops(c, MU_UNIT_EMBED) + (double)c->depth * unit_flops(c, MU_UNIT_BLOCK) +
	       unit_flops(c, MU_UNIT_HEAD);
}

double mu_vit_forward_flops(const mu_vit *vit)
{
	return mural_model_forward_flops(&vit->config);
}
