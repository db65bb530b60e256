/* Units 1 .. L: attention and MLP, each behind a norm and added to the residual stream by the next norm.
 *
 *     s1 = x * keep + r;  a = out(attention(qkv(norm1(s1))));  s2 = a * keep1 + s1;  x = fc2(gelu(fc1(norm2(s2))))
 *
 * and (x, s2) go to the next unit. Dropout, where torchvision has it: behind GELU and at the end of both branches.
 * SPDX-License-Identifier: MIT */
#include "model/pass.h"

typedef struct block_ops {
	mu_layernorm norm1;
	mu_linear qkv;
	mu_attention attention;
	mu_linear out;
	mu_layernorm norm2;
	mu_linear fc1;
	mu_linear fc2;
} block_ops;

static void describe_attention(const mu_vit_pass *pass, const mu_unit_memory *memory, const mu_pass_pair *received,
                               block_ops *b)
{
	const mural_model_config *c = &pass->vit->config;
	const mu_block_buffers *buffers = &pass->blocks[memory->unit->block];
	b->norm1 = mu_pass_norm(pass, memory, MU_ROLE_NORM1_W, pass->rows);
	b->norm1.x = received->x;
	b->norm1.r = received->r;
	b->norm1.keep_B = received->keep_B;
	b->norm1.sum = received->r ? buffers->s1 : NULL; /* block 0 receives its sum */
	b->norm1.y = buffers->y1;
	b->norm1.mean = buffers->mean1;
	b->norm1.rstd = buffers->rstd1;
	b->norm1.d_y = pass->d_y_TD;
	b->norm1.d_sum = pass->d_r_TD;
	b->norm1.d_r = pass->d_r_TD;
	b->norm1.d_x = received->keep_B ? pass->d_y_TD : NULL;

	void *d_o = pass->d_wide;
	void *d_qkv = pass->training ? (char *)pass->d_wide + mu_pass_bytes(pass, pass->rows * c->width) : NULL;
	b->qkv = mu_pass_linear(pass, memory, MU_ROLE_QKV_W, pass->rows, c->width, 3 * c->width);
	b->qkv.x = buffers->y1;
	b->qkv.y = buffers->qkv;
	b->qkv.d_y = d_qkv;
	b->qkv.d_x = pass->d_y_TD;

	b->attention = (mu_attention){.type = pass->type,
	                              .images = pass->images,
	                              .tokens = pass->vit->tokens,
	                              .heads = c->heads,
	                              .head_size = c->width / c->heads,
	                              .dropout = mu_pass_dropout(pass, MU_PURPOSE_ATTENTION_DROPOUT,
	                                                         (uint32_t)memory->unit->block, c->attention_dropout),
	                              .qkv = buffers->qkv,
	                              .o = buffers->o,
	                              .lse = buffers->lse,
	                              .d_o = d_o,
	                              .d_qkv = d_qkv,
	                              .scratch = pass->scratch};

	b->out = mu_pass_linear(pass, memory, MU_ROLE_OUT_W, pass->rows, c->width, c->width);
	b->out.x = buffers->o;
	b->out.y = buffers->s2;
	b->out.d_y = mu_pass_d_branch(pass);
	b->out.d_x = d_o;
}

static void describe_mlp(const mu_vit_pass *pass, const mu_unit_memory *memory, block_ops *b)
{
	const mural_model_config *c = &pass->vit->config;
	const mu_block_buffers *buffers = &pass->blocks[memory->unit->block];
	b->norm2 = mu_pass_norm(pass, memory, MU_ROLE_NORM2_W, pass->rows);
	b->norm2.x = buffers->s2;
	b->norm2.r = buffers->s1;
	b->norm2.keep_B = buffers->keep1_B;
	b->norm2.sum = buffers->s2;
	b->norm2.y = buffers->y2;
	b->norm2.mean = buffers->mean2;
	b->norm2.rstd = buffers->rstd2;
	b->norm2.d_y = pass->d_y_TD;
	b->norm2.d_sum = pass->d_r_TD;
	b->norm2.d_r = pass->d_r_TD;
	b->norm2.d_x = pass->scaled ? pass->d_y_TD : NULL;

	b->fc1 = mu_pass_linear(pass, memory, MU_ROLE_FC1_W, pass->rows, c->width, c->mlp_width);
	b->fc1.activation = c->gelu == MURAL_GELU_TANH ? MU_ACTIVATION_GELU_TANH : MU_ACTIVATION_GELU_ERF;
	b->fc1.x = buffers->y2;
	b->fc1.pre = buffers->pre;
	b->fc1.y = buffers->post;
	b->fc1.d_y = pass->d_wide;
	b->fc1.d_x = pass->d_y_TD;

	b->fc2 = mu_pass_linear(pass, memory, MU_ROLE_FC2_W, pass->rows, c->mlp_width, c->width);
	b->fc2.x = buffers->post;
	b->fc2.y = buffers->x;
	b->fc2.d_y = mu_pass_d_branch(pass);
	b->fc2.d_x = pass->d_wide;
}

