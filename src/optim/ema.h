/* Average of weights over the run (exponential moving average): evaluated and saved beside the weights, never trained.
 * It begins as a copy of the first weights and is fp32 whatever the weights are.
 * SPDX-License-Identifier: MIT */
#ifndef MU_OPTIM_EMA_H
#define MU_OPTIM_EMA_H

#include "kernels/ops.h"

/* How much of the average stays at update n >= 1: `decay`, [0, 1); with warm_up min(decay, 1 - (1 + n)^(-2/3)), as
 * timm's, so that early weights are forgotten soon. */
double mu_ema_decay(double decay, bool warm_up, uint64_t n);

/* One more step of the average, over a whole span. MURAL_USAGE if the table has no such row. */
mural_status mu_ema_apply(const mu_ema *call, const mu_ops *ops, mu_ops_context *context, mural_error *err);

#endif
