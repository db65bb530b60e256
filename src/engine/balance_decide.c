/* The decision: is there a better split, and is it enough better to change to?
 *
 * A change is asked to bring more than what noise could feign: at least LEAST_GAIN, twice the standard error of the slowest rank's
 * expected seconds, times the caution. Caution doubles with every change that did not bring half of what it promised, and a little with
 * every change without a reason (no rank drifted); it fades while nothing changes. So there are few changes on a machine whose speed
 * only fluctuates, however long it runs, and a rank whose speed really changed is followed at once.
 *
 * Leaving ranks out must bring more than that noise and is decided twice in a row before it is done; it is never undone.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "engine/balance_inside.h"
#include "engine/balance_pool.h"

static const double LEAST_GAIN = 0.02; /* of a step */
/* And of leaving ranks out where links are only measured. Where they are described any gain will do: a team that keeps a rank without
 * being faster for it is what nobody wants, and leaving it out is never worse than not having had it. */
static const double REMOVAL_GAIN_UNSURE = 0.05;
static const double MOST_CAUTION = 8;
enum {
	YOUNG = 6, /* decisions at short intervals in the beginning */
	SHORT = 4, /* full steps between two decisions */
	LONG = 10,
	SEARCHED =
	        10, /* decisions from one search for a better team to the next; twice as many after each that finds none */
	MOST_SEARCHED = 320,
};

mu_balance_search mu_balance_search_of(const mu_balance *b)
{
	return (mu_balance_search){
	        .problem = {.ranks = b->ranks,
	                    .global_batch = b->global_batch,
	                    .grain = b->grain,
	                    .rank = b->rank,
	                    .model = b->pooled,
	                    .member = b->member,
	                    .network = &b->network},
	        .bytes = b->network.bytes,
	        .first_stays = b->first_stays,
	        .nodes = b->room_nodes,
	        .member = b->room_member,
	        .shares = b->room_shares,
	};
}

static void see_models(mu_balance *b, const mu_balance_row *rows)
{
	b->decision.drifted = -1;
	b->decision.drift = 0;
	for (int r = 0; r < b->ranks; r++) {
		const mu_balance_row *row = &rows[r];
		mu_balance_model *model = &b->model[r];
		model->drift = 0;
		if (!b->member[r] || !(row->steps > 0 && row->images > 0 && row->micro_batches > 0 && row->seconds > 0))
			continue;
		mu_balance_model_see(model, row->images, row->micro_batches, row->seconds);
		if (model->drift > 0 && fabs(log(model->drift)) > fabs(log(fmax(b->decision.drift, 1e-9)))) {
			b->decision.drifted = r;
			b->decision.drift = model->drift;
		}
	}
}

static void pool(mu_balance *b)
{
	mu_balance_problem problem = mu_balance_search_of(b).problem;
	int members = 0;
	for (int r = 0; r < b->ranks; r++)
		members += b->member[r];
	problem.model = b->model;
	mu_balance_pool(&problem, b->global_batch / (members > 0 ? members : 1), b->pooled, b->room_order);
}

/* The step as it was, and where links are not known, the part of the reduction that nothing hides: what even the
 * last rank waited for. How much is hidden cannot be told from that, and guessing it from noisy waits made shares follow the noise. */
static void see_step(mu_balance *b, const mu_balance_row *rows)
{
	double longest = 0, exposed = INFINITY;
	int members = 0;
	for (int r = 0; r < b->ranks; r++) {
		if (!b->member[r])
			continue;
		members++;
		if (b->shares[r] == 0)
			continue;
		if (!(rows[r].steps > 0))
			return;
		longest = fmax(longest, rows[r].seconds);
		exposed = fmin(exposed, rows[r].waited);
	}
	if (!(longest > 0))
		return;
	b->step_measured = longest + exposed + b->network.update;
	if (mu_balance_described(&b->network))
		return;
	bool first = b->network.measured_ranks != members;
	b->network.measured = first ? exposed : 0.7 * b->network.measured + 0.3 * exposed;
	b->network.measured_ranks = members;
	if (b->network.nodes && members > 1)
		b->network.measured_formula =
		        mu_balance_by_links(&b->network, b->member, b->ranks, b->network.bytes, b->room_nodes);
}

/* What the last change brought, against what it promised. */
static void judge(mu_balance *b)
{
	if (b->decision.drifted >= 0) {
		b->caution = 1;
	} else if (b->promised > 0 && b->step_before > 0) {
		double gain = 1 - b->step_measured / b->step_before;
		if (gain < b->promised / 2)
			b->caution = fmin(MOST_CAUTION, 2 * b->caution);
	} else if (b->quiet > 0) {
		b->caution = fmax(1, 0.98 * b->caution);
	}
	b->promised = 0;
}

/* By how much a step might really be longer, as a fraction: two standard errors of what its slowest rank computes, as far as they
 * lengthen the step. */
static double error_of_step(const mu_balance *b, const mu_balance_problem *p)
{
	int slowest = 0;
	for (int r = 1; r < b->ranks; r++)
		if (mu_balance_expected_of(p, r, b->shares[r]) > mu_balance_expected_of(p, slowest, b->shares[slowest]))
			slowest = r;
	int images = b->shares[slowest], micro = b->rank[slowest].micro;
	double longer = mu_balance_model_seconds(&b->pooled[slowest], images, micro) *
	                (1 + 2 * mu_balance_model_error(&b->pooled[slowest], images, micro));
	double ready = mu_balance_ready(&b->network, longer, mu_balance_micro_batches(images, micro));
	double step = mu_balance_expected_of(p, slowest, images);
	return step > 0 ? mu_balance_step_seconds(&b->network, longer, ready, p->reduction) / step - 1 : 0;
}

