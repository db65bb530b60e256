/* Learning-rate schedules. SPDX-License-Identifier: MIT */
#include "optim/schedule.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

/* DeepSpeed raises warm-ups below two steps to two, so that log(W) is not zero. */
static double warmup_length(const mural_schedule_config *s)
{
	return s->warmup_steps < 2 ? 2.0 : (double)s->warmup_steps;
}

/* Share of the warm-up done at iteration i < W. */
static double warmup_share(const mural_schedule_config *s, double i)
{
	double length = warmup_length(s);
	return s->warmup_log ? log(i + 1) / log(length) : i / length;
}

static double cosine(const mural_schedule_config *s, double lr, uint64_t n)
{
	double k = (double)(n - 1), warmup = (double)s->warmup_steps, total = (double)s->total_steps;
	if (k < warmup)
		return lr * (k + 1) / warmup;
	if (k >= total)
		return s->min_lr;
	double span = total - 1 - warmup;
	double share = (k - warmup) / (span > 1 ? span : 1);
	return s->min_lr + (lr - s->min_lr) * (1 + cos(pi * share)) / 2;
}

static double warmup(const mural_schedule_config *s, uint64_t n)
{
	if (n == 1)
		return s->min_lr;
	double i = (double)(n - 2), length = warmup_length(s), share = 1;
	if (i < length)
		share = warmup_share(s, i);
	else if (s->kind == MURAL_SCHEDULE_WARMUP_DECAY)
		share = fmax(0, ((double)s->total_steps - i) / fmax(1, (double)s->total_steps - length));
	return s->min_lr + (s->max_lr - s->min_lr) * share;
}

static double warmup_cosine(const mural_schedule_config *s, double lr, uint64_t n)
{
	if (n == 1)
		return lr * s->warmup_min_ratio;
	double i = (double)(n - 2), length = warmup_length(s), ratio;
	if (i < length) {
		ratio = s->warmup_min_ratio + (1 - s->warmup_min_ratio) * warmup_share(s, i);
	} else {
		double share = fmin(1, (i - length + 1) / fmax(1, (double)s->total_steps - length));
		ratio = s->cos_min_ratio + (1 - s->cos_min_ratio) * (1 + cos(pi * share)) / 2;
	}
	return lr * ratio;
}

static double range_test(const mural_schedule_config *s, uint64_t n)
{
	double share = (double)(n - 1) / (double)s->range_steps;
	if (s->range_staircase)
		share = floor(share);
	return s->range_min_lr * (1 + s->range_rate * share);
}

/* Height in [0, 1] of the triangle at iteration b = i + 1, in stairs where asked for. */
static double cycle_height(const mural_schedule_config *s, double b)
{
	double first = (double)s->cycle_first_steps, second = (double)s->cycle_second_steps, total = first + second;
	double place = fmod(b, total), half = first / total, x = place / total;
	if (x <= half) {
		if (s->cycle_first_stairs > 0) {
			double stairs = (double)s->cycle_first_stairs;
			return floor(place * stairs / first) / stairs;
		}
		return x / half;
	}
	if (s->cycle_second_stairs > 0) {
		double stairs = (double)s->cycle_second_stairs;
		return floor((total - place) * stairs / second) / stairs;
	}
	return (x - 1) / (half - 1);
}

static mu_schedule_point one_cycle(const mural_schedule_config *s, const mural_optimizer_config *o, uint64_t n)
{
	mu_schedule_point at = {.lr = s->cycle_min_lr, .beta1 = o->beta1, .beta2 = s->cycle_momentum ? 0.99 : o->beta2};
	if (n == 1) {
		if (s->cycle_momentum)
			at.beta1 = s->cycle_min_momentum;
		return at;
	}
	double i = (double)(n - 2), total = (double)(s->cycle_first_steps + s->cycle_second_steps);
	double momentum = s->cycle_max_momentum;
	if (i < total) {
		double height = cycle_height(s, i + 1);
		at.lr = s->cycle_min_lr + (s->max_lr - s->cycle_min_lr) * height;
		momentum -= (s->cycle_max_momentum - s->cycle_min_momentum) * height;
	} else if (s->cycle_decay_steps > 0) {
		double k = (i - total + 1) / (double)s->cycle_decay_steps;
		at.lr = s->cycle_min_lr / (1 + s->cycle_decay_rate * k);
		momentum *= 1 + s->cycle_momentum_decay * k;
	}
	if (s->cycle_momentum)
		at.beta1 = momentum;
	return at;
}

mu_schedule_point mu_schedule_at(const mural_schedule_config *s, const mural_optimizer_config *o, uint64_t n)
{
	mu_schedule_point at = {.lr = o->lr, .beta1 = o->beta1, .beta2 = o->beta2};
	switch (s->kind) {
	case MURAL_SCHEDULE_CONSTANT: break;
	case MURAL_SCHEDULE_COSINE: at.lr = cosine(s, o->lr, n); break;
	case MURAL_SCHEDULE_WARMUP:
	case MURAL_SCHEDULE_WARMUP_DECAY: at.lr = warmup(s, n); break;
	case MURAL_SCHEDULE_WARMUP_COSINE: at.lr = warmup_cosine(s, o->lr, n); break;
	case MURAL_SCHEDULE_RANGE_TEST: at.lr = range_test(s, n); break;
	case MURAL_SCHEDULE_ONE_CYCLE: at = one_cycle(s, o, n); break;
	}
	return at;
}
