/* A balance from inside: what its files share. SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_BALANCE_INSIDE_H
#define MU_ENGINE_BALANCE_INSIDE_H

#include "engine/balance.h"
#include "engine/balance_members.h"

struct mu_balance {
	int ranks, global_batch, grain;
	bool may_remove, first_stays;
	mu_balance_network network;
	mu_link_node *nodes; /* network.nodes and .seat, owned */
	int *seat;
	mu_balance_rank *rank; /* [ranks] */
	mu_balance_model *model; /* [ranks] */
	mu_balance_model *pooled; /* [ranks] the same for decisions: balance_pool.h */
	int *shares; /* in force */
	bool *member;
	mu_balance_team better, best; /* with all members; with whom a step is shortest */
	bool *room_member; /* to work in */
	int *room_shares, *room_order;
	mu_link_node *room_nodes;

	/* of the decisions so far */
	unsigned decisions, quiet; /* quiet: since the shares last changed */
	double step_measured; /* seconds of a step by the last rows; 0: not known */
	double step_before; /* measured before the last change */
	double promised; /* gain that the last change promised, to be judged by the next rows; 0: nothing to judge */
	double caution; /* >= 1: the asked gain is multiplied by it */
	bool *leaving; /* [ranks] who would stay by the last search that left anyone out */
	bool asked; /* the last decision found so, and the next one confirms it or not */
	bool proposed; /* this decision found so */
	unsigned next_search, between_searches; /* for a better team, in decisions */
	mu_balance_decision decision;
};

/* Of the members, with the speeds of the last decision; works in the balance's room. */
mu_balance_search mu_balance_search_of(const mu_balance *balance);

/* balance_words.c: the decision's reason. */
void mu_balance_say_unknown(mu_balance *balance, int rank);
void mu_balance_say_kept(mu_balance *balance);
void mu_balance_say_changed(mu_balance *balance, const int *shares);
void mu_balance_say_removed(mu_balance *balance, const bool *member);
void mu_balance_say_might_remove(mu_balance *balance);

#endif
