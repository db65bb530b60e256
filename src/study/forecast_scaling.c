/* More and more devices, and the questions that people ask of them. Every answer is a handful of steps worked out: where efficiency
 * falls below a bound is found by doubling and then halving, since it falls with the number of devices.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "study/forecast_inside.h"

#define LEAST_EFFICIENCY 0.8
#define NEARLY_BEST 0.95
#define LARGEST_BATCH 1024 /* looked at where memory is not known */
#define TEN_GIGABIT 1.25e9

/* The configuration's own global batch, shared by n devices. */
static mural_status same_batch(mural_forecast *f, int n, double *seconds, mural_error *err)
{
	uint64_t batch = f->config.batch.train_batch, share = (batch + (uint64_t)n - 1) / (uint64_t)n;
	uint64_t micro = f->config.batch.micro_batch < share ? f->config.batch.micro_batch : share;
	const mural_forecast_point point = {
	        .ranks = n, .micro_batch = micro, .accumulation = (share + micro - 1) / micro};
	mural_forecast_step step;
	*seconds = 0;
	if (batch < (uint64_t)n)
		return MURAL_OK;
	MU_TRY(mu_forecast_step_of(f, &point, (double)share / (double)point.accumulation, &step, err));
	*seconds = step.seconds;
	return MURAL_OK;
}

static mural_status fill_row(mural_forecast *f, int n, const mural_forecast_row *first, mural_forecast_row *row,
                             mural_error *err)
{
	const mural_forecast_point point = {.ranks = n};
	*row = (mural_forecast_row){0};
	MU_TRY(mural_forecast_at(f, &point, &row->step, err));
	if (f->settings.images > 0)
		MU_TRY(mural_forecast_epoch(f, &point, f->settings.images, &row->epoch, err));
	MU_TRY(same_batch(f, n, &row->same_batch_seconds, err));
	if (n == 1)
		first = row;
	row->efficiency = first->step.seconds / row->step.seconds;
	row->strong_efficiency = row->epoch > 0 ? first->epoch / row->epoch / n : 0;
	row->same_batch_efficiency =
	        row->same_batch_seconds > 0 ? first->same_batch_seconds / row->same_batch_seconds / n : 0;
	row->money = row->epoch / 3600 * row->step.price_per_hour;
	row->joules = row->epoch * row->step.watts;
	return MURAL_OK;
}

mural_status mural_forecast_scaling(mural_forecast *f, int most, mural_forecast_row rows[MURAL_FORECAST_ROWS],
                                    size_t *n, mural_error *err)
{
	mural_forecast_step last;
	const mural_forecast_point all = {.ranks = most};
	*n = 0;
	MU_TRY(mural_forecast_at(f, &all, &last, err)); /* are there so many? */
	for (int ranks = 1; ranks <= most && *n < MURAL_FORECAST_ROWS; ++*n) {
		MU_TRY(fill_row(f, ranks, rows, &rows[*n], err));
		ranks = ranks < most && ranks > most / 2 ? most : 2 * ranks; /* the last row is all of them */
	}
	return MURAL_OK;
}

static mural_status efficiency_of(mural_forecast *f, int n, double alone, double *efficiency, mural_error *err)
{
	const mural_forecast_point point = {.ranks = n};
	mural_forecast_step step;
	MU_TRY(mural_forecast_at(f, &point, &step, err));
	*efficiency = alone / step.seconds;
	return MURAL_OK;
}

static mural_status find_inefficient(mural_forecast *f, int most, mural_forecast_answers *a, mural_error *err)
{
	const mural_forecast_point one = {.ranks = 1};
	mural_forecast_step step;
	double efficiency = 1;
	int good = 1, bad = 1;
	MU_TRY(mural_forecast_at(f, &one, &step, err));
	while (efficiency >= LEAST_EFFICIENCY && good < most) {
		bad = good > most / 2 ? most : 2 * good;
		MU_TRY(efficiency_of(f, bad, step.seconds, &efficiency, err));
		if (efficiency >= LEAST_EFFICIENCY)
			good = bad;
	}
	a->looked_at = most;
	a->last_efficiency = efficiency;
	if (efficiency >= LEAST_EFFICIENCY)
		return MURAL_OK;
	while (bad - good > 1) {
		int middle = good + (bad - good) / 2;
		double there;
		MU_TRY(efficiency_of(f, middle, step.seconds, &there, err));
		if (there < LEAST_EFFICIENCY) {
			bad = middle;
			efficiency = there;
		} else {
			good = middle;
		}
	}
	a->inefficient_from = bad;
	a->last_efficiency = efficiency;
	return MURAL_OK;
}

