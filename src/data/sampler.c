/* Who sees what, when. SPDX-License-Identifier: MIT */
#include "data/sampler.h"

#include "base/philox.h"

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

mural_status mu_sampler_check(const mu_sampler *s, mural_error *err)
{
	if (s->images == 0 || s->images > UINT32_MAX)
		return mu_fail(err, MURAL_DATA, NULL, "expected 1 to %u images in an epoch, found %llu", UINT32_MAX,
		               (unsigned long long)s->images);
	if (s->ranks < 1 || s->rank < 0 || s->rank >= s->ranks || !s->train_batch || !s->micro_batch ||
	    !s->accumulation)
		return mu_bug(err, "a sampler with a rank outside its ranks or an empty batch");
	uint64_t ranks = (uint64_t)s->ranks;
	uint64_t largest = smaller(s->train_batch, s->images); /* planned images of any step */
	largest = largest / ranks + (largest % ranks != 0);
	if ((largest + s->micro_batch - 1) / s->micro_batch > s->accumulation)
		return mu_fail(err, MURAL_USAGE, NULL,
		               "a rank's share of %llu images does not fit %llu micro-batches of %llu",
		               (unsigned long long)largest, (unsigned long long)s->accumulation,
		               (unsigned long long)s->micro_batch);
	if (mu_sampler_steps(s) == 0)
		return mu_fail(err, MURAL_USAGE, NULL,
		               "an epoch has no step: %llu images are fewer than one batch of %llu, and the short last "
		               "batch is to be left out; make the batch smaller or keep the last batch",
		               (unsigned long long)s->images, (unsigned long long)s->train_batch);
	return MURAL_OK;
}

uint64_t mu_sampler_steps(const mu_sampler *s)
{
	bool short_last = s->images % s->train_batch != 0;
	return s->images / s->train_batch + (short_last && !s->drop_last);
}

mu_positions mu_sampler_planned(const mu_sampler *s, uint64_t step)
{
	uint64_t first = step * s->train_batch;
	return (mu_positions){first, smaller(s->train_batch, s->images - first)};
}

mu_positions mu_sampler_share(const mu_sampler *s, uint64_t step)
{
	mu_positions planned = mu_sampler_planned(s, step);
	uint64_t rank = (uint64_t)s->rank, ranks = (uint64_t)s->ranks;
	uint64_t each = planned.count / ranks, rest = planned.count % ranks;
	/* The first `rest` ranks have one more. */
	return (mu_positions){planned.first + rank * each + smaller(rank, rest), each + (rank < rest)};
}

mu_positions mu_sampler_micro(const mu_sampler *s, uint64_t step, uint64_t micro)
{
	mu_positions share = mu_sampler_share(s, step);
	uint64_t skipped = smaller(micro * s->micro_batch, share.count);
	return (mu_positions){share.first + skipped, smaller(s->micro_batch, share.count - skipped)};
}

void mu_sampler_order(uint64_t images, uint32_t seed, uint32_t epoch, bool shuffle, uint32_t *order)
{
	for (uint64_t i = 0; i < images; i++)
		order[i] = (uint32_t)i;
	if (!shuffle)
		return;
	mu_random_key key = mu_random_key_make(seed, MU_PURPOSE_SHUFFLE, 0);
	for (uint64_t i = images; i-- > 1;) {
		uint32_t j = mu_random_below(key, epoch, i, (uint32_t)i + 1);
		uint32_t kept = order[i];
		order[i] = order[j];
		order[j] = kept;
	}
}
