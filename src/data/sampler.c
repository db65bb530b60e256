/* Who sees what, when. SPDX-License-Identifier: MIT */
#include "data/sampler.h"

#include <limits.h>

#include "base/philox.h"

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static mural_status check_even(const mu_sampler *s, mural_error *err)
{
	uint64_t ranks = (uint64_t)s->ranks;
	uint64_t largest = smaller(s->train_batch, s->images); /* planned images of any step */
	largest = largest / ranks + (largest % ranks != 0);
	if ((largest + s->micro_batch - 1) / s->micro_batch <= s->accumulation)
		return MURAL_OK;
	return mu_fail(err, MURAL_USAGE, NULL, "a rank's share of %llu images does not fit %llu micro-batches of %llu",
	               (unsigned long long)largest, (unsigned long long)s->accumulation,
	               (unsigned long long)s->micro_batch);
}

/* Where the shares of the ranks before `rank` end, in positions of a whole batch. */
static uint64_t given_before(const mu_sampler *s, int rank)
{
	uint64_t sum = 0;
	for (int r = 0; r < rank; r++)
		sum += (uint64_t)s->share_R[r];
	return sum;
}

static mural_status check_given(const mu_sampler *s, mural_error *err)
{
	uint64_t sum = given_before(s, s->ranks);
	for (int r = 0; r < s->ranks; r++)
		if (s->share_R[r] < 0)
			return mu_bug(err, "a negative share");
	if (sum != s->train_batch)
		return mu_fail(err, MURAL_USAGE, NULL,
		               "the shares of %d ranks sum to %llu images, and the batch has %llu", s->ranks,
		               (unsigned long long)sum, (unsigned long long)s->train_batch);
	return s->train_batch <= INT_MAX ? MURAL_OK
	                                 : mu_fail(err, MURAL_USAGE, NULL, "shares are for batches below 2^31 images");
}

mural_status mu_sampler_check(const mu_sampler *s, mural_error *err)
{
	if (s->images == 0 || s->images > UINT32_MAX)
		return mu_fail(err, MURAL_DATA, NULL, "expected 1 to %u images in an epoch, found %llu", UINT32_MAX,
		               (unsigned long long)s->images);
	if (s->ranks < 1 || s->rank < 0 || s->rank >= s->ranks || !s->train_batch || !s->micro_batch ||
	    !s->accumulation)
		return mu_bug(err, "a sampler with a rank outside its ranks or an empty batch");
	MU_TRY(s->share_R ? check_given(s, err) : check_even(s, err));
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

static mu_positions given_share(const mu_sampler *s, mu_positions planned)
{
	uint64_t before = given_before(s, s->rank), behind = before + (uint64_t)s->share_R[s->rank];
	uint64_t first = before * planned.count / s->train_batch, end = behind * planned.count / s->train_batch;
	return (mu_positions){planned.first + first, end - first};
}

mu_positions mu_sampler_share(const mu_sampler *s, uint64_t step)
{
	mu_positions planned = mu_sampler_planned(s, step);
	if (s->share_R)
		return given_share(s, planned);
	uint64_t rank = (uint64_t)s->rank, ranks = (uint64_t)s->ranks;
	uint64_t each = planned.count / ranks, rest = planned.count % ranks;
	/* The first `rest` ranks have one more. */
	return (mu_positions){planned.first + rank * each + smaller(rank, rest), each + (rank < rest)};
}

uint64_t mu_sampler_micros(const mu_sampler *s, uint64_t step)
{
	if (!s->share_R)
		return s->accumulation;
	uint64_t count = mu_sampler_share(s, step).count;
	return count == 0 ? 1 : (count + s->micro_batch - 1) / s->micro_batch;
}

mu_positions mu_sampler_micro(const mu_sampler *s, uint64_t step, uint64_t micro)
{
	mu_positions share = mu_sampler_share(s, step);
	if (s->share_R) {
		uint64_t micros = mu_sampler_micros(s, step);
		uint64_t first = share.count * micro / micros, end = share.count * (micro + 1) / micros;
		return (mu_positions){share.first + first, end - first};
	}
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
