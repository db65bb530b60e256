/* Applies an optimizer to flat spans: whole runs of tensors that are treated alike, in one fused pass each.
 *
 * A segment is a run of neighbouring tensors with the same decay flag and learning-rate scale. Padding between them is
 * updated too, which is harmless: its gradient and value are zero and stay so.
 * SPDX-License-Identifier: MIT */
#ifndef MU_OPTIM_UPDATE_H
#define MU_OPTIM_UPDATE_H

#include "kernels/ops.h"
#include "model/unit.h"
#include "optim/schedule.h"

typedef struct mu_segment {
	size_t offset, elements; /* in the spans of all units laid end to end */
	bool decays;
	float lr_scale;
} mu_segment;

typedef struct mu_segments {
	mu_segment *list;
	size_t count;
} mu_segments;

/* Frozen tensors are in no segment. */
mural_status mu_segments_init(mu_segments *segments, const mu_unit *units, size_t n_units, mural_error *err);
void mu_segments_release(mu_segments *segments);

typedef struct mu_update {
	mu_dtype type;
	void *parameters, *m, *v; /* spans of all units; moments fp32 (double for MU_F64) */
	const void *gradients;
	double gradient_scale; /* planned / actual count, times the clipping factor */
	uint64_t number; /* which applied update this is, from 1 */
} mu_update;

mural_status mu_update_apply(const mu_segments *segments, const mural_optimizer_config *optimizer, mu_schedule_point at,
                             const mu_update *update, const mu_ops *ops, mu_ops_context *context, mural_error *err);

/* Factor that brings a gradient of L2 norm `norm` to at most `limit` (0 = off): min(1, limit / (norm + 1e-6)). */
double mu_clip_factor(double norm, double limit);

#endif
