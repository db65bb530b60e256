/* Unequal workers: how many images each rank takes of every global batch, decided while the run goes on.
 *
 * Losses are summed and divided by the global count, so any split of the global batch has the same gradient: shares are free to be
 * chosen by speed alone. Every few steps the ranks exchange one small row each; then every rank calls mu_balance_decide() with all
 * rows. It is a pure function of what it was told before and now (no clock, no random number, no message), so all ranks come to the
 * same decision, and a log of rows replays it.
 *
 *     mu_balance_create(&balance, &settings, &err);
 *     each full step:   mu_balance_step(&window, images, micro_batches, seconds of own work, seconds waited)
 *     at a safe point, when mu_balance_interval(balance) steps lie behind:
 *         row = mu_balance_close(&window); all-gather the rows
 *         decision = mu_balance_decide(balance, rows)
 *         if decision->changed: decision->shares and decision->member hold from the next step on
 *
 * How it decides: balance_model.h (each rank's seconds by images), balance_solve.h (the best integer shares), balance_links.h (what
 * the reduction costs with whom), and hysteresis: shares change only for a gain that is above the noise, a change that did not bring
 * what it promised makes the next one harder, and who was left out stays out. docs/unequal-workers.md has the reasoning.
 *
 * Nothing allocates after creation.
 * SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_BALANCE_H
#define MU_ENGINE_BALANCE_H

#include <stdbool.h>

#include "base/fail.h"
#include "engine/balance_links.h"
#include "engine/balance_solve.h"

enum { MU_BALANCE_WINDOW = 64, MU_BALANCE_WORDS = 384 };

/* What a rank told of the full steps since the last decision. Doubles only, so that it travels as MU_F64. */
typedef struct mu_balance_row {
	double steps; /* 0: no full step; the others are then 0 */
	double images, micro_batches; /* of one step */
	double seconds; /* of one step, the median: its own work, until its last reduction could begin; waiting for the loader is
	                   work, waiting for other ranks is not */
	double waited; /* of one step, the median: in collectives, for other ranks or for the links */
} mu_balance_row;

/* The steps since the last decision, on one rank: zero-initialise. Of more than MU_BALANCE_WINDOW steps the newest count. */
typedef struct mu_balance_window {
	double seconds[MU_BALANCE_WINDOW], waited[MU_BALANCE_WINDOW];
	double images, micro_batches;
	int steps;
} mu_balance_window;

/* A step with this rank's full share; a shorter last batch of an epoch is not told. images, micro_batches: of this step. */
void mu_balance_step(mu_balance_window *window, double images, double micro_batches, double seconds, double waited);
/* The row to exchange; the window is empty afterwards. */
mu_balance_row mu_balance_close(mu_balance_window *window);

typedef struct mu_balance_settings {
	int ranks;
	int global_batch;
	int grain; /* shares are multiples of it where the global batch is: 2 while mixing, else 1 (0 is taken as 1) */
	const mu_balance_rank *rank; /* [ranks], copied */
	mu_balance_network network; /* links and seats are copied; links NULL where they are not known */
	const int *shares; /* [ranks] to begin with; NULL: equal as far as capacities allow */
	bool first_stays; /* rank 0 is never left out, nor proposed for it: it writes what the run keeps */
	bool may_remove; /* leave out by itself whoever costs more than it brings; else it is only proposed */
} mu_balance_settings;

typedef struct mu_balance mu_balance;

typedef struct mu_balance_decision {
	bool changed; /* shares or members differ from before */
	bool removed; /* some rank is left out from now on */
	const int *shares; /* [ranks], summing to the global batch; the balance's own, until the next decision */
	const bool *member; /* [ranks]: takes part in reductions; who does not has share 0 */
	double before,
	        after; /* expected seconds of a step, with the shares until now and from now on; 0: not known yet */
	double worthwhile; /* the gain that was asked for, as a fraction of `before` */
	int drifted; /* a rank found to be faster or slower than before since the last decision, -1: none */
	double drift; /* by this factor in seconds */
	char reason[MU_BALANCE_WORDS]; /* in words, for the log; never empty */
} mu_balance_decision;

/* MURAL_USAGE with the arithmetic: capacities too small for the global batch, more ranks than images. */
mural_status mu_balance_create(mu_balance **balance, const mu_balance_settings *settings, mural_error *err);
void mu_balance_free(mu_balance *balance);

/* Whether shares sum to the global batch and fit, for those that a person wrote. where: the key, "run.json:14:3: mural.balance". */
mural_status mu_balance_check(const int *shares, const mu_balance_settings *settings, const char *where,
                              mural_error *err);

/* rows: [ranks]. What it returns is the balance's own, until the next call. */
const mu_balance_decision *mu_balance_decide(mu_balance *balance, const mu_balance_row *rows);

/* Full steps until the next decision: few while the run is young or a rank looks different from before, more later. */
int mu_balance_interval(const mu_balance *balance);

/* The shares now in force, before the first decision too. */
const int *mu_balance_shares(const mu_balance *balance);
/* What a rank takes for one image and for each micro-batch, as far as measured; 0: not known. */
void mu_balance_pace(const mu_balance *balance, int rank, double *seconds_per_image, double *seconds_per_micro);

#endif
