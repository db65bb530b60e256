/* LAMB: all directions first, then the norms of all tensors, then all steps. Where tensors lie in pieces on several
 * ranks, the squares in scratch are what has to be summed between the last two.
 *
 *     scratch: | squares of weights, [extents] | squares of directions, [extents] | room of tensor_norms |
 * SPDX-License-Identifier: MIT */
#include <stddef.h>

#include "optim/optimizer.h"

#define ALIGN 64

static size_t squares_bytes(const mu_stepping *step)
{
	return (2 * step->segments->n_extents * sizeof(double) + ALIGN - 1) / ALIGN * ALIGN;
}

static mu_tensor_norms norms_of(const mu_stepping *step, mu_dtype type, const void *x, double *squares)
{
	return (mu_tensor_norms){.type = type,
	                         .n_tensors = step->segments->n_extents,
	                         .extents = step->segments->extents,
	                         .x = x,
	                         .squares = squares,
	                         .scratch = (char *)step->update->scratch + squares_bytes(step)};
}

static size_t workspace(const mu_stepping *step)
{
	const mu_dtype types[] = {step->update->type, mu_optimizer_state_type(step->update->type)};
	size_t most = 0;
	for (size_t i = 0; i < 2; i++) {
		const mu_tensor_norms call = {
		        .type = types[i], .n_tensors = step->segments->n_extents, .extents = step->segments->extents};
		const size_t need = step->ops->tensor_norms_workspace(step->context, &call);
		most = need > most ? need : most;
	}
	return squares_bytes(step) + most;
}

static mural_status direct(const mu_stepping *step, mural_error *err)
{
	const mu_update *u = step->update;
	const mu_dtype state = mu_optimizer_state_type(u->type);
	mu_lamb call = {.type = u->type,
	                .at = u->decision,
	                .eps = step->config->eps,
	                .eps_inside = step->config->eps_inside_sqrt};
	for (size_t i = 0; i < step->segments->count; i++) {
		const mu_segment *segment = &step->segments->list[i];
		call.n = segment->elements;
		call.decay = mu_optimizer_decay(step, segment);
		call.parameter = mu_optimizer_at(u->parameters, u->type, segment);
		call.master = mu_optimizer_master(step, segment);
		call.gradient = mu_optimizer_at(u->gradients, u->type, segment);
		call.m = mu_optimizer_at(u->m, state, segment);
		call.v = mu_optimizer_at(u->v, state, segment);
		call.update = mu_optimizer_at(u->work, state, segment);
		MU_TRY(step->ops->lamb(step->context, &call, err));
	}
	return MURAL_OK;
}

static mural_status measure(const mu_stepping *step, double *weights, double *updates, mural_error *err)
{
	const mu_update *u = step->update;
	const mu_dtype state = mu_optimizer_state_type(u->type);
	const mu_tensor_norms of_weights = u->master ? norms_of(step, MU_F32, u->master, weights)
	                                             : norms_of(step, u->type, u->parameters, weights);
	const mu_tensor_norms of_updates = norms_of(step, state, u->work, updates);
	MU_TRY(step->ops->tensor_norms(step->context, &of_weights, err));
	return step->ops->tensor_norms(step->context, &of_updates, err);
}

static mural_status apply(const mu_stepping *step, mural_error *err)
{
	double *weights = step->update->scratch, *updates = weights + step->segments->n_extents;
	MU_TRY(direct(step, err));
	MU_TRY(measure(step, weights, updates, err));
	for (size_t i = 0; i < step->segments->count; i++) {
		const mu_segment *segment = &step->segments->list[i];
		mu_apply_update call = {.lr_scale = (double)segment->lr_scale,
		                        .scale = 1,
		                        .min_ratio = step->config->min_coeff,
		                        .max_ratio = step->config->max_coeff};
		if (segment->trusts) {
			call.weight_square = &weights[segment->trust];
			call.update_square = &updates[segment->trust];
		}
		MU_TRY(mu_optimizer_follow(step, segment, call, err));
	}
	return MURAL_OK;
}

const mu_optimizer mu_optimizer_lamb = {
        .kind = MURAL_OPTIMIZER_LAMB,
        .name = "LAMB",
        .needs = {.spans = 2, .work = true, .flags = MU_TENSOR_TRUST},
        .rows = {offsetof(mu_ops, lamb), offsetof(mu_ops, tensor_norms), offsetof(mu_ops, apply_update)},
        .workspace = workspace,
        .apply = apply};
