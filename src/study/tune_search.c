/* Which point is tried next. SPDX-License-Identifier: MIT */
#include "study/tune_search.h"

#include <math.h>

#include "base/fail.h"

#define SAME 0.98 /* points that promise this share of the best promise the same */
#define REACH 4 /* from a micro-batch that was tried to one that may be: the model knows its neighbourhood */
#define MARGIN 0.9 /* of the budget: what a trial and the sweep would take is an estimate */
#define FEWEST 3 /* trials in any case */
#define MOST_ROUNDS 4 /* trials of one point */
#define GIVE_UP 3 /* failures in a row before the first success */
#define LEAST_STEPS 3
#define MOST_STEPS 1000
#define STEP_ERROR 0.04 /* of one step at least: so few steps do not know their own spread */

static bool usable(const mural_tune_point *p)
{
	return p->state == MURAL_TUNE_OPEN || p->state == MURAL_TUNE_MEASURED;
}

/* Images per second, and with the uncertainty in its favour. */
static double expected(const mu_tune_search *s, const mural_tune_point *p)
{
	return (double)p->train_batch / mu_tune_model_ask(&s->model, p).step;
}

static double promised(const mu_tune_search *s, const mural_tune_point *p)
{
	return (double)p->train_batch / mu_tune_model_ask(&s->model, p).least;
}

/* The measured point that the model expects to be the fastest; n_points without any. */
static size_t best_measured(const mu_tune_search *s)
{
	const mural_tune_result *r = s->result;
	size_t best = r->n_points;
	double most = 0;
	for (size_t i = 0; i < r->n_points; i++)
		if (r->points[i].state == MURAL_TUNE_MEASURED && expected(s, &r->points[i]) > most) {
			most = expected(s, &r->points[i]);
			best = i;
		}
	return best;
}

/* A smaller batch, which learns more from an image, or a smaller micro-batch that leaves a tenth of the memory free. */
static bool is_smaller(const mural_tune_point *a, const mural_tune_point *b)
{
	if (a->train_batch != b->train_batch)
		return a->train_batch < b->train_batch;
	return a->micro_batch < b->micro_batch && 10 * a->memory_bytes <= 9 * b->memory_bytes;
}

/* Is some micro-batch of that size or a near one measured? Before the first trial all are near. */
static bool within_reach(const mu_tune_search *s, const mural_tune_point *p)
{
	double micro = (double)p->micro_batch;
	for (size_t i = 0; i < s->model.n; i++)
		if (s->model.samples[i].micro <= REACH * micro && micro <= REACH * s->model.samples[i].micro)
			return true;
	return s->model.n == 0;
}

static bool may_be_tried(const mu_tune_search *s, const mural_tune_point *p)
{
	return usable(p) && p->trials < MOST_ROUNDS && within_reach(s, p);
}

/* The most promising point besides `best`, of equals the one of which most is expected; n_points when none may be tried. */
static size_t challenger(const mu_tune_search *s, size_t best, double *promise)
{
	const mural_tune_result *r = s->result;
	size_t chosen = r->n_points;
	double most = 0;
	*promise = 0;
	for (size_t i = 0; i < r->n_points; i++)
		if (i != best && may_be_tried(s, &r->points[i]))
			*promise = fmax(*promise, promised(s, &r->points[i]));
	for (size_t i = 0; i < r->n_points; i++) {
		const mural_tune_point *p = &r->points[i];
		if (i == best || !may_be_tried(s, p) || promised(s, p) < SAME * *promise || expected(s, p) <= most)
			continue;
		most = expected(s, p);
		chosen = i;
	}
	return chosen;
}

static uint32_t steps_for(const mu_tune_search *s, const mural_tune_point *p)
{
	if (s->model.n == 0)
		return LEAST_STEPS;
	double steps = ceil(s->trial_seconds / mu_tune_model_ask(&s->model, p).step);
	return steps < LEAST_STEPS ? LEAST_STEPS : steps > MOST_STEPS ? MOST_STEPS : (uint32_t)steps;
}

/* Starting processes, opening data: what trials took besides their steps. */
static double start_seconds(const mu_tune_search *s)
{
	double sum = 0;
	size_t n = 0;
	for (size_t t = 0; t < s->result->n_trials; t++) {
		const mural_tune_trial *trial = &s->result->trials[t];
		if (!trial->measured)
			continue;
		sum += fmax(0, trial->seconds - (trial->steps + s->warm_up) * trial->step_seconds);
		n++;
	}
	return n > 0 ? sum / (double)n : 0;
}

