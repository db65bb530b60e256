/* The best integer shares. SPDX-License-Identifier: MIT */
#include "engine/balance_solve.h"

#include <math.h>

/* The global batch in bits of `grain`, and who takes what is left over. */
typedef struct sharing {
	const mu_balance_problem *problem;
	int grain, rest,
	        tail; /* rank `tail` has `rest` images beside its bits, and nobody after it has any; -1: no rest */
} sharing;

static int rest_of(const sharing *s, int r)
{
	return r == s->tail ? s->rest : 0;
}

static double seconds_of(const sharing *s, int r, int bits)
{
	return mu_balance_expected_of(s->problem, r, bits * s->grain + rest_of(s, r));
}

static int most_of(const sharing *s, int r)
{
	const mu_balance_problem *p = s->problem;
	if (!p->member[r] || p->model[r].b <= 0 || (s->tail >= 0 && r > s->tail))
		return 0;
	long long room = (long long)p->rank[r].capacity * (p->passes > 1 ? p->passes : 1);
	int most = room < p->global_batch ? (int)room : p->global_batch;
	return most > rest_of(s, r) ? (most - rest_of(s, r)) / s->grain : 0;
}

/* The most bits with which rank r is done by `time`. */
static int done_by(const sharing *s, int r, double time)
{
	int low = 0, high = most_of(s, r);
	while (low < high) {
		int middle = low + (high - low + 1) / 2;
		if (seconds_of(s, r, middle) <= time)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

static long long all_done_by(const sharing *s, double time)
{
	long long sum = 0;
	for (int r = 0; r < s->problem->ranks; r++)
		sum += done_by(s, r, time);
	return sum;
}

/* One bit more to whoever is done first with it. */
static void hand_out(const sharing *s, int *bits)
{
	int first = -1;
	double soonest = INFINITY;
	for (int r = 0; r < s->problem->ranks; r++) {
		if (bits[r] == most_of(s, r))
			continue;
		double seconds = seconds_of(s, r, bits[r] + 1);
		if (first < 0 || seconds < soonest) {
			first = r;
			soonest = seconds;
		}
	}
	bits[first]++;
}

/* false when they do not fit. */
static bool share_bits(const sharing *s, int *bits)
{
	int ranks = s->problem->ranks, left = s->problem->global_batch / s->grain;
	double early = 0, late = 0; /* by `early` nobody is done, not even with nothing */
	for (int r = 0; r < ranks; r++)
		late = fmax(late, seconds_of(s, r, most_of(s, r)));
	if (all_done_by(s, late) < left)
		return false;
	/* Exact whatever the number of halvings: who is done by `early` comes first in the order of handing out. */
	for (int i = 0; i < 24; i++) {
		double middle = early + (late - early) / 2;
		if (all_done_by(s, middle) < left)
			early = middle;
		else
			late = middle;
	}
	for (int r = 0; r < ranks; r++)
		left -= bits[r] = done_by(s, r, early);
	for (; left > 0; left--)
		hand_out(s, bits);
	for (int r = 0; r < ranks; r++)
		bits[r] = bits[r] * s->grain + rest_of(s, r);
	return true;
}

double mu_balance_expected_of(const mu_balance_problem *problem, int r, int images)
{
	int micro = problem->rank[r].micro;
	double computing = mu_balance_model_seconds(&problem->model[r], images, micro);
	double ready = mu_balance_ready(problem->network, computing, mu_balance_micro_batches(images, micro));
	return mu_balance_step_seconds(problem->network, computing, ready, problem->reduction);
}

double mu_balance_expected(const mu_balance_problem *problem, const int *shares)
{
	double longest = 0;
	for (int r = 0; r < problem->ranks; r++)
		longest = fmax(longest, mu_balance_expected_of(problem, r, shares[r]));
	return longest;
}

double mu_balance_longest(const mu_balance_problem *problem, const int *shares)
{
	double longest = 0;
	for (int r = 0; r < problem->ranks; r++)
		longest =
		        fmax(longest, mu_balance_model_seconds(&problem->model[r], shares[r], problem->rank[r].micro));
	return longest;
}

double mu_balance_solve(const mu_balance_problem *problem, int *shares)
{
	sharing s = {.problem = problem, .grain = problem->grain, .tail = -1};
	s.rest = problem->global_batch % s.grain;
	if (s.rest == 0)
		return share_bits(&s, shares) ? mu_balance_expected(problem, shares) : -1;
	/* Each rank in turn as the one that takes the rest; the best of them once more. */
	int best = -1;
	double shortest = INFINITY;
	for (s.tail = 0; s.tail < problem->ranks; s.tail++) {
		const bool *member = problem->member;
		if (!member[s.tail] || problem->rank[s.tail].capacity < s.rest || problem->model[s.tail].b <= 0 ||
		    !share_bits(&s, shares))
			continue;
		double longest = mu_balance_expected(problem, shares);
		if (best < 0 || longest < shortest) {
			best = s.tail;
			shortest = longest;
		}
	}
	s.tail = best;
	return best >= 0 && share_bits(&s, shares) ? shortest : -1;
}
