/* Applies an optimizer to flat spans, segment by segment.
 *
 *     mu_optimizer_needs needs = mu_update_needs(&config);         before memory is laid out: how many spans of state
 *     MU_TRY(mu_update_check(&config, ops, err));                  does this table have the optimizer's rows?
 *     bytes = mu_update_workspace(&segments, &config, type, ops, context);      once, before the first step
 *     MU_TRY(mu_update_apply(&segments, &config, &update, ops, context, err));      every update
 *
 *     optimizer   m                  v               work          tensors with flags
 *     AdamW Adam  first moment       second moment
 *     SGD         momentum, or none
 *     Lion        moving average
 *     LAMB        first moment       second moment   direction     TRUST: the step gets a trust ratio
 *     Muon        momentum; others:  others: second  direction     MUON: made orthogonal; others: AdamW
 *                 first moment       moment
 *
 * Which tensors get a flag is the model's business (mu_vit_apply_trust_rule, mu_vit_apply_muon_rule); a flag that the
 * optimizer does not heed only cuts segments smaller.
 * SPDX-License-Identifier: MIT */
#ifndef MU_OPTIM_UPDATE_H
#define MU_OPTIM_UPDATE_H

#include "kernels/ops.h"
#include "mural/config.h"
#include "optim/segments.h"

typedef struct mu_optimizer_needs {
	size_t spans; /* of state, fp32 (double for MU_F64), zero before the first update: 0, m, or m and v */
	bool work; /* one more, whose contents are lost: the direction */
	unsigned flags; /* mu_tensor_flag that it heeds */
} mu_optimizer_needs;

/* Nothing for a kind that cannot be run. */
mu_optimizer_needs mu_update_needs(const mural_optimizer_config *optimizer);

/* MURAL_USAGE if the optimizer is not built, or not in this table. */
mural_status mu_update_check(const mural_optimizer_config *optimizer, const mu_ops *ops, mural_error *err);

typedef struct mu_update {
	mu_dtype type;
	void *parameters; /* spans of all units, of type */
	float *master; /* the same in fp32 for a narrow type; NULL: parameters are their own */
	void *m, *v; /* as far as needed */
	const void *gradients; /* of type */
	void *work; /* as far as needed; may be gradients where they are fp32 (double for MU_F64): they are then lost */
	void *scratch; /* mu_update_workspace bytes, aligned to 64 */
	const mu_decision *decision; /* of this step, in device memory: rate, momenta, factor of gradients */
} mu_update;

size_t mu_update_workspace(const mu_segments *segments, const mural_optimizer_config *optimizer, mu_dtype type,
                           const mu_ops *ops, mu_ops_context *context);

mural_status mu_update_apply(const mu_segments *segments, const mural_optimizer_config *optimizer,
                             const mu_update *update, const mu_ops *ops, mu_ops_context *context, mural_error *err);

#endif