static double seconds_of(const mu_tune_search *s, const mural_tune_point *p)
{
	return start_seconds(s) + (steps_for(s, p) + s->warm_up) * mu_tune_model_ask(&s->model, p).step;
}

/* One trial of each point that fits. */
static double sweep_seconds(const mu_tune_search *s)
{
	double sum = 0;
	for (size_t i = 0; s->model.n > 0 && i < s->result->n_points; i++)
		if (usable(&s->result->points[i]))
			sum += seconds_of(s, &s->result->points[i]);
	return sum;
}

/* What needs no less memory than a point that had not enough: as much by plan, or as many images on as many ranks. */
static void cap(mural_tune_result *r, size_t died)
{
	const mural_tune_point *d = &r->points[died];
	char text[MURAL_TUNE_TEXT];
	for (size_t i = 0; i < r->n_points; i++) {
		mural_tune_point *p = &r->points[i];
		bool planned = d->memory_bytes > 0 && p->memory_bytes * p->ranks >= d->memory_bytes * d->ranks;
		bool larger = p->ranks >= d->ranks && p->micro_batch >= d->micro_batch;
		if (i == died || p->state != MURAL_TUNE_OPEN || !(planned || larger))
			continue;
		p->state = MURAL_TUNE_TOO_LARGE;
		snprintf(p->why, sizeof p->why, "needs no less memory than %s, which ran out of it",
		         mural_tune_point_text(d, text));
	}
}

/* Do all points make steps of equally many images? */
static bool one_batch(const mural_tune_result *r)
{
	for (size_t i = 1; i < r->n_points; i++)
		if (r->points[i].train_batch != r->points[0].train_batch)
			return false;
	return true;
}

/* With one batch for all the fixed part of a step is as good as a part of each image, and is left there: how long ranks wait for each
 * other differs from trial to trial, and a mean of that would be taken for a property of the arm. */
static void learn(mu_tune_search *s, const mural_tune_point *p, mural_tune_trial *trial, const mu_tune_measure *m)
{
	double few = STEP_ERROR / sqrt(trial->steps);
	double images = (double)(p->micro_batch * p->accumulation);
	trial->measured = true;
	trial->step_seconds = m->step;
	trial->fixed_seconds = fmin(fmax(m->fixed, 0), m->step);
	trial->error = isfinite(m->error) ? fmax(m->error, few) : few;
	trial->images_per_second = (double)p->train_batch / m->step;
	double fixed = one_batch(s->result) ? 0 : trial->fixed_seconds;
	const mu_tune_sample sample = {
	        .ranks = p->ranks,
	        .threads = p->threads,
	        .micro = (double)p->micro_batch,
	        .cost = fmax(m->step - fixed, 1e-9) * p->threads / images,
	        .fixed = fixed,
	        .error = trial->error,
	};
	mu_tune_model_add(&s->model, &sample);
}

/* One trial, with all that follows from it. */
static mural_status try_point(mu_tune_search *s, size_t point, mural_error *err)
{
	mural_tune_result *r = s->result;
	mural_tune_point *p = &r->points[point];
	mural_tune_trial *trial = &r->trials[r->n_trials];
	mu_tune_measure m = {.error = NAN};
	*trial = (mural_tune_trial){.point = point, .round = p->trials + 1, .steps = steps_for(s, p)};
	MU_TRY(s->measure(s->context, point, trial->round, trial->steps, &m, err));
	if (m.end == MU_TUNE_STOPPED)
		return MURAL_STOPPED;
	r->n_trials++;
	p->trials++;
	trial->reused = m.reused;
	trial->seconds = m.seconds;
	r->seconds += m.seconds;
	if (m.end == MU_TUNE_DONE) {
		p->state = MURAL_TUNE_MEASURED;
		learn(s, p, trial, &m);
	} else {
		p->state = m.end == MU_TUNE_NO_MEMORY ? MURAL_TUNE_TOO_LARGE : MURAL_TUNE_FAILED;
		snprintf(p->why, sizeof p->why, "%s", m.why);
		if (m.end == MU_TUNE_NO_MEMORY)
			cap(r, point);
	}
	if (s->tell)
		s->tell(s->tell_context, p, trial);
	return MURAL_OK;
}

