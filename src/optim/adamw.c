/* AdamW, and Adam with L2 in the gradient. SPDX-License-Identifier: MIT */
#include <stddef.h>

#include "optim/optimizer.h"

mural_status mu_optimizer_adam_segment(const mu_stepping *step, const mu_segment *segment, double lr, bool decoupled,
                                       mural_error *err)
{
	const mu_update *u = step->update;
	const mu_dtype state = mu_optimizer_state_type(u->type);
	const mu_adamw call = {.type = u->type,
	                       .n = segment->elements,
	                       .lr = lr,
	                       .beta1 = step->at.beta1,
	                       .beta2 = step->at.beta2,
	                       .eps = step->config->eps,
	                       .decay = mu_optimizer_decay(step, segment),
	                       .bias1 = mu_optimizer_bias(step, step->at.beta1),
	                       .bias2 = mu_optimizer_bias(step, step->at.beta2),
	                       .gradient_scale = u->gradient_scale,
	                       .decoupled = decoupled,
	                       .parameter = mu_optimizer_at(u->parameters, u->type, segment),
	                       .master = mu_optimizer_master(step, segment),
	                       .gradient = mu_optimizer_at(u->gradients, u->type, segment),
	                       .m = mu_optimizer_at(u->m, state, segment),
	                       .v = mu_optimizer_at(u->v, state, segment)};
	return step->ops->adamw(step->context, &call, err);
}

static mural_status apply(const mu_stepping *step, mural_error *err)
{
	const bool decoupled = step->config->kind == MURAL_OPTIMIZER_ADAMW;
	for (size_t i = 0; i < step->segments->count; i++) {
		const mu_segment *segment = &step->segments->list[i];
		MU_TRY(mu_optimizer_adam_segment(step, segment, step->at.lr * segment->lr_scale, decoupled, err));
	}
	return MURAL_OK;
}

const mu_optimizer mu_optimizer_adamw = {.kind = MURAL_OPTIMIZER_ADAMW,
                                         .name = "AdamW",
                                         .needs = {.spans = 2},
                                         .rows = {offsetof(mu_ops, adamw)},
                                         .apply = apply};

const mu_optimizer mu_optimizer_adam = {.kind = MURAL_OPTIMIZER_ADAM,
                                        .name = "Adam",
                                        .needs = {.spans = 2},
                                        .rows = {offsetof(mu_ops, adamw)},
                                        .apply = apply};
