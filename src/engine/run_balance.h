/* Unequal shares in a run's tables, progress and result. SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_RUN_BALANCE_H
#define MU_ENGINE_RUN_BALANCE_H

#include "base/json.h"
#include "engine/run_internal.h"

enum { MU_RUN_WAITS = 48 + MU_SHARING_NAME }; /* bytes of who waits for whom */

/* Rank 0, where shares move: the first row of balance.csv, and the row and line of a step after which ranks met. */
mural_status mu_run_balance_begin(mu_run *r, mural_error *err);
mural_status mu_run_balance_step(mu_run *r, mural_error *err);
/* Rank 0: who waits for whom by the last meeting, for the progress line; "" while ranks have not met or hardly wait. */
void mu_run_balance_waits(const mural_engine *engine, char *text, size_t bytes);
/* Rank 0, at the end: what was found to cost more than it brings, and what would help. */
void mu_run_balance_finish(mu_run *r);
/* Rank 0: result.json's member; nothing where shares are equal. */
void mu_balance_write(mu_json *json, const mural_config *config, const mural_engine *engine);

#endif
