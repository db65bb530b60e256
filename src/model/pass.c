/* One micro-batch on its way through the units: planning, what the units share, the loss.
 * SPDX-License-Identifier: MIT */
#include "model/pass.h"

#include <stdlib.h>

/* Memory that no machine has: refused before sizes could wrap. */
#define LARGEST_PASS 0x1p60

static size_t stat_bytes(const mu_vit_pass *pass)
{
	return pass->type == MU_F64 ? sizeof(double) : sizeof(float);
}

size_t mu_pass_bytes(const mu_vit_pass *pass, size_t elements)
{
	return mu_arena_padded(elements * mu_dtype_bytes(pass->type));
}

void *mu_pass_take(const mu_vit_pass *pass, mu_arena *arena, size_t elements)
{
	return mu_arena_take(arena, elements * mu_dtype_bytes(pass->type));
}

void *mu_pass_take_stat(const mu_vit_pass *pass, mu_arena *arena, size_t elements)
{
	return mu_arena_take(arena, elements * stat_bytes(pass));
}

const void *mu_pass_parameter(const mu_vit_pass *pass, const mu_unit_memory *memory, mu_role role)
{
	const mu_tensor *tensor = mu_unit_tensor(memory->unit, role);
	return tensor ? (const char *)memory->parameters + tensor->offset * mu_dtype_bytes(pass->type) : NULL;
}

void *mu_pass_gradient(const mu_vit_pass *pass, const mu_unit_memory *memory, mu_role role)
{
	const mu_tensor *tensor = mu_unit_tensor(memory->unit, role);
	if (!tensor || !memory->gradients)
		return NULL;
	return (char *)memory->gradients + tensor->offset * mu_dtype_bytes(pass->type);
}

mu_linear mu_pass_linear(const mu_vit_pass *pass, const mu_unit_memory *memory, mu_role weight, size_t rows, size_t in,
                         size_t out)
{
	return (mu_linear){.type = pass->type,
	                   .rows = rows,
	                   .in = in,
	                   .out = out,
	                   .w = mu_pass_parameter(pass, memory, weight),
	                   .b = mu_pass_parameter(pass, memory, weight + 1),
	                   .d_w = mu_pass_gradient(pass, memory, weight),
	                   .d_b = mu_pass_gradient(pass, memory, weight + 1),
	                   .scratch = pass->scratch};
}

mu_layernorm mu_pass_norm(const mu_vit_pass *pass, const mu_unit_memory *memory, mu_role weight, size_t rows)
{
	return (mu_layernorm){.type = pass->type,
	                      .tokens = rows,
	                      .width = pass->vit->config.width,
	                      .tokens_per_image = rows / pass->images,
	                      .eps = pass->vit->config.norm_eps,
	                      .w = mu_pass_parameter(pass, memory, weight),
	                      .b = mu_pass_parameter(pass, memory, weight + 1),
	                      .d_w = mu_pass_gradient(pass, memory, weight),
	                      .d_b = mu_pass_gradient(pass, memory, weight + 1),
	                      .scratch = pass->scratch};
}

mu_dropout_rule mu_pass_dropout(const mu_vit_pass *pass, mu_purpose purpose, uint32_t layer, double p)
{
	mu_dropout_rule rule = {.key = mu_random_key_make(pass->seed, purpose, layer), .scale = 1.0f};
	if (pass->training && p > 0) {
		rule.threshold = mu_drop_threshold(p);
		rule.scale = (float)(1 / (1 - p));
		rule.stream_B = pass->stream_B;
	}
	return rule;
}

mu_pass_pair mu_pass_received(mu_vit_pass *pass, size_t block)
{
	if (block == 0)
		return (mu_pass_pair){.x = pass->x_TD};
	const mu_block_buffers *before = &pass->blocks[block - 1];
	return (mu_pass_pair){.x = before->x, .r = before->s2, .keep_B = before->keep2_B};
}

void *mu_pass_d_branch(const mu_vit_pass *pass)
{
	return pass->scaled ? pass->d_y_TD : pass->d_r_TD;
}

