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

/* The highest bit of `set`: the first of those who may take part. So of sets that are as good, the one that keeps the first ranks. */
static void try_all_sets(const mu_balance_search *search, mu_balance_team *team, int members)
{
	const bool first_stays = search->first_stays && members > 0 && search->problem.member[0];
	const unsigned always = first_stays ? 1u << (members - 1) : 0;
	for (unsigned set = (1u << members) - 1; set > 0; set--) {
		if ((set & always) != always)
			continue;
		for (int r = 0, i = 0; r < search->problem.ranks; r++)
			search->member[r] = search->problem.member[r] && (set >> (members - 1 - i++) & 1) != 0;
		try_set(search, team);
	}
}

static bool same_link(mu_link a, mu_link b)
{
	return a.bytes_per_second == b.bytes_per_second && a.latency == b.latency;
}

static int members_at(const mu_balance_team *team, const int *seat, int ranks, int node)
{
	int n = 0;
	for (int r = 0; r < ranks; r++)
		n += team->member[r] && seat[r] == node;
	return n;
}

/* On one node, or on two with the same links and as many members. */
static bool seated_alike(const mu_balance_search *search, const mu_balance_team *team, int q, int r)
{
	const mu_balance_network *network = search->problem.network;
	if (!network->nodes || network->seat[q] == network->seat[r])
		return true;
	const mu_link_node *a = &network->nodes[network->seat[q]], *b = &network->nodes[network->seat[r]];
	int ranks = search->problem.ranks;
	return same_link(a->uplink, b->uplink) && same_link(a->inside, b->inside) &&
	       members_at(team, network->seat, ranks, network->seat[q]) ==
	               members_at(team, network->seat, ranks, network->seat[r]);
}

/* Is there another rank before r, still in, whose absence would do the same? */
static bool tried_alike(const mu_balance_search *search, const mu_balance_team *team, int r)
{
	const mu_balance_problem *p = &search->problem;
	for (int q = 0; q < r; q++)
		if (team->member[q] && p->model[q].a == p->model[r].a && p->model[q].b == p->model[r].b &&
		    p->rank[q].capacity == p->rank[r].capacity && p->rank[q].micro == p->rank[r].micro &&
		    seated_alike(search, team, q, r))
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
		if (!team->member[r] || (r == 0 && search->first_stays) || tried_alike(search, team, r))
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
