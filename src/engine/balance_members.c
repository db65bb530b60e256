/* Who should take part. SPDX-License-Identifier: MIT */
#include "engine/balance_members.h"

#include <string.h>

/* The set in search->member with its best shares, kept in *team if a step is shorter than there. */
static bool try_set(const mu_balance_search *search, mu_balance_team *team)
{
	mu_balance_problem problem = search->problem;
	size_t ranks = (size_t)problem.ranks;
	problem.member = search->member;
	problem.reduction =
	        mu_balance_reduction(problem.network, search->member, problem.ranks, search->bytes, search->nodes);
	if (team->step >= 0 && mu_balance_step_seconds(problem.network, 0, 0, problem.reduction) >= team->step)
		return false;
	double step = mu_balance_solve(&problem, search->shares);
	if (step < 0 || (team->step >= 0 && step >= team->step))
		return false;
	memcpy(team->member, search->member, ranks * sizeof *team->member);
	memcpy(team->shares, search->shares, ranks * sizeof *team->shares);
	team->computing = mu_balance_longest(&problem, search->shares);
	team->reduction = problem.reduction;
	team->step = step;
	return true;
}

void mu_balance_with_all(const mu_balance_search *search, mu_balance_team *team)
{
	memcpy(search->member, search->problem.member, (size_t)search->problem.ranks * sizeof *search->member);
	team->step = -1;
	try_set(search, team);
}

void mu_balance_without(const mu_balance_search *search, int rank, mu_balance_team *team)
{
	memcpy(search->member, search->problem.member, (size_t)search->problem.ranks * sizeof *search->member);
	search->member[rank] = false;
	team->step = -1;
	try_set(search, team);
}

static int count_members(const mu_balance_problem *problem)
{
	int n = 0;
	for (int r = 0; r < problem->ranks; r++)
		n += problem->member[r];
	return n;
}

/* Bit i of `set`: the i-th of those who may take part. */
static void try_all_sets(const mu_balance_search *search, mu_balance_team *team, int members)
{
	for (unsigned set = (1u << members) - 1; set > 0; set--) {
		for (int r = 0, i = 0; r < search->problem.ranks; r++)
			search->member[r] = search->problem.member[r] && (set >> i++ & 1) != 0;
		try_set(search, team);
	}
}

/* Is there another rank before r, still in, with the same device on the same node's links? */
static bool tried_alike(const mu_balance_search *search, const mu_balance_team *team, int r)
{
	const mu_balance_problem *p = &search->problem;
	const int *seat = search->problem.network->nodes ? search->problem.network->seat : NULL;
	for (int q = 0; q < r; q++)
		if (team->member[q] && p->model[q].a == p->model[r].a && p->model[q].b == p->model[r].b &&
		    p->rank[q].capacity == p->rank[r].capacity && p->rank[q].micro == p->rank[r].micro &&
		    (!seat || seat[q] == seat[r]))
			return true;
	return false;
}

/* Leaves out the one whose absence helps most; false when nobody's does. */
static bool leave_one_out(const mu_balance_search *search, mu_balance_team *team)
{
	bool better = false;
	int ranks = search->problem.ranks, members = 0, out = -1;
	for (int r = 0; r < ranks; r++)
		members += team->member[r];
	for (int r = 0; r < ranks && members > 1; r++) {
		if (!team->member[r] || tried_alike(search, team, r))
			continue;
		memcpy(search->member, team->member, (size_t)ranks * sizeof *search->member);
		if (out >= 0)
			search->member[out] = true;
		search->member[r] = false;
		if (try_set(search, team)) {
			better = true;
			out = r;
		}
	}
	return better;
}

void mu_balance_best_team(const mu_balance_search *search, mu_balance_team *team)
{
	int members = count_members(&search->problem);
	mu_balance_with_all(search, team);
	if (team->step < 0)
		return;
	if (members <= MU_BALANCE_ALL_SETS)
		try_all_sets(search, team, members);
	else
		while (leave_one_out(search, team))
			;
}
