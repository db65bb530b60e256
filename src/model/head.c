/* Unit L + 1: pool the stream, norm what is left, classify.
 *
 * Pooling comes before the norm so that only one row per image is normed; it is linear, so both halves of the stream are
 * pooled and the norm adds them.
 * SPDX-License-Identifier: MIT */
#include "model/pass.h"

typedef struct head_ops {
	mu_pool pool_x, pool_r;
	mu_layernorm norm;
	mu_linear head;
} head_ops;

static mu_pool describe_pool(const mu_vit_pass *pass)
{
	bool mean = pass->vit->config.pool == MURAL_POOL_MEAN;
	return (mu_pool){.type = pass->type,
	                 .images = pass->images,
	                 .tokens = pass->vit->tokens,
	                 .width = pass->vit->config.width,
	                 .first = mean ? pass->vit->prefix : 0,
	                 .last = mean ? pass->vit->tokens : 1};
}

static head_ops describe(mu_vit_pass *pass, const mu_unit_memory *memory)
{
	const mural_model_config *c = &pass->vit->config;
	mu_pass_pair received = mu_pass_received(pass, c->depth);
	head_ops h = {.pool_x = describe_pool(pass), .pool_r = describe_pool(pass)};
	h.pool_x.x = received.x;
	h.pool_x.y = pass->pooled_x_BD;
	h.pool_x.d_y = pass->d_norm_y_BD;
	h.pool_x.d_x = pass->d_y_TD;
	h.pool_r.x = received.r;
	h.pool_r.y = pass->pooled_r_BD;
	h.pool_r.d_y = pass->d_pooled_BD;
	h.pool_r.d_x = pass->d_r_TD;

	h.norm = mu_pass_norm(pass, memory, MU_ROLE_NORM_W, pass->images);
	h.norm.x = pass->pooled_x_BD;
	h.norm.r = pass->pooled_r_BD;
	h.norm.keep_B = received.keep_B;
	h.norm.sum = pass->pooled_x_BD;
	h.norm.y = pass->norm_y_BD;
	h.norm.mean = pass->norm_mean;
	h.norm.rstd = pass->norm_rstd;
	h.norm.d_y = pass->d_norm_y_BD;
	h.norm.d_r = pass->d_pooled_BD;
	h.norm.d_x = pass->scaled ? pass->d_norm_y_BD : NULL;

	h.head = mu_pass_linear(pass, memory, MU_ROLE_HEAD_W, pass->images, c->width, c->classes);
	h.head.x = pass->norm_y_BD;
	h.head.y = pass->logits_BC;
	h.head.d_y = pass->logits_BC; /* mu_vit_loss leaves the gradient there */
	h.head.d_x = pass->d_norm_y_BD;
	return h;
}

void mu_head_take(mu_vit_pass *pass, mu_arena *step)
{
	const size_t elements = pass->images * pass->vit->config.width;
	pass->pooled_x_BD = mu_pass_take(pass, step, elements);
	pass->pooled_r_BD = mu_pass_take(pass, step, elements);
	pass->norm_y_BD = mu_pass_take(pass, step, elements);
	pass->norm_mean = mu_pass_take_stat(pass, step, pass->images);
	pass->norm_rstd = mu_pass_take_stat(pass, step, pass->images);
	pass->logits_BC = mu_pass_take(pass, step, pass->images * pass->vit->config.classes);
	if (pass->training) {
		pass->d_norm_y_BD = mu_pass_take(pass, step, elements);
		pass->d_pooled_BD = mu_pass_take(pass, step, elements);
	}
}

size_t mu_head_workspace_bytes(mu_vit_pass *pass, const mu_unit_memory *memory)
{
	head_ops h = describe(pass, memory);
	return mu_max(pass->ops->layernorm_workspace(pass->context, &h.norm),
	              pass->ops->linear_workspace(pass->context, &h.head));
}

mural_status mu_head_forward(mu_vit_pass *pass, const mu_unit_memory *memory, mural_error *err)
{
	head_ops h = describe(pass, memory);
	MU_TRY(pass->ops->pool_forward(pass->context, &h.pool_x, err));
	MU_TRY(pass->ops->pool_forward(pass->context, &h.pool_r, err));
	MU_TRY(pass->ops->layernorm_forward(pass->context, &h.norm, err));
	return pass->ops->linear_forward(pass->context, &h.head, err);
}

mural_status mu_head_backward(mu_vit_pass *pass, const mu_unit_memory *memory, mural_error *err)
{
	head_ops h = describe(pass, memory);
	MU_TRY(pass->ops->linear_backward(pass->context, &h.head, err));
	MU_TRY(pass->ops->layernorm_backward(pass->context, &h.norm, err));
	if (pass->scaled)
		MU_TRY(pass->ops->pool_backward(pass->context, &h.pool_x, err));
	return pass->ops->pool_backward(pass->context, &h.pool_r, err);
}