static void take_gradients(mu_vit_pass *pass, mu_arena *step)
{
	const size_t width = pass->vit->config.width;
	pass->d_r_TD = mu_pass_take(pass, step, pass->rows * width);
	pass->d_y_TD = mu_pass_take(pass, step, pass->rows * width);
	size_t attention = mu_pass_bytes(pass, pass->rows * width) + mu_pass_bytes(pass, pass->rows * 3 * width);
	size_t hidden = mu_pass_bytes(pass, pass->rows * pass->vit->config.mlp_width);
	pass->d_wide = mu_arena_take(step, mu_max(attention, hidden));
}

/* Asks every operation that the pass will run, with the structs that it will run with. */
static size_t workspace_bytes(mu_vit_pass *pass)
{
	/* Operations look at shapes and at which pointers are NULL, not at what the others point to. */
	char placeholder = 0;
	size_t most = 0;
	for (size_t u = 0; u < pass->vit->n_units; u++) {
		mu_unit_memory memory = {&pass->vit->units[u], &placeholder, pass->training ? &placeholder : NULL};
		size_t bytes = 0;
		switch (memory.unit->kind) {
		case MU_UNIT_EMBED: bytes = mu_embed_workspace_bytes(pass, &memory); break;
		case MU_UNIT_BLOCK: bytes = mu_block_workspace_bytes(pass, &memory); break;
		case MU_UNIT_HEAD: bytes = mu_head_workspace_bytes(pass, &memory); break;
		}
		most = mu_max(most, bytes);
	}
	return most;
}

static mural_status check_size(const mu_vit *vit, size_t capacity, mural_error *err)
{
	const mural_model_config *c = &vit->config;
	if (capacity == 0)
		return mu_fail(err, MURAL_USAGE, NULL, "a micro-batch of 0 images cannot be trained on");
	double per_token = (20.0 * (double)c->width + 4.0 * (double)c->mlp_width) * ((double)c->depth + 2);
	double pixels = (double)(c->channels * c->image_height) * (double)c->image_width;
	double lse = (double)(c->heads * c->depth) * (double)vit->tokens;
	double elements = (double)capacity * (per_token * (double)vit->tokens + 2 * pixels + lse + (double)c->classes);
	if (elements * 8 > LARGEST_PASS)
		return mu_fail(err, MURAL_USAGE, NULL,
		               "a micro-batch of %zu images of %zu tokens needs more memory than any machine has",
		               capacity, vit->tokens);
	return MURAL_OK;
}

mural_status mu_vit_pass_create(mu_vit_pass **result, const mu_vit *vit, const mu_ops *ops, mu_ops_context *context,
                                mu_dtype type, size_t capacity, bool training, uint32_t seed, mu_arena *step,
                                mu_arena *scratch, mural_error *err)
{
	*result = NULL;
	MU_TRY(check_size(vit, capacity, err));
	mu_vit_pass *pass = calloc(1, sizeof *pass + vit->config.depth * sizeof pass->blocks[0]);
	if (!pass)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the buffers' table of %zu blocks",
		               vit->config.depth);
	pass->vit = vit;
	pass->ops = ops;
	pass->context = context;
	pass->type = type;
	pass->capacity = capacity;
	pass->images = capacity;
	pass->rows = capacity * vit->tokens;
	pass->training = training;
	pass->scaled = training && (vit->config.dropout > 0 || vit->config.drop_path > 0);
	pass->seed = seed;
	mu_blocks_take(pass, step);
	mu_embed_take(pass, step);
	mu_head_take(pass, step);
	if (training)
		take_gradients(pass, step);
	pass->scratch_bytes = workspace_bytes(pass);
	pass->scratch = mu_arena_take(scratch, pass->scratch_bytes);
	mural_status status = mu_arena_check(step, err);
	if (status == MURAL_OK)
		status = mu_arena_check(scratch, err);
	if (status != MURAL_OK) {
		free(pass);
		return status;
	}
	*result = pass;
	return MURAL_OK;
}