/* Has trial after trial failed, and none succeeded? Memory is another matter: that has an end. */
static mural_status check_hope(const mu_tune_search *s, mural_error *err)
{
	const mural_tune_result *r = s->result;
	size_t failed = 0;
	const char *why = "";
	for (size_t i = 0; i < r->n_points; i++)
		if (r->points[i].state == MURAL_TUNE_FAILED) {
			failed++;
			why = r->points[i].why;
		}
	if (s->model.n > 0 || failed < GIVE_UP)
		return MURAL_OK;
	return mu_fail(err, MURAL_FAILED, NULL, "the first %zu trials all failed; the last one said: %s", failed, why);
}

static mural_status search(mu_tune_search *s, mural_error *err)
{
	mural_tune_result *r = s->result;
	while (r->n_trials < MURAL_TUNE_TRIALS) {
		double promise, most;
		size_t best = best_measured(s), next = challenger(s, best, &promise);
		if (s->stop_asked && s->stop_asked())
			return MURAL_STOPPED;
		most = best < r->n_points ? expected(s, &r->points[best]) : 0;
		r->could_gain = next < r->n_points && most > 0 ? fmax(0, promise / most - 1) : 0;
		r->settled = next == r->n_points || (most > 0 && promise <= most * (1 + s->tolerance));
		r->sweep_seconds = sweep_seconds(s);
		if (r->settled)
			break;
		if (s->model.n >= FEWEST &&
		    r->seconds + seconds_of(s, &r->points[next]) > MARGIN * s->budget * r->sweep_seconds)
			break;
		MU_TRY(try_point(s, next, err));
		MU_TRY(check_hope(s, err));
	}
	return MURAL_OK;
}

/* Is there a measured point of the same arm and batch with a smaller micro-batch, and one with a larger? Then the model does not
 * guess of p, it reads between the lines. */
static bool is_between(const mural_tune_result *r, const mural_tune_point *p)
{
	bool smaller = false, larger = false;
	for (size_t i = 0; i < r->n_points; i++) {
		const mural_tune_point *q = &r->points[i];
		if (q->state != MURAL_TUNE_MEASURED || q->ranks != p->ranks || q->threads != p->threads ||
		    q->train_batch != p->train_batch)
			continue;
		smaller |= q->micro_batch < p->micro_batch;
		larger |= q->micro_batch > p->micro_batch;
	}
	return smaller && larger;
}

static void fill_expected(const mu_tune_search *s)
{
	for (size_t i = 0; i < s->result->n_points; i++) {
		mural_tune_point *p = &s->result->points[i];
		mu_tune_forecast f = mu_tune_model_ask(&s->model, p);
		double batch = (double)p->train_batch;
		bool known = s->model.n > 0 && usable(p);
		p->images_per_second = known ? batch / f.step : NAN;
		p->low = known ? batch / (f.step + 1.96 * f.error) : NAN;
		p->high = known ? batch / fmax(f.step - 1.96 * f.error, 0.1 * f.step) : NAN;
	}
}

/* The fastest that was measured, or one between measured ones that the budget left untried although more is expected of it. Of what is as
 * fast within the tolerance the smallest. */
static void choose(mu_tune_search *s)
{
	mural_tune_result *r = s->result;
	size_t best = best_measured(s);
	fill_expected(s);
	r->chosen = best;
	if (best == r->n_points)
		return;
	for (size_t i = 0; i < r->n_points; i++) {
		const mural_tune_point *p = &r->points[i], *b = &r->points[best];
		bool tried = b->state == MURAL_TUNE_MEASURED;
		if (p->state == MURAL_TUNE_OPEN && is_between(r, p) &&
		    p->images_per_second > b->images_per_second * (tried ? 1 + s->tolerance : 1))
			best = i;
	}
	r->chosen = best;
	for (size_t i = 0; i < r->n_points; i++) {
		const mural_tune_point *p = &r->points[i];
		if (p->state == MURAL_TUNE_MEASURED && is_smaller(p, &r->points[r->chosen]) &&
		    p->images_per_second * (1 + s->tolerance) >= r->points[best].images_per_second)
			r->chosen = i;
	}
}

mural_status mu_tune_search_run(mu_tune_search *s, mural_error *err)
{
	mural_tune_result *r = s->result;
	mu_tune_model_init(&s->model);
	r->n_trials = 0;
	r->seconds = 0;
	mural_status status = search(s, err);
	choose(s);
	if (r->chosen < r->n_points)
		mu_tune_explain(r, &s->model, s->tolerance);
	else if (status == MURAL_OK)
		status = mu_fail(err, MURAL_FAILED, NULL, "no trial succeeded; the last one said: %s",
		                 r->n_trials > 0 ? r->points[r->trials[r->n_trials - 1].point].why : "nothing");
	return status;
}
