/* The rows of the reference table, for table.c. What each computes is said in kernels/ops.h.
 *
 * Rules of this folder: loops in the order of the formula, sums in double, each output rounded once from the exact
 * function of the inputs. Where a row goes on from one of its own outputs (layernorm's sum, linear's gradient of pre), it
 * reads back what it stored, as every later call will. No threads, no tricks: it is the yardstick.
 * SPDX-License-Identifier: MIT */
#ifndef MU_KERNELS_REFERENCE_REFERENCE_H
#define MU_KERNELS_REFERENCE_REFERENCE_H

#include "kernels/ops.h"
#include "kernels/reference/element.h"

mural_status mu_reference_patchify(mu_ops_context *context, const mu_patchify *op, mural_error *err);
mural_status mu_reference_embed_forward(mu_ops_context *context, const mu_embed *op, mural_error *err);
mural_status mu_reference_embed_backward(mu_ops_context *context, const mu_embed *op, mural_error *err);
mural_status mu_reference_layernorm_forward(mu_ops_context *context, const mu_layernorm *op, mural_error *err);
mural_status mu_reference_layernorm_backward(mu_ops_context *context, const mu_layernorm *op, mural_error *err);
mural_status mu_reference_linear_forward(mu_ops_context *context, const mu_linear *op, mural_error *err);
mural_status mu_reference_linear_backward(mu_ops_context *context, const mu_linear *op, mural_error *err);
mural_status mu_reference_attention_forward(mu_ops_context *context, const mu_attention *op, mural_error *err);
mural_status mu_reference_attention_backward(mu_ops_context *context, const mu_attention *op, mural_error *err);
mural_status mu_reference_dropout(mu_ops_context *context, const mu_dropout *op, mural_error *err);
mural_status mu_reference_drop_path(mu_ops_context *context, const mu_drop_path *op, mural_error *err);
mural_status mu_reference_pool_forward(mu_ops_context *context, const mu_pool *op, mural_error *err);
mural_status mu_reference_pool_backward(mu_ops_context *context, const mu_pool *op, mural_error *err);
mural_status mu_reference_cross_entropy(mu_ops_context *context, const mu_cross_entropy *op, mural_error *err);
mural_status mu_reference_settle(mu_ops_context *context, const mu_settle *op, mural_error *err);
mural_status mu_reference_adamw(mu_ops_context *context, const mu_adamw *op, mural_error *err);
mural_status mu_reference_sum_squares(mu_ops_context *context, const mu_sum_squares *op, mural_error *err);
mural_status mu_reference_cast(mu_ops_context *context, const mu_cast *op, mural_error *err);
mural_status mu_reference_accumulate(mu_ops_context *context, const mu_accumulate *op, mural_error *err);
mural_status mu_reference_sgd(mu_ops_context *context, const mu_sgd *op, mural_error *err);
mural_status mu_reference_lion(mu_ops_context *context, const mu_lion *op, mural_error *err);
mural_status mu_reference_lamb(mu_ops_context *context, const mu_lamb *op, mural_error *err);
mural_status mu_reference_momentum(mu_ops_context *context, const mu_momentum *op, mural_error *err);
mural_status mu_reference_newton_schulz(mu_ops_context *context, const mu_newton_schulz *op, mural_error *err);
mural_status mu_reference_tensor_norms(mu_ops_context *context, const mu_tensor_norms *op, mural_error *err);
mural_status mu_reference_apply_update(mu_ops_context *context, const mu_apply_update *op, mural_error *err);
mural_status mu_reference_ema(mu_ops_context *context, const mu_ema *op, mural_error *err);

size_t mu_reference_layernorm_workspace(mu_ops_context *context, const mu_layernorm *op);
size_t mu_reference_attention_workspace(mu_ops_context *context, const mu_attention *op);
size_t mu_reference_newton_schulz_workspace(mu_ops_context *context, const mu_newton_schulz *op);

/* 0 for a dropped element, the rule's scale for a kept one; 1 without dropout. */
static inline double mu_reference_keep(const mu_dropout_rule *rule, size_t image, size_t element)
{
	if (rule->threshold == 0)
		return 1;
	return mu_random_u32(rule->key, rule->stream_B[image], element) >= rule->threshold ? rule->scale : 0;
}

/* A weight that an optimizer changes: the master where there is one. */
static inline double mu_reference_load_weight(mu_dtype type, const void *parameter, const float *master, size_t i)
{
	return master ? master[i] : mu_element_load(type, parameter, i);
}

static inline void mu_reference_store_weight(mu_dtype type, void *parameter, float *master, size_t i, double value)
{
	if (master) {
		master[i] = (float)value;
		value = master[i]; /* the parameter is the rounded master, whoever computes it */
	}
	mu_element_store(type, parameter, i, value);
}

#endif
