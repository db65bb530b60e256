/* Who waits for whom: from the rows of all ranks, in one line.
 *
 * In a step all ranks begin and end together; the one that hardly waits is the one the others wait for. What it waits itself is the
 * links' own time.
 * SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_BALANCE_WATCH_H
#define MU_ENGINE_BALANCE_WATCH_H

#include "engine/balance.h"

typedef struct mu_balance_wait {
	int slowest; /* the rank that the others wait for; -1: nobody told anything */
	double waited; /* seconds of a step that the others wait for it, on average over them, beyond the links' own */
	double step; /* seconds */
	double links; /* that everybody waits for the links */
} mu_balance_wait;

/* rows, member: [ranks]. */
mu_balance_wait mu_balance_wait_of(const mu_balance_row *rows, const bool *member, int ranks);

/* "waits 0.21 s of 0.60 s per step for rank 3 (host b)": for the progress line; "" while it is less than a twentieth of a step. name:
 * of the slowest rank, or NULL. */
void mu_balance_wait_words(const mu_balance_wait *wait, const char *name, char *text, size_t bytes);

#endif
