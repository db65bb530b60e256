/* Inside a pass: the buffers of one micro-batch and how the files of this folder share them.
 *
 * One struct per operation describes forward and backward at once; embed.c, block.c and head.c each build the structs of
 * their unit in one function, and run, differentiate and plan (ask for workspace) from the same description.
 *
 * Kept for backward, per block, T = capacity * N rows:
 *     s1_TD y1_TD qkv_T3D o_TD lse s2_TD y2_TD pre_TF post_TF, mean and rstd of both norms, keep_B of both branches
 * A branch's output is overwritten by the sum that the next norm makes of it and the residual stream, since backward
 * needs only the sum: out's output becomes s2, fc2's output becomes s1 of the next block.
 *
 * Gradients, shared by all units:
 *     d_r_TD     gradient of the residual stream, updated in place from block to block
 *     d_y_TD     gradient behind a norm; with `scaled` branches also the gradient of a branch's output
 *     d_wide     gradient of the hidden layer, then of attention's output and of qkv
 * `scaled`: branches are multiplied (drop path) or masked (dropout) on the way, so their gradient differs from d_r_TD
 * and gets its own buffer; keep_B is then always drawn, all ones where the drop path rate is 0. Otherwise they are one.
 *
 * Not training: all blocks share one set of buffers and nothing random happens.
 * SPDX-License-Identifier: MIT */
#ifndef MU_MODEL_PASS_H
#define MU_MODEL_PASS_H

#include "model/vit.h"

typedef struct mu_block_buffers {
	void *s1, *mean1, *rstd1, *y1; /* s1 is where the branch output of the unit before lies */
	void *qkv, *o, *lse;
	void *s2, *mean2, *rstd2, *y2;
	void *pre, *post, *x; /* x: output of the block's second branch */
	void *keep1_B, *keep2_B; /* of the attention and the MLP branch; NULL unless scaled */
} mu_block_buffers;

struct mu_vit_pass {
	const mu_vit *vit;
	const mu_ops *ops;
	mu_ops_context *context;
	mu_dtype type;
	size_t capacity; /* images that there is room for */
	size_t images, rows; /* that are computed, and T of them: mu_vit_pass_images */
	bool training, scaled;
	uint32_t seed;
	const uint64_t *stream_B; /* of the input that unit 0 saw */

	void *patches, *patch_TD, *x_TD; /* pixels, embedded, with positions */
	void *pooled_x_BD, *pooled_r_BD, *norm_mean, *norm_rstd, *norm_y_BD, *logits_BC;
	void *d_r_TD, *d_y_TD, *d_wide;
	void *d_norm_y_BD, *d_pooled_BD;
	void *scratch;
	size_t scratch_bytes;
	mu_block_buffers blocks[];
};

/* A unit's parameters and, in backward, gradients. */
typedef struct mu_unit_memory {
	const mu_unit *unit;
	const void *parameters;
	void *gradients;
} mu_unit_memory;

/* Where a tensor lies, or NULL if the unit lacks it or, for gradients, in forward. */
const void *mu_pass_parameter(const mu_vit_pass *pass, const mu_unit_memory *memory, mu_role role);
void *mu_pass_gradient(const mu_vit_pass *pass, const mu_unit_memory *memory, mu_role role);

/* A linear layer whose bias follows its weight in the roles. x, y, pre, d_x, d_y are left to the caller. */
mu_linear mu_pass_linear(const mu_vit_pass *pass, const mu_unit_memory *memory, mu_role weight, size_t rows, size_t in,
                         size_t out);
/* A norm likewise, over `rows` rows. x, r, keep_B, sum, y, mean, rstd, d_* are left to the caller. */
mu_layernorm mu_pass_norm(const mu_vit_pass *pass, const mu_unit_memory *memory, mu_role weight, size_t rows);
/* Keeps everything when p is 0 or the pass does not train. */
mu_dropout_rule mu_pass_dropout(const mu_vit_pass *pass, mu_purpose purpose, uint32_t layer, double p);

/* The place of the branch output and of the residual stream (NULL before block 0) that block `block`, or the head for
 * block == depth, receives, and of the factor on the branch (NULL for 1). */
typedef struct mu_pass_pair {
	void *x, *r, *keep_B;
} mu_pass_pair;
mu_pass_pair mu_pass_received(mu_vit_pass *pass, size_t block);

/* Gradient of a branch's output: a buffer of its own when scaled. */
void *mu_pass_d_branch(const mu_vit_pass *pass);

/* Each unit: its buffers from the arena; the bytes of workspace it needs; forward; backward. */
void mu_embed_take(mu_vit_pass *pass, mu_arena *step);
size_t mu_embed_workspace_bytes(mu_vit_pass *pass, const mu_unit_memory *memory);
mural_status mu_embed_forward(mu_vit_pass *pass, const mu_unit_memory *memory, const mu_vit_input *input,
                              mural_error *err);
mural_status mu_embed_backward(mu_vit_pass *pass, const mu_unit_memory *memory, mural_error *err);

void mu_blocks_take(mu_vit_pass *pass, mu_arena *step);
size_t mu_block_workspace_bytes(mu_vit_pass *pass, const mu_unit_memory *memory);
mural_status mu_block_forward(mu_vit_pass *pass, const mu_unit_memory *memory, mural_error *err);
mural_status mu_block_backward(mu_vit_pass *pass, const mu_unit_memory *memory, mural_error *err);

void mu_head_take(mu_vit_pass *pass, mu_arena *step);
size_t mu_head_workspace_bytes(mu_vit_pass *pass, const mu_unit_memory *memory);
mural_status mu_head_forward(mu_vit_pass *pass, const mu_unit_memory *memory, mural_error *err);
mural_status mu_head_backward(mu_vit_pass *pass, const mu_unit_memory *memory, mural_error *err);

/* Shared by the units' take functions: `elements` of the pass's type, and of its statistics' type. */
void *mu_pass_take(const mu_vit_pass *pass, mu_arena *arena, size_t elements);
void *mu_pass_take_stat(const mu_vit_pass *pass, mu_arena *arena, size_t elements);
/* Padded bytes of `elements` of the pass's type: where the next buffer may begin. */
size_t mu_pass_bytes(const mu_vit_pass *pass, size_t elements);

static inline size_t mu_max(size_t a, size_t b)
{
	return a > b ? a : b;
}

#endif
