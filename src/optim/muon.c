/* Muon (Jordan et al. 2024): momentum, made orthogonal by five Newton-Schulz steps, scaled by the root of how much taller
 * than wide the matrix is. Every other tensor goes by AdamW, at a rate that follows the same schedule.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stddef.h>

#include "optim/optimizer.h"

static mu_newton_schulz orthogonal(const mu_stepping *step, const mu_segment *segment)
{
	return (mu_newton_schulz){.type = step->update->type,
	                          .rows = segment->rows,
	                          .cols = segment->cols,
	                          .steps = 5,
	                          .a = 3.4445,
	                          .b = -4.7750,
	                          .c = 2.0315,
	                          .scratch = step->update->scratch};
}

static size_t workspace(const mu_stepping *step)
{
	size_t most = 0;
	for (size_t i = 0; i < step->segments->count; i++) {
		if (!step->segments->list[i].muon)
			continue;
		const mu_newton_schulz call = orthogonal(step, &step->segments->list[i]);
		const size_t need = step->ops->newton_schulz_workspace(step->context, &call);
		most = need > most ? need : most;
	}
	return most;
}

static mural_status muon_segment(const mu_stepping *step, const mu_segment *segment, mural_error *err)
{
	const mu_update *u = step->update;
	const mu_dtype state = mu_optimizer_state_type(u->type);
	const mu_momentum momentum = {.type = u->type,
	                              .n = segment->elements,
	                              .momentum = step->config->momentum,
	                              .at = u->decision,
	                              .nesterov = step->config->nesterov,
	                              .gradient = mu_optimizer_at(u->gradients, u->type, segment),
	                              .m = mu_optimizer_at(u->m, state, segment),
	                              .update = mu_optimizer_at(u->work, state, segment)};
	mu_newton_schulz call = orthogonal(step, segment);
	call.x = momentum.update;
	MU_TRY(step->ops->momentum(step->context, &momentum, err));
	MU_TRY(step->ops->newton_schulz(step->context, &call, err));
	const double taller = (double)segment->rows / (double)segment->cols;
	const mu_apply_update follow = {.lr_scale = (double)segment->lr_scale,
	                                .scale = taller > 1 ? sqrt(taller) : 1,
	                                .decay = mu_optimizer_decay(step, segment)};
	return mu_optimizer_follow(step, segment, follow, err);
}

static mural_status apply(const mu_stepping *step, mural_error *err)
{
	const double other_scale = step->config->adam_lr / step->config->lr;
	for (size_t i = 0; i < step->segments->count; i++) {
		const mu_segment *segment = &step->segments->list[i];
		if (segment->muon)
			MU_TRY(muon_segment(step, segment, err));
		else
			MU_TRY(mu_optimizer_adam_segment(step, segment, other_scale * (double)segment->lr_scale, true,
			                                 err));
	}
	return MURAL_OK;
}

const mu_optimizer mu_optimizer_muon = {.kind = MURAL_OPTIMIZER_MUON,
                                        .name = "Muon",
                                        .needs = {.spans = 2, .work = true, .flags = MU_TENSOR_MUON},
                                        .rows = {offsetof(mu_ops, adamw), offsetof(mu_ops, momentum),
                                                 offsetof(mu_ops, newton_schulz), offsetof(mu_ops, apply_update)},
                                        .workspace = workspace,
                                        .apply = apply};
