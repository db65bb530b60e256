/* Stochastic gradient descent. SPDX-License-Identifier: MIT */
#include <stddef.h>

#include "optim/optimizer.h"

static mural_status apply(const mu_stepping *step, mural_error *err)
{
	const mu_update *u = step->update;
	const mural_optimizer_config *config = step->config;
	mu_sgd call = {.type = u->type,
	               .momentum = config->momentum,
	               .dampening = config->dampening,
	               .at = u->decision,
	               .nesterov = config->nesterov};
	for (size_t i = 0; i < step->segments->count; i++) {
		const mu_segment *segment = &step->segments->list[i];
		call.n = segment->elements;
		call.lr_scale = (double)segment->lr_scale;
		call.decay = mu_optimizer_decay(step, segment);
		call.parameter = mu_optimizer_at(u->parameters, u->type, segment);
		call.master = mu_optimizer_master(step, segment);
		call.gradient = mu_optimizer_at(u->gradients, u->type, segment);
		if (config->momentum > 0)
			call.m = mu_optimizer_at(u->m, mu_optimizer_state_type(u->type), segment);
		MU_TRY(step->ops->sgd(step->context, &call, err));
	}
	return MURAL_OK;
}

const mu_optimizer mu_optimizer_sgd = {.kind = MURAL_OPTIMIZER_SGD,
                                       .name = "SGD",
                                       .needs = {.spans = 1},
                                       .rows = {offsetof(mu_ops, sgd)},
                                       .apply = apply};