static mural_status rate_of(mural_forecast *f, int ranks, uint64_t batch, double *images_per_second, mural_error *err)
{
	const mural_forecast_point point = {.ranks = ranks, .micro_batch = batch};
	mural_forecast_step step;
	MU_TRY(mural_forecast_at(f, &point, &step, err));
	*images_per_second = step.images_per_second;
	return MURAL_OK;
}

static mural_status find_batch(mural_forecast *f, int ranks, uint64_t largest, mural_forecast_answers *a,
                               mural_error *err)
{
	uint64_t bad = 0, good = largest;
	MU_TRY(rate_of(f, ranks, good, &a->best_images_per_second, err));
	a->batch_images_per_second = a->best_images_per_second;
	while (good - bad > 1) {
		uint64_t middle = bad + (good - bad) / 2;
		double rate;
		MU_TRY(rate_of(f, ranks, middle, &rate, err));
		if (rate >= NEARLY_BEST * a->best_images_per_second) {
			good = middle;
			a->batch_images_per_second = rate;
		} else {
			bad = middle;
		}
	}
	a->batch = good;
	a->largest_batch = largest;
	return MURAL_OK;
}

/* Other networks; what they would change only where there are several nodes. */
static mural_status find_networks(mural_forecast *f, int ranks, int most, mural_forecast_answers *a, mural_error *err)
{
	mural_forecast_step now, then;
	mural_forecast_point point = {.ranks = ranks};
	MU_TRY(mural_forecast_at(f, &point, &now, err));
	if (now.nodes < 2) {
		point.ranks = most;
		MU_TRY(mural_forecast_at(f, &point, &now, err));
	}
	a->network = now;
	if (now.nodes < 2)
		return MURAL_OK;
	point.uplink_bytes_per_second = TEN_GIGABIT;
	MU_TRY(mural_forecast_at(f, &point, &then, err));
	a->ten_gigabit_seconds = then.seconds;
	if (!(now.other_uplinks > now.slowest_uplink))
		return MURAL_OK;
	point.uplink_bytes_per_second = 0;
	point.slowest_uplink_at_least = now.other_uplinks;
	MU_TRY(mural_forecast_at(f, &point, &then, err));
	a->even_uplinks_seconds = then.seconds;
	return MURAL_OK;
}

mural_status mural_forecast_answer(mural_forecast *f, int ranks, int most, uint64_t largest_batch,
                                   mural_forecast_answers *a, mural_error *err)
{
	*a = (mural_forecast_answers){0};
	MU_TRY(find_inefficient(f, most, a, err));
	MU_TRY(find_batch(f, ranks, largest_batch ? largest_batch : LARGEST_BATCH, a, err));
	return find_networks(f, ranks, most, a, err);
}

/* Stage 3 computes with whole units: the one at work and the next. */
mural_forecast_state mural_forecast_memory(const mural_forecast *f, int zero_stage, int ranks)
{
	const mu_work *w = &f->work;
	mu_cost_state s =
	        mu_cost_memory(w->elements, w->parameter_bytes, w->gradient_bytes, w->state_bytes, zero_stage, ranks);
	mural_forecast_state state = {.parameters = s.parameters, .gradients = s.gradients, .optimizer = s.optimizer};
	if (zero_stage >= 3)
		state.gathered = 2 * w->largest_unit * w->parameter_bytes;
	state.total = state.parameters + state.gradients + state.optimizer + state.gathered;
	return state;
}
