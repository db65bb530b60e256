/* The reference as a table on the host device. It keeps no state: one address serves as every context.
 * SPDX-License-Identifier: MIT */
#include "base/version.h"
#include "kernels/reference/reference.h"

static char stateless;

static mural_status reference_open(mu_queue *queue, int threads, mu_ops_context **context, mural_error *err)
{
	(void)queue;
	(void)threads;
	(void)err;
	*context = (mu_ops_context *)(void *)&stateless;
	return MURAL_OK;
}

static void reference_close(mu_ops_context *context)
{
	(void)context;
}

static bool reference_supports(mu_ops_context *context, mu_dtype type)
{
	(void)context;
	return type == MU_F32 || type == MU_BF16 || type == MU_F16 || type == MU_F64;
}

static size_t embed_workspace(mu_ops_context *context, const mu_embed *op)
{
	(void)context;
	(void)op;
	return 0;
}

static size_t linear_workspace(mu_ops_context *context, const mu_linear *op)
{
	(void)context;
	(void)op;
	return 0;
}

static size_t sum_squares_workspace(mu_ops_context *context, const mu_sum_squares *op)
{
	(void)context;
	(void)op;
	return 0;
}

static size_t tensor_norms_workspace(mu_ops_context *context, const mu_tensor_norms *op)
{
	(void)context;
	(void)op;
	return 0;
}

const mu_ops mu_ops_reference = {
        .name = "reference",
        .build_id = MU_BUILD_ID,
        .version = MU_OPS_VERSION,
        .device = &mu_device_host,
        .open = reference_open,
        .close = reference_close,
        .supports = reference_supports,
        .patchify = mu_reference_patchify,
        .embed_forward = mu_reference_embed_forward,
        .embed_backward = mu_reference_embed_backward,
        .embed_workspace = embed_workspace,
        .layernorm_forward = mu_reference_layernorm_forward,
        .layernorm_backward = mu_reference_layernorm_backward,
        .layernorm_workspace = mu_reference_layernorm_workspace,
        .linear_forward = mu_reference_linear_forward,
        .linear_backward = mu_reference_linear_backward,
        .linear_workspace = linear_workspace,
        .attention_forward = mu_reference_attention_forward,
        .attention_backward = mu_reference_attention_backward,
        .attention_workspace = mu_reference_attention_workspace,
        .dropout = mu_reference_dropout,
        .drop_path = mu_reference_drop_path,
        .pool_forward = mu_reference_pool_forward,
        .pool_backward = mu_reference_pool_backward,
        .cross_entropy = mu_reference_cross_entropy,
        .settle = mu_reference_settle,
        .adamw = mu_reference_adamw,
        .sum_squares = mu_reference_sum_squares,
        .sum_squares_workspace = sum_squares_workspace,
        .cast = mu_reference_cast,
        .accumulate = mu_reference_accumulate,
        .sgd = mu_reference_sgd,
        .lion = mu_reference_lion,
        .lamb = mu_reference_lamb,
        .momentum = mu_reference_momentum,
        .newton_schulz = mu_reference_newton_schulz,
        .newton_schulz_workspace = mu_reference_newton_schulz_workspace,
        .tensor_norms = mu_reference_tensor_norms,
        .tensor_norms_workspace = tensor_norms_workspace,
        .apply_update = mu_reference_apply_update,
        .ema = mu_reference_ema,
};