static block_ops describe(mu_vit_pass *pass, const mu_unit_memory *memory)
{
	block_ops b;
	mu_pass_pair received = mu_pass_received(pass, (size_t)memory->unit->block);
	describe_attention(pass, memory, &received, &b);
	describe_mlp(pass, memory, &b);
	return b;
}

static void take_block(const mu_vit_pass *pass, mu_arena *step, mu_block_buffers *buffers)
{
	const size_t rows = pass->rows, width = pass->vit->config.width, mlp_width = pass->vit->config.mlp_width;
	buffers->qkv = mu_pass_take(pass, step, rows * 3 * width);
	buffers->o = mu_pass_take(pass, step, rows * width);
	buffers->y2 = mu_pass_take(pass, step, rows * width);
	buffers->pre = mu_pass_take(pass, step, rows * mlp_width);
	buffers->post = mu_pass_take(pass, step, rows * mlp_width);
}

/* Without backward qkv and o are done when pre and post begin, and the patches before qkv begins. */
static void take_shared(const mu_vit_pass *pass, mu_arena *step, mu_block_buffers *buffers)
{
	const mural_model_config *c = &pass->vit->config;
	size_t qkv = mu_pass_bytes(pass, pass->rows * 3 * c->width), o = mu_pass_bytes(pass, pass->rows * c->width);
	size_t hidden = mu_pass_bytes(pass, pass->rows * c->mlp_width);
	size_t patches = mu_pass_bytes(pass, pass->images * c->channels * c->image_height * c->image_width);
	char *wide = mu_arena_take(step, mu_max(patches, mu_max(qkv + o, 2 * hidden)));
	buffers->qkv = wide;
	buffers->o = wide + qkv;
	buffers->pre = wide;
	buffers->post = wide + hidden;
	buffers->y2 = buffers->y1;
}

static void take_statistics(const mu_vit_pass *pass, mu_arena *step, mu_block_buffers *buffers)
{
	buffers->mean1 = mu_pass_take_stat(pass, step, pass->rows);
	buffers->rstd1 = mu_pass_take_stat(pass, step, pass->rows);
	buffers->mean2 = mu_pass_take_stat(pass, step, pass->rows);
	buffers->rstd2 = mu_pass_take_stat(pass, step, pass->rows);
	buffers->lse = mu_pass_take_stat(pass, step, pass->rows * pass->vit->config.heads);
	if (pass->scaled) {
		buffers->keep1_B = mu_pass_take_stat(pass, step, pass->images);
		buffers->keep2_B = mu_pass_take_stat(pass, step, pass->images);
	}
}

void mu_blocks_take(mu_vit_pass *pass, mu_arena *step)
{
	const size_t depth = pass->vit->config.depth, elements = pass->rows * pass->vit->config.width;
	void *before = mu_pass_take(pass, step, elements); /* what the unit in front leaves becomes s1 */
	for (size_t l = 0; l < depth; l++) {
		mu_block_buffers *buffers = &pass->blocks[l];
		if (!pass->training && l > 0) {
			*buffers = pass->blocks[0];
			continue;
		}
		buffers->s1 = before;
		buffers->y1 = mu_pass_take(pass, step, elements);
		buffers->s2 = mu_pass_take(pass, step, elements);
		take_statistics(pass, step, buffers);
		if (pass->training) {
			take_block(pass, step, buffers);
			before = mu_pass_take(pass, step, elements);
		} else {
			take_shared(pass, step, buffers);
		}
		buffers->x = before;
	}
}

size_t mu_block_workspace_bytes(mu_vit_pass *pass, const mu_unit_memory *memory)
{
	block_ops b = describe(pass, memory);
	size_t most = pass->ops->layernorm_workspace(pass->context, &b.norm1);
	most = mu_max(most, pass->ops->layernorm_workspace(pass->context, &b.norm2));
	most = mu_max(most, pass->ops->attention_workspace(pass->context, &b.attention));
	const mu_linear *linears[] = {&b.qkv, &b.out, &b.fc1, &b.fc2};
	for (size_t i = 0; i < sizeof linears / sizeof linears[0]; i++)
		most = mu_max(most, pass->ops->linear_workspace(pass->context, linears[i]));
	return most;
}