void mu_vit_pass_images(mu_vit_pass *pass, size_t images)
{
	if (images == pass->images)
		return;
	pass->images = images;
	pass->rows = images * pass->vit->tokens;
	if (workspace_bytes(pass) > pass->scratch_bytes) { /* a library may choose otherwise for a smaller shape */
		pass->images = pass->capacity;
		pass->rows = pass->capacity * pass->vit->tokens;
	}
}

void mu_vit_pass_free(mu_vit_pass *pass)
{
	free(pass);
}

static mural_status check_input(const mu_vit_pass *pass, const mu_vit_input *input, mural_error *err)
{
	const mural_model_config *c = &pass->vit->config;
	bool random = pass->training && (c->dropout > 0 || c->attention_dropout > 0 || c->drop_path > 0);
	if (random && !input->stream_B)
		return mu_bug(err, "a pass with dropout needs the images' streams");
	return MURAL_OK;
}

mural_status mu_vit_forward_unit(mu_vit_pass *pass, size_t unit, const void *parameters, const mu_vit_input *input,
                                 mural_error *err)
{
	mu_unit_memory memory = {.unit = &pass->vit->units[unit], .parameters = parameters};
	mural_status status = MURAL_OK;
	switch (memory.unit->kind) {
	case MU_UNIT_EMBED:
		MU_TRY(check_input(pass, input, err));
		pass->stream_B = input->stream_B;
		status = mu_embed_forward(pass, &memory, input, err);
		break;
	case MU_UNIT_BLOCK: status = mu_block_forward(pass, &memory, err); break;
	case MU_UNIT_HEAD: status = mu_head_forward(pass, &memory, err); break;
	}
	if (status != MURAL_OK)
		mu_context(err, "in the forward pass of unit %zu of %zu", unit, pass->vit->n_units);
	return status;
}

mural_status mu_vit_backward_unit(mu_vit_pass *pass, size_t unit, const void *parameters, void *gradients,
                                  const mu_vit_input *input, mural_error *err)
{
	(void)input; /* forward left what backward needs */
	if (!pass->training)
		return mu_bug(err, "backward of a pass that kept nothing for it");
	mu_unit_memory memory = {&pass->vit->units[unit], parameters, gradients};
	mural_status status = MURAL_OK;
	switch (memory.unit->kind) {
	case MU_UNIT_EMBED: status = mu_embed_backward(pass, &memory, err); break;
	case MU_UNIT_BLOCK: status = mu_block_backward(pass, &memory, err); break;
	case MU_UNIT_HEAD: status = mu_head_backward(pass, &memory, err); break;
	}
	if (status != MURAL_OK)
		mu_context(err, "in the backward pass of unit %zu of %zu", unit, pass->vit->n_units);
	return status;
}

mural_status mu_vit_loss(mu_vit_pass *pass, const mu_vit_input *input, mu_step_sums *sums, int32_t *best_B,
                         mural_error *err)
{
	mu_cross_entropy op = {.type = pass->type,
	                       .images = pass->images,
	                       .micro = input->micro,
	                       .classes = pass->vit->config.classes,
	                       .smoothing = input->label_smoothing,
	                       .loss_scale = input->loss_scale,
	                       .logits = pass->logits_BC,
	                       .labels = input->labels,
	                       .d_logits = pass->training ? pass->logits_BC : NULL,
	                       .best_B = best_B,
	                       .sums = sums};
	return pass->ops->cross_entropy(pass->context, &op, err);
}

const void *mu_vit_logits(const mu_vit_pass *pass)
{
	return pass->logits_BC;
}

const void *mu_vit_left_by(const mu_vit_pass *pass, size_t unit, size_t *elements)
{
	const mural_model_config *c = &pass->vit->config;
	*elements = pass->rows * c->width;
	if (unit == 0)
		return pass->blocks[0].s1;
	if (unit <= c->depth)
		return pass->blocks[unit - 1].x;
	*elements = pass->images * c->classes;
	return pass->logits_BC;
}
