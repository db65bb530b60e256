/* AdamW, and Adam with L2 in the gradient. SPDX-License-Identifier: MIT */
#include <stddef.h>

#include "optim/optimizer.h"

mural_status mu_optimizer_adam_segment(const mu_stepping *step, const mu_segment *segment, double lr_scale,
                                       bool decoupled, mural_error *err)
{
	const mu_update *u = step->update;
	const mu_dtype state = mu_optimizer_state_type(u->type);
	const mu_adamw call = {.type = u->type,
	                       .n = segment->elements,
	                       .at = u->decision,
	                       .lr_scale = lr_scale,
	                       .eps = step->config->eps,
	                       .decay = mu_optimizer_decay(step, segment),
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
		MU_TRY(mu_optimizer_adam_segment(step, segment, (double)segment->lr_scale, decoupled, err));
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
