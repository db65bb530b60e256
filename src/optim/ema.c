/* Averages of weights. SPDX-License-Identifier: MIT */
#include "optim/ema.h"

mural_status mu_ema_apply(const mu_ema *call, const mu_ops *ops, mu_ops_context *context, mural_error *err)
{
	if (!ops->ema)
		return mu_fail(err, MURAL_USAGE, NULL,
		               "averages of weights are not built for the \"%s\" operations yet: leave them off or use "
		               "other operations",
		               ops->name);
	return ops->ema(context, call, err);
}
