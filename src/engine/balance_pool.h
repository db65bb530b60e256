/* Ranks that measurements cannot tell apart yet count as alike.
 *
 * One image of forty is 2.5 % of a share, and the first medians of a run are off by as much: three equal cards would get 26, 27 and
 * 27 images or 25, 27 and 28, as the noise has it, and hysteresis keeps what it gave them. So speeds that differ by less than two
 * standard errors are taken as their mean; as errors shrink, ranks that really differ come apart.
 * SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_BALANCE_POOL_H
#define MU_ENGINE_BALANCE_POOL_H

#include "engine/balance_solve.h"

/* model, pooled: [ranks]; who is no member or not known is copied. images: of a share, at which speeds are compared. order: [ranks] to
 * work in. */
void mu_balance_pool(const mu_balance_problem *problem, int images, mu_balance_model *pooled, int *order);

#endif
