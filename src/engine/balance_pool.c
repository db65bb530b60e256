/* Who counts as alike. SPDX-License-Identifier: MIT */
#include "engine/balance_pool.h"

#include <math.h>
#include <string.h>

static double seconds_of(const mu_balance_problem *p, int r, int images)
{
	return mu_balance_model_seconds(&p->model[r], images, p->rank[r].micro);
}

/* Squared standard error, in seconds. */
static double variance_of(const mu_balance_problem *p, int r, int images)
{
	const double error = mu_balance_model_error(&p->model[r], images, p->rank[r].micro) * seconds_of(p, r, images);
	return error * error;
}

/* Known members, the fastest first; of equals the first rank. Returns how many. */
static int sort_members(const mu_balance_problem *p, int images, int *order)
{
	int n = 0;
	for (int r = 0; r < p->ranks; r++) {
		if (!p->member[r] || p->model[r].b <= 0)
			continue;
		int at = n++;
		for (; at > 0 && seconds_of(p, order[at - 1], images) > seconds_of(p, r, images); at--)
			order[at] = order[at - 1];
		order[at] = r;
	}
	return n;
}

/* All in order[0 .. n) as fast as their mean; a and b of each keep their proportion. */
static void make_alike(const mu_balance_problem *p, int images, const int *order, int n, mu_balance_model *pooled)
{
	double sum = 0;
	for (int i = 0; i < n; i++)
		sum += seconds_of(p, order[i], images);
	for (int i = 0; i < n; i++) {
		const double factor = sum / n / seconds_of(p, order[i], images);
		pooled[order[i]].a *= factor;
		pooled[order[i]].b *= factor;
	}
}

void mu_balance_pool(const mu_balance_problem *problem, int images, mu_balance_model *pooled, int *order)
{
	memcpy(pooled, problem->model, (size_t)problem->ranks * sizeof *pooled);
	const int n = sort_members(problem, images, order);
	for (int from = 0, to; from < n; from = to) {
		/* Against the fastest of the group: a chain of small differences ends somewhere. */
		const double fastest = seconds_of(problem, order[from], images);
		for (to = from + 1; to < n; to++) {
			const double error = sqrt(variance_of(problem, order[from], images) +
			                          variance_of(problem, order[to], images));
			if (seconds_of(problem, order[to], images) - fastest > 2 * error)
				break;
		}
		make_alike(problem, images, order + from, to - from, pooled);
	}
}
