/* Which images a rank sees, when. A pure function of seed, epoch, step, rank: no state, nothing to save.
 *
 * An epoch is a sequence of `images` positions, a permutation of the set (Fisher-Yates with counter-based draws). Step
 * s owns positions [s * train_batch, min((s + 1) * train_batch, images)); those `planned` positions are split into
 * contiguous shares rank by rank: as even as whole numbers allow, or as `share_R` says. A share is cut into micro-batches of at
 * most `micro_batch`. So every image occurs exactly once per epoch for any number of ranks and any shares, shares may be 0, and
 * nothing is padded or repeated. Random draws use the position, never the rank.
 *
 * Given shares: rank r ends where the sum of the shares up to its own does; in a short last batch of p of B positions, at
 * floor(sum * p / B). So nobody gets more than its share, and the rank that has none still has none.
 * SPDX-License-Identifier: MIT */
#ifndef MU_DATA_SAMPLER_H
#define MU_DATA_SAMPLER_H

#include <stdint.h>

#include "base/fail.h"

typedef struct mu_sampler {
	uint64_t images; /* positions in an epoch */
	uint64_t train_batch; /* of all ranks and micro-batches */
	uint64_t micro_batch; /* capacity */
	uint64_t accumulation; /* micro-batches per step and rank, where shares are even */
	int ranks, rank;
	const int *share_R; /* [ranks], >= 0, of a whole batch, which they sum to; NULL: even. Borrowed */
	bool drop_last;
} mu_sampler;

typedef struct mu_positions {
	uint64_t first, count;
} mu_positions;

/* MURAL_DATA without images; MURAL_USAGE when an even share does not fit accumulation * micro_batch, given shares do not sum to
 * the batch, or drop_last leaves no step. The other functions expect a sampler that passed, step in [0, steps) and micro in
 * [0, mu_sampler_micros). */
mural_status mu_sampler_check(const mu_sampler *sampler, mural_error *err);

/* Steps of one epoch: rounded up, or down with drop_last. */
uint64_t mu_sampler_steps(const mu_sampler *sampler);
/* All ranks' positions of a step. */
mu_positions mu_sampler_planned(const mu_sampler *sampler, uint64_t step);
/* This rank's share of a step. */
mu_positions mu_sampler_share(const mu_sampler *sampler, uint64_t step);
/* Into how many micro-batches the share is cut, at least 1. Even shares: always `accumulation`, so that short ones have empty
 * micro-batches behind. Given shares: as few as hold it, as even as whole numbers allow. */
uint64_t mu_sampler_micros(const mu_sampler *sampler, uint64_t step);
/* One micro-batch of the share; count may be 0. */
mu_positions mu_sampler_micro(const mu_sampler *sampler, uint64_t step, uint64_t micro);

/* order[position] = image index for one epoch; identity when !shuffle. order: [images], images below 2^32. Position i is
 * drawn from [0, i] by element i of the epoch's stream, from the last to the first. */
void mu_sampler_order(uint64_t images, uint32_t seed, uint32_t epoch, bool shuffle, uint32_t *order);

#endif
