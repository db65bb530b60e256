/* Who should take part at all: the set of ranks with which a step is shortest, each set with its best shares.
 *
 * The global batch stays as it is, so leaving a rank out gives its images to the others; that pays where the reduction gets cheaper by
 * more than they need for them. Up to MU_BALANCE_ALL_SETS ranks all sets are tried; of more, one rank after the other is left out as
 * long as that helps, each time the one that helps most, and ranks alike on one node are tried once.
 * SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_BALANCE_MEMBERS_H
#define MU_ENGINE_BALANCE_MEMBERS_H

#include "engine/balance_links.h"
#include "engine/balance_solve.h"

enum { MU_BALANCE_ALL_SETS = 8 };

typedef struct mu_balance_team {
	bool *member; /* [ranks] */
	int *shares; /* [ranks] */
	double computing, reduction, step; /* seconds */
} mu_balance_team;

typedef struct mu_balance_search {
	mu_balance_problem problem; /* its members: who may take part; its reduction is not read */
	double bytes; /* of the reduction */
	bool first_stays; /* rank 0 is no candidate for leaving */
	/* room to work in */
	mu_link_node *nodes; /* [nodes of the network] */
	bool *member; /* [ranks] */
	int *shares; /* [ranks] */
} mu_balance_search;

/* The best shares with all members; step -1 when they do not fit. */
void mu_balance_with_all(const mu_balance_search *search, mu_balance_team *team);

/* The best shares with all members but one. */
void mu_balance_without(const mu_balance_search *search, int rank, mu_balance_team *team);

/* The best set. step -1 when not even all members together have room. */
void mu_balance_best_team(const mu_balance_search *search, mu_balance_team *team);

#endif