/* In place on what lies between the units, or on its gradient. Does nothing where nothing is dropped. */
static mural_status drop(const mu_vit_pass *pass, mu_purpose purpose, uint32_t layer, size_t width, void *x,
                         mural_error *err)
{
	mu_dropout op = {.type = pass->type,
	                 .images = pass->images,
	                 .elements_per_image = pass->vit->tokens * width,
	                 .rule = mu_pass_dropout(pass, purpose, layer, pass->vit->config.dropout),
	                 .x = x};
	return op.rule.threshold ? pass->ops->dropout(pass->context, &op, err) : MURAL_OK;
}

static mural_status drop_hidden(const mu_vit_pass *pass, int block, void *x_TF, mural_error *err)
{
	return drop(pass, MU_PURPOSE_HIDDEN_DROPOUT, (uint32_t)block, pass->vit->config.mlp_width, x_TF, err);
}

/* branch: 0 attention, 1 MLP. */
static mural_status drop_branch(const mu_vit_pass *pass, int block, uint32_t branch, void *x_TD, mural_error *err)
{
	return drop(pass, MU_PURPOSE_BRANCH_DROPOUT, 2 * (uint32_t)block + branch, pass->vit->config.width, x_TD, err);
}

static mural_status draw_path(const mu_vit_pass *pass, int block, uint32_t branch, void *keep_B, mural_error *err)
{
	if (!pass->scaled)
		return MURAL_OK;
	const mural_model_config *c = &pass->vit->config;
	double rate = c->depth > 1 ? c->drop_path * block / (double)(c->depth - 1) : 0;
	mu_drop_path op = {.type = pass->type,
	                   .images = pass->images,
	                   .rule = mu_pass_dropout(pass, MU_PURPOSE_DROP_PATH, 2 * (uint32_t)block + branch, rate),
	                   .keep_B = keep_B};
	return pass->ops->drop_path(pass->context, &op, err);
}

mural_status mu_block_forward(mu_vit_pass *pass, const mu_unit_memory *memory, mural_error *err)
{
	const int block = memory->unit->block;
	const mu_block_buffers *buffers = &pass->blocks[block];
	const mu_ops *ops = pass->ops;
	block_ops b = describe(pass, memory);
	MU_TRY(ops->layernorm_forward(pass->context, &b.norm1, err));
	MU_TRY(ops->linear_forward(pass->context, &b.qkv, err));
	MU_TRY(ops->attention_forward(pass->context, &b.attention, err));
	MU_TRY(ops->linear_forward(pass->context, &b.out, err));
	MU_TRY(drop_branch(pass, block, 0, b.out.y, err));
	MU_TRY(draw_path(pass, block, 0, buffers->keep1_B, err));

	MU_TRY(ops->layernorm_forward(pass->context, &b.norm2, err));
	MU_TRY(ops->linear_forward(pass->context, &b.fc1, err));
	MU_TRY(drop_hidden(pass, block, b.fc1.y, err));
	MU_TRY(ops->linear_forward(pass->context, &b.fc2, err));
	MU_TRY(drop_branch(pass, block, 1, b.fc2.y, err));
	return draw_path(pass, block, 1, buffers->keep2_B, err);
}

mural_status mu_block_backward(mu_vit_pass *pass, const mu_unit_memory *memory, mural_error *err)
{
	const int block = memory->unit->block;
	const mu_ops *ops = pass->ops;
	block_ops b = describe(pass, memory);
	b.norm1.sum = pass->blocks[block].s1; /* backward always wants it */
	MU_TRY(drop_branch(pass, block, 1, b.fc2.d_y, err));
	MU_TRY(ops->linear_backward(pass->context, &b.fc2, err));
	MU_TRY(drop_hidden(pass, block, b.fc1.d_y, err));
	MU_TRY(ops->linear_backward(pass->context, &b.fc1, err));
	MU_TRY(ops->layernorm_backward(pass->context, &b.norm2, err));

	MU_TRY(drop_branch(pass, block, 0, b.out.d_y, err));
	MU_TRY(ops->linear_backward(pass->context, &b.out, err));
	MU_TRY(ops->attention_backward(pass->context, &b.attention, err));
	MU_TRY(ops->linear_backward(pass->context, &b.qkv, err));
	return ops->layernorm_backward(pass->context, &b.norm1, err);
}
