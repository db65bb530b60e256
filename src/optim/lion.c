/* Lion. SPDX-License-Identifier: MIT */
#include <stddef.h>

#include "optim/optimizer.h"

static mural_status apply(const mu_stepping *step, mural_error *err)
{
	const mu_update *u = step->update;
	mu_lion call = {.type = u->type, .at = u->decision};
	for (size_t i = 0; i < step->segments->count; i++) {
		const mu_segment *segment = &step->segments->list[i];
		call.n = segment->elements;
		call.lr_scale = (double)segment->lr_scale;
		call.decay = mu_optimizer_decay(step, segment);
		call.parameter = mu_optimizer_at(u->parameters, u->type, segment);
		call.master = mu_optimizer_master(step, segment);
		call.gradient = mu_optimizer_at(u->gradients, u->type, segment);
		call.m = mu_optimizer_at(u->m, mu_optimizer_state_type(u->type), segment);
		MU_TRY(step->ops->lion(step->context, &call, err));
	}
	return MURAL_OK;
}

const mu_optimizer mu_optimizer_lion = {.kind = MURAL_OPTIMIZER_LION,
                                        .name = "Lion",
                                        .needs = {.spans = 1},
                                        .rows = {offsetof(mu_ops, lion)},
                                        .apply = apply};
