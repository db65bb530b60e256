/* The best integer shares: those with which a step is shortest.
 *
 * A step takes as long as its slowest rank makes it: max over ranks of what a step would take if nobody else were slower, computing
 * and reduction together, with overlap or without (balance_links.h). That never falls with a rank's images. So handing out the batch bit by bit, each time to whoever would be done first with one
 * bit more, is optimal for the integer problem: of two ranks that could take the last bit, the other choice ends no earlier. The
 * same order is walked faster here: bisecting the time at which all are done gives nearly all shares at once, and only the few bits
 * around that time are handed out one by one.
 * SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_BALANCE_SOLVE_H
#define MU_ENGINE_BALANCE_SOLVE_H

#include "engine/balance_links.h"
#include "engine/balance_model.h"

/* What is known of a rank beforehand. */
typedef struct mu_balance_rank {
	int capacity; /* most images of a step; 0: it can take none */
	int micro; /* images of one of its micro-batches, >= 1: n images are ceil(n / micro) of them */
	double seconds_per_image, seconds_per_micro; /* what a description says; 0: not known */
} mu_balance_rank;

typedef struct mu_balance_problem {
	int ranks, global_batch;
	int passes; /* a rank has room for its capacity so many times; 0 is taken as 1 */
	int grain; /* shares are multiples of it, >= 1; what the global batch has beyond goes to the last rank that has any */
	const mu_balance_rank *rank; /* [ranks] */
	const mu_balance_model *model; /* [ranks]; who is not known (b = 0) gets none */
	const bool *member; /* [ranks]; who is none gets none */
	const mu_balance_network *network;
	double reduction; /* seconds, among the members */
} mu_balance_problem;

/* Seconds of a step with the best shares: [ranks]; -1 when the capacities are too small. */
double mu_balance_solve(const mu_balance_problem *problem, int *shares);

/* Seconds of a step with these shares; of one in which nobody is slower than rank r with its images. */
double mu_balance_expected(const mu_balance_problem *problem, const int *shares);
double mu_balance_expected_of(const mu_balance_problem *problem, int r, int images);

/* Seconds that the slowest rank computes. */
double mu_balance_longest(const mu_balance_problem *problem, const int *shares);

#endif