/* Who was never measured; -1: all were, or had nothing to measure. */
static int find_unknown(const mu_balance *b)
{
	for (int r = 0; r < b->ranks; r++)
		if (b->member[r] && b->shares[r] > 0 && b->model[r].b <= 0)
			return r;
	return -1;
}

static void adopt(mu_balance *b, const mu_balance_team *team, double gain)
{
	size_t ranks = (size_t)b->ranks;
	memcpy(b->shares, team->shares, ranks * sizeof *b->shares);
	memcpy(b->member, team->member, ranks * sizeof *b->member);
	b->decision.changed = true;
	b->decision.after = team->step;
	b->step_before = b->step_measured;
	b->promised = gain;
	b->quiet = 0;
	/* Without a reason that the next rows can see, a change asks for patience afterwards. */
	if (b->decisions > YOUNG && b->decision.drifted < 0)
		b->caution = fmin(MOST_CAUTION, 1.3 * b->caution);
}

static bool same_members(const mu_balance *b, const bool *a, const bool *c)
{
	return memcmp(a, c, (size_t)b->ranks * sizeof *a) == 0;
}

/* Is it time to look for a better team, and could there be one that brings `asked` more? No team computes faster than all together, so
 * what the reduction lengthens a step by is the most that leaving ranks out can bring. */
static bool search_is_due(mu_balance *b, double after, double asked)
{
	if (b->decision.drifted >= 0 || b->quiet == 1)
		b->between_searches = SEARCHED;
	else if (b->decisions > YOUNG && b->decisions < b->next_search)
		return false;
	b->next_search = b->decisions + b->between_searches;
	b->between_searches = 2 * b->between_searches < MOST_SEARCHED ? 2 * b->between_searches : MOST_SEARCHED;
	return b->better.step < 0 || 1 - (b->better.computing + b->network.update) / after > asked;
}

/* Looks for a better team, now and then; true when ranks were left out. `after`: of the best shares with all; noise: a gain that
 * means nothing. */
static bool consider_removal(mu_balance *b, double after, double noise)
{
	double asked = mu_balance_described(&b->network) ? 0 : fmax(REMOVAL_GAIN_UNSURE, noise);
	bool asked_before = b->asked;
	b->proposed = b->asked = false;
	if (!search_is_due(b, after, asked))
		return false;
	const mu_balance_search search = mu_balance_search_of(b);
	mu_balance_best_team(&search, &b->best);
	if (b->best.step < 0 || 1 - b->best.step / after <= asked || same_members(b, b->best.member, b->member))
		return false;
	bool again = asked_before && same_members(b, b->best.member, b->leaving);
	memcpy(b->leaving, b->best.member, (size_t)b->ranks * sizeof *b->leaving);
	b->proposed = true;
	if (b->may_remove && !again) {
		b->asked = true;
		b->next_search = b->decisions + 1;
	}
	if (!again || !b->may_remove)
		return false;
	mu_balance_say_removed(b, b->best.member);
	adopt(b, &b->best, 1 - b->best.step / b->decision.before);
	b->decision.removed = true;
	return true;
}

static void consider(mu_balance *b)
{
	mu_balance_decision *d = &b->decision;
	mu_balance_search search = mu_balance_search_of(b);
	search.problem.reduction =
	        mu_balance_reduction(&b->network, b->member, b->ranks, b->network.bytes, b->room_nodes);
	d->before = d->after = mu_balance_expected(&search.problem, b->shares);
	double noise = b->caution * error_of_step(b, &search.problem);
	d->worthwhile = fmax(LEAST_GAIN * b->caution, noise);
	mu_balance_with_all(&search, &b->better);
	if (consider_removal(b, b->better.step > 0 ? fmin(d->before, b->better.step) : d->before, noise))
		return;
	double gain = b->better.step > 0 ? 1 - b->better.step / d->before : 0;
	if (gain > d->worthwhile) {
		mu_balance_say_changed(b, b->better.shares);
		adopt(b, &b->better, gain);
	} else {
		mu_balance_say_kept(b);
	}
	if (b->proposed)
		mu_balance_say_might_remove(b);
}

const mu_balance_decision *mu_balance_decide(mu_balance *b, const mu_balance_row *rows)
{
	mu_balance_decision *d = &b->decision;
	d->changed = d->removed = false;
	d->before = d->after = d->worthwhile = 0;
	b->decisions++;
	b->quiet++;
	see_models(b, rows);
	pool(b);
	see_step(b, rows);
	judge(b);
	int unknown = find_unknown(b);
	if (unknown >= 0)
		mu_balance_say_unknown(b, unknown);
	else
		consider(b);
	return d;
}

int mu_balance_interval(const mu_balance *b)
{
	if (b->decisions < YOUNG || b->quiet < 2 || b->asked)
		return SHORT;
	for (int r = 0; r < b->ranks; r++)
		if (b->member[r] && b->model[r].suspect > 0)
			return SHORT;
	return LONG;
}
