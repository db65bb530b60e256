/* What the configuration says of single tensors (decay, rates, frozen, trust ratios, Muon), told to the model's table before
 * the optimizer's segments are made of it.
 * SPDX-License-Identifier: MIT */
#include "engine/engine_internal.h"

static mural_status mark_tensors(mu_vit *vit, const mural_optimizer_config *optimizer, unsigned heeded,
                                 mural_error *err)
{
	const bool weights_only = optimizer->decay_rule == MURAL_DECAY_WEIGHTS;
	mu_vit_apply_decay_rule(vit, weights_only);
	mu_vit_apply_lr_decay(vit, optimizer->layer_decay);
	MU_TRY(mu_vit_freeze(vit, optimizer->freeze, err));
	if (heeded & MU_TENSOR_TRUST)
		mu_vit_apply_trust_rule(vit, weights_only); /* with timm's decay goes timm's trust */
	if (heeded & MU_TENSOR_MUON)
		mu_vit_apply_muon_rule(vit);
	return MURAL_OK;
}

static bool any_frozen(const mu_vit *vit)
{
	for (size_t u = 0; u < vit->n_units; u++)
		for (size_t i = 0; i < vit->units[u].n_tensors; i++)
			if (vit->units[u].tensors[i].flags & MU_TENSOR_FROZEN)
				return true;
	return false;
}

mural_status mu_engine_apply_rules(mural_engine *engine, mural_error *err)
{
	const mural_optimizer_config *optimizer = &engine->config.optimizer;
	if (!engine->training)
		return MURAL_OK;
	MU_TRY(mu_update_check(optimizer, engine->ops, err));
	if (optimizer->ema_decay > 0 && !engine->ops->ema)
		return mu_fail(
		        err, MURAL_USAGE, NULL,
		        "averages of weights are not built for the \"%s\" operations yet: leave mural.ema off or "
		        "use other operations",
		        engine->ops->name);
	MU_TRY(mark_tensors(&engine->vit, optimizer, mu_update_needs(optimizer).flags, err));
	engine->first_trained = mu_vit_first_trained(&engine->vit);
	engine->any_frozen = any_frozen(&engine->vit);
	return mu_segments_init(&engine->segments, engine->vit.units, engine->vit.n_units, err);
}
