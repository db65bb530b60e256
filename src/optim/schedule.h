/* Learning rate (and, for OneCycle, beta1) of every optimizer update: a pure function of the update's number.
 *
 * Updates are counted from 1 and only those that were applied count. DeepSpeed builds its scheduler at iteration -1
 * and steps it after each update: update 1 uses the value at construction and update n >= 2 the formula at i = n - 2. These
 * formulas and golden values are kept exactly; see docs/configuration.md.
 *
 * Mural's own `cosine`, k = n - 1:
 *     k <  W: lr (k + 1) / W
 *     k >= W: min + (lr - min) (1 + cos(pi (k - W) / max(1, T - 1 - W))) / 2;  min_lr from update T on
 * SPDX-License-Identifier: MIT */
#ifndef MU_OPTIM_SCHEDULE_H
#define MU_OPTIM_SCHEDULE_H

#include "mural/config.h"

typedef struct mu_schedule_point {
	double lr;
	double beta1, beta2;
} mu_schedule_point;

/* Values for update n >= 1. schedule->total_steps must be known for COSINE, WARMUP_DECAY and WARMUP_COSINE. */
mu_schedule_point mu_schedule_at(const mural_schedule_config *schedule, const mural_optimizer_config *optimizer,
                                 uint64_t n);

#endif
