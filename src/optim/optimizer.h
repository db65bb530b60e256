/* What an optimizer is to update.c: a name, what it needs, and a walk over segments. One file per optimizer.
 * SPDX-License-Identifier: MIT */
#ifndef MU_OPTIM_OPTIMIZER_H
#define MU_OPTIM_OPTIMIZER_H

#include "optim/update.h"

#define MU_OPTIMIZER_MAX_ROWS 4

/* The arguments of one update, together. */
typedef struct mu_stepping {
	const mu_segments *segments;
	const mural_optimizer_config *config;
	const mu_update *update;
	const mu_ops *ops;
	mu_ops_context *context;
} mu_stepping;

typedef struct mu_optimizer {
	mural_optimizer_kind kind;
	const char *name;
	mu_optimizer_needs needs;
	size_t rows[MU_OPTIMIZER_MAX_ROWS]; /* places in mu_ops of the rows it calls, then 0 */
	/* Bytes of scratch; update has only its type. NULL: none. */
	size_t (*workspace)(const mu_stepping *step);
	mural_status (*apply)(const mu_stepping *step, mural_error *err);
} mu_optimizer;

extern const mu_optimizer mu_optimizer_adamw, mu_optimizer_adam, mu_optimizer_sgd, mu_optimizer_lion, mu_optimizer_lamb,
        mu_optimizer_muon;

/* The type of state and directions. */
static inline mu_dtype mu_optimizer_state_type(mu_dtype type)
{
	return type == MU_F64 ? MU_F64 : MU_F32;
}

/* Where a segment's part of a span begins. */
static inline void *mu_optimizer_at(const void *span, mu_dtype type, const mu_segment *segment)
{
	return (char *)span + segment->offset * mu_dtype_bytes(type);
}

static inline float *mu_optimizer_master(const mu_stepping *step, const mu_segment *segment)
{
	return step->update->master ? step->update->master + segment->offset : NULL;
}

static inline double mu_optimizer_decay(const mu_stepping *step, const mu_segment *segment)
{
	return segment->decays ? step->config->weight_decay : 0;
}

/* One segment by AdamW (decoupled) or Adam, at lr_scale times the step's rate: Muon leaves some to it. */
mural_status mu_optimizer_adam_segment(const mu_stepping *step, const mu_segment *segment, double lr_scale,
                                       bool decoupled, mural_error *err);

/* One segment along the direction in `work`, by a call in which lr_scale, scale, decay and trust are set. */
mural_status mu_optimizer_follow(const mu_stepping *step, const mu_segment *segment, mu_apply_update call,
                                 mural_error *err);

#endif
