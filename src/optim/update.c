/* The table of optimizers, and what all have in common. SPDX-License-Identifier: MIT */
#include "optim/update.h"

#include <string.h>

#include "optim/optimizer.h"

static const mu_optimizer *const optimizers[] = {&mu_optimizer_adamw, &mu_optimizer_adam, &mu_optimizer_sgd,
                                                 &mu_optimizer_lion,  &mu_optimizer_lamb, &mu_optimizer_muon};

static const mu_optimizer *find(mural_optimizer_kind kind)
{
	for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++)
		if (optimizers[i]->kind == kind)
			return optimizers[i];
	return NULL;
}

mu_optimizer_needs mu_update_needs(const mural_optimizer_config *config)
{
	const mu_optimizer *optimizer = find(config->kind);
	mu_optimizer_needs needs = optimizer ? optimizer->needs : (mu_optimizer_needs){0};
	if (config->kind == MURAL_OPTIMIZER_SGD && config->momentum == 0)
		needs.spans = 0;
	return needs;
}

static bool has_row(const mu_ops *ops, size_t place)
{
	static void (*const null)(void);
	return memcmp((const char *)ops + place, &null, sizeof null) != 0;
}

mural_status mu_update_check(const mural_optimizer_config *config, const mu_ops *ops, mural_error *err)
{
	const mu_optimizer *optimizer = find(config->kind);
	if (!optimizer)
		return mu_fail(err, MURAL_USAGE, NULL, "optimizer \"%s\" is not supported yet", config->name);
	for (size_t i = 0; i < MU_OPTIMIZER_MAX_ROWS && optimizer->rows[i]; i++)
		if (!has_row(ops, optimizer->rows[i]))
			return mu_fail(err, MURAL_USAGE, NULL,
			               "optimizer %s is not built for the \"%s\" operations yet: use AdamW, Adam or "
			               "other operations",
			               optimizer->name, ops->name);
	return MURAL_OK;
}

size_t mu_update_workspace(const mu_segments *segments, const mural_optimizer_config *config, mu_dtype type,
                           const mu_ops *ops, mu_ops_context *context)
{
	const mu_optimizer *optimizer = find(config->kind);
	const mu_update update = {.type = type};
	const mu_stepping step = {
	        .segments = segments, .config = config, .update = &update, .ops = ops, .context = context};
	return optimizer && optimizer->workspace ? optimizer->workspace(&step) : 0;
}

mural_status mu_update_apply(const mu_segments *segments, const mural_optimizer_config *config, const mu_update *update,
                             const mu_ops *ops, mu_ops_context *context, mural_error *err)
{
	MU_TRY(mu_update_check(config, ops, err));
	const mu_stepping step = {segments, config, update, ops, context};
	return find(config->kind)->apply(&step, err);
}

mural_status mu_optimizer_follow(const mu_stepping *step, const mu_segment *segment, mu_apply_update call,
                                 mural_error *err)
{
	const mu_update *u = step->update;
	call.type = u->type;
	call.at = u->decision;
	call.n = segment->elements;
	call.parameter = mu_optimizer_at(u->parameters, u->type, segment);
	call.master = mu_optimizer_master(step, segment);
	call.update = mu_optimizer_at(u->work, mu_optimizer_state_type(u->type), segment);
	return step->ops->apply_update(step->context, &call, err);
}
