/* Unit 0: pixels to patches, patches to tokens. The patches are kept for the weight's gradient; pixels need none.
 * SPDX-License-Identifier: MIT */
#include "model/pass.h"

typedef struct embed_ops {
	mu_linear patch;
	mu_embed embed;
} embed_ops;

static size_t patch_elements(const mu_vit_pass *pass)
{
	const mural_model_config *c = &pass->vit->config;
	return c->channels * c->patch * c->patch;
}

static embed_ops describe(const mu_vit_pass *pass, const mu_unit_memory *memory)
{
	const size_t width = pass->vit->config.width, rows = pass->images * pass->vit->patches;
	embed_ops e = {.patch = mu_pass_linear(pass, memory, MU_ROLE_PATCH_W, rows, patch_elements(pass), width)};
	e.patch.x = pass->patches;
	e.patch.y = pass->patch_TD;
	e.patch.d_y = pass->d_y_TD;
	e.embed = (mu_embed){.type = pass->type,
	                     .images = pass->images,
	                     .patches = pass->vit->patches,
	                     .width = width,
	                     .dropout = mu_pass_dropout(pass, MU_PURPOSE_EMBED_DROPOUT, 0, pass->vit->config.dropout),
	                     .patch = pass->patch_TD,
	                     .class_token = mu_pass_parameter(pass, memory, MU_ROLE_CLASS_TOKEN),
	                     .position = mu_pass_parameter(pass, memory, MU_ROLE_POSITION),
	                     .x = pass->x_TD,
	                     .d_x = pass->d_r_TD,
	                     .d_patch = pass->d_y_TD,
	                     .d_class_token = mu_pass_gradient(pass, memory, MU_ROLE_CLASS_TOKEN),
	                     .d_position = mu_pass_gradient(pass, memory, MU_ROLE_POSITION),
	                     .scratch = pass->scratch};
	return e;
}

/* patch_TD borrows a buffer that block 0 fills later; without backward so do the patches. */
void mu_embed_take(mu_vit_pass *pass, mu_arena *step)
{
	const mu_block_buffers *first = &pass->blocks[0];
	pass->x_TD = first->s1;
	pass->patch_TD = first->y1;
	pass->patches = first->qkv;
	if (pass->training)
		pass->patches = mu_pass_take(pass, step, pass->images * pass->vit->patches * patch_elements(pass));
}

size_t mu_embed_workspace_bytes(mu_vit_pass *pass, const mu_unit_memory *memory)
{
	embed_ops e = describe(pass, memory);
	return mu_max(pass->ops->linear_workspace(pass->context, &e.patch),
	              pass->ops->embed_workspace(pass->context, &e.embed));
}

mural_status mu_embed_forward(mu_vit_pass *pass, const mu_unit_memory *memory, const mu_vit_input *input,
                              mural_error *err)
{
	const mural_model_config *c = &pass->vit->config;
	mu_patchify patchify = {.type = pass->type,
	                        .images = pass->images,
	                        .micro = input->micro,
	                        .channels = c->channels,
	                        .height = c->image_height,
	                        .width = c->image_width,
	                        .patch = c->patch,
	                        .image_channels = input->image_channels,
	                        .factor = input->factor,
	                        .pixels = input->pixels,
	                        .cut_B = input->cut_B,
	                        .patches = pass->patches};
	for (size_t i = 0; i < c->channels; i++) {
		patchify.mean[i] = input->mean_C ? input->mean_C[i] : 0.0f;
		patchify.std[i] = input->std_C ? input->std_C[i] : 1.0f;
	}
	embed_ops e = describe(pass, memory);
	MU_TRY(pass->ops->patchify(pass->context, &patchify, err));
	MU_TRY(pass->ops->linear_forward(pass->context, &e.patch, err));
	return pass->ops->embed_forward(pass->context, &e.embed, err);
}

mural_status mu_embed_backward(mu_vit_pass *pass, const mu_unit_memory *memory, mural_error *err)
{
	embed_ops e = describe(pass, memory);
	MU_TRY(pass->ops->embed_backward(pass->context, &e.embed, err));
	return pass->ops->linear_backward(pass->context, &e.patch, err);
}
