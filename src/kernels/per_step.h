/* What is computed from per-step values, as plain code that every table runs: host tables as functions, a device's in its
 * kernels (settle is then one of a single thread). kernels/ops.h says what and why. Valid C and C++.
 * SPDX-License-Identifier: MIT */
#ifndef MU_KERNELS_PER_STEP_H
#define MU_KERNELS_PER_STEP_H

#include <math.h>

#include "kernels/ops.h"

#ifdef __CUDACC__
#define MU_PER_STEP static __device__ inline
#else
#define MU_PER_STEP static inline
#endif

/* Factor of the gradient of each image's loss. */
MU_PER_STEP double mu_loss_factor(const mu_cross_entropy *op)
{
	return (op->loss_scale ? *op->loss_scale : 1) / (double)op->micro->planned;
}

/* False for infinities and NaN. */
MU_PER_STEP bool mu_settle_is_finite(double x)
{
	return x - x == 0;
}

MU_PER_STEP void mu_settle_scale(const mu_loss_scaling *scaling, bool overflow, mu_step_record *record)
{
	mu_carried *carried = &record->carried;
	if (!scaling->dynamic)
		return;
	if (overflow) {
		if (scaling->hysteresis == 1 || carried->hysteresis == 1) {
			record->decision.exhausted = carried->loss_scale <= scaling->floor ? 1 : 0;
			carried->loss_scale = fmax(carried->loss_scale / 2, scaling->floor);
		} else {
			carried->hysteresis -= 1;
		}
		carried->clean = 0;
		return;
	}
	const bool grows = carried->clean > 0 && fmod(carried->clean, scaling->window) == 0;
	if (grows)
		carried->loss_scale *= 2;
	if (grows || scaling->consecutive)
		carried->hysteresis = scaling->hysteresis;
	carried->clean += 1;
}

MU_PER_STEP void mu_settle_rates(const mu_settle *op, mu_step_record *record)
{
	mu_decision *d = &record->decision;
	const mu_rate rate = op->rates[(uint64_t)record->carried.applied % op->n_rates];
	d->number = record->carried.applied + 1;
	d->lr = rate.lr;
	d->beta1 = rate.beta1;
	d->beta2 = rate.beta2;
	d->bias1 = op->bias_correction ? 1 - pow(rate.beta1, d->number) : 1;
	d->bias2 = op->bias_correction ? 1 - pow(rate.beta2, d->number) : 1;
	d->ema_decay = op->ema_decay;
	if (op->ema_warm_up)
		d->ema_decay = fmin(op->ema_decay, 1 - pow(1 + d->number, -2.0 / 3));
}

MU_PER_STEP void mu_settle_step(const mu_settle *op)
{
	mu_step_record *record = op->record;
	const mu_step_sums *sums = &record->sums;
	mu_carried *carried = &record->carried;
	mu_decision *d = &record->decision;
	const double unscale = (double)op->micro->planned / sums->count / carried->loss_scale;
	d->norm = sqrt(record->squares) * unscale;
	const double clipped = op->clipping > 0 ? op->clipping / (d->norm + 1e-6) : 1;
	d->gradient_scale = unscale * (clipped < 1 ? clipped : 1);
	d->loss_scale = carried->loss_scale;
	d->exhausted = 0;
	mu_settle_rates(op, record);
	const bool failed = sums->failed > 0 || sums->label_range > 0;
	const bool overflow = !mu_settle_is_finite(d->norm) || sums->non_finite > 0;
	d->skip = failed || overflow ? 1 : 0;
	carried->applied += 1 - d->skip;
	carried->skipped += d->skip;
	if (!failed)
		mu_settle_scale(&op->scaling, overflow, record);
}

#endif
