/* Average of weights over the run (exponential moving average): evaluated and saved beside the weights, never trained.
 * It begins as a copy of the first weights and is fp32 whatever the weights are.
 * SPDX-License-Identifier: MIT */
#ifndef MU_OPTIM_EMA_H
#define MU_OPTIM_EMA_H

#include "kernels/ops.h"

/* One more step of the average, over a whole span. MURAL_USAGE if the table has no such row. */
mural_status mu_ema_apply(const mu_ema *call, const mu_ops *ops, mu_ops_context *context, mural_error *err);

#endif
