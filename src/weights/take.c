/* A tensor of the model out of a file's parts: joined, transposed, resized.
 *
 * JAX keeps matrices as (in, out), with heads as dims of their own, and patch weights as (row, column, channel, out).
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "weights/positions.h"
#include "weights/weights.h"

static mural_status no_memory(const mural_weights *weights, const mu_tensor *tensor, mural_error *err)
{
	return mu_fail(err, MURAL_OUT_OF_MEMORY, weights->facts.path, "no memory for tensor '%s'", tensor->name);
}

static void transpose(const float *from, size_t rows, size_t columns, float *to)
{
	for (size_t r = 0; r < rows; r++)
		for (size_t c = 0; c < columns; c++)
			to[c * rows + r] = from[r * columns + c];
}

static bool is_matrix(mu_role role)
{
	return role == MU_ROLE_PATCH_W || role == MU_ROLE_QKV_W || role == MU_ROLE_OUT_W || role == MU_ROLE_FC1_W ||
	       role == MU_ROLE_FC2_W || role == MU_ROLE_HEAD_W;
}

/* A part of JAX's as torch would have it. All of them are (everything that goes in, out), and patches go in by row, column
 * and channel instead of channel, row and column. */
static void turn(const mural_model_config *c, mu_role role, const float *from, size_t elements, float *to)
{
	if (role == MU_ROLE_PATCH_W) {
		size_t area = c->patch * c->patch;
		for (size_t i = 0; i < elements; i++) {
			size_t out = i % c->width, channel = i / c->width % c->channels,
			       at = i / c->width / c->channels;
			to[(out * c->channels + channel) * area + at] = from[i];
		}
		return;
	}
	size_t out = role == MU_ROLE_FC1_W    ? c->mlp_width
	             : role == MU_ROLE_HEAD_W ? c->classes
	                                      : c->width; /* q, k and v one by one */
	transpose(from, elements / out, out, to);
}

static mural_status take_part(const mural_weights *weights, const mu_vit *vit, const mu_tensor *tensor,
                              const mu_stored *stored, float *to, mural_error *err)
{
	bool jax = weights->naming == MU_NAMING_JAX || weights->naming == MU_NAMING_BIG_VISION;
	if (!jax || !is_matrix(tensor->role))
		return mu_weights_file_read(weights->file, stored, to, err);
	float *raw = malloc((size_t)stored->elements * sizeof *raw);
	if (!raw)
		return no_memory(weights, tensor, err);
	mural_status status = mu_weights_file_read(weights->file, stored, raw, err);
	if (status == MURAL_OK)
		turn(&vit->config, tensor->role, raw, (size_t)stored->elements, to);
	free(raw);
	return status;
}

/* The table's rows for the class token, then its grid, in the model's size. A table without a row for it adds nothing to the
 * class token: a row of zeros. */
static mural_status take_positions(const mural_weights *weights, const mu_vit *vit, const mu_tensor *tensor,
                                   const mu_stored *stored, float *to, mural_error *err)
{
	const mural_model_config *c = &vit->config;
	const size_t width = c->width;
	mu_grid old = {weights->grid_height, weights->grid_width};
	mu_grid wanted = {c->image_height / c->patch, c->image_width / c->patch};
	float *raw = malloc((size_t)stored->elements * sizeof *raw);
	if (!raw)
		return no_memory(weights, tensor, err);
	mural_status status = mu_weights_file_read(weights->file, stored, raw, err);
	if (status == MURAL_OK && vit->prefix) {
		memset(to, 0, width * sizeof *to);
		if (weights->position_prefix)
			memcpy(to, raw, width * sizeof *to);
	}
	const float *grid = raw + weights->position_prefix * width;
	float *patches = to + vit->prefix * width;
	if (status == MURAL_OK && old.height == wanted.height && old.width == wanted.width)
		memcpy(patches, grid, old.height * old.width * width * sizeof *to);
	else if (status == MURAL_OK && !mu_positions_resize(weights->naming, grid, old, patches, wanted, width))
		status = no_memory(weights, tensor, err);
	free(raw);
	return status;
}

mural_status mu_weights_take(const mural_weights *weights, const mu_vit *vit, const mu_unit *unit,
                             const mu_tensor *tensor, float *to, mural_error *err)
{
	char name[128];
	unsigned parts = mu_naming_parts(weights->naming, tensor->role);
	bool head = tensor->role == MU_ROLE_HEAD_W || tensor->role == MU_ROLE_HEAD_B;
	if (head && mu_weights_head_differs(weights, vit))
		return MURAL_OK;
	for (unsigned part = 0; part < parts; part++) {
		const mu_stored *stored =
		        mu_weights_part(weights, tensor->role, unit->block, vit->config.pool, part, name);
		if (!stored)
			return mu_bug(err, "a tensor is taken that was not matched");
		if (tensor->role == MU_ROLE_POSITION)
			return take_positions(weights, vit, tensor, stored, to, err);
		MU_TRY(take_part(weights, vit, tensor, stored, to + part * (tensor->elements / parts), err));
	}
	return MURAL_OK;
}
