/* What the reduction of gradients costs with these ranks or those, and a step with it.
 *
 * With C = the longest computing of any rank, F = when the last rank has its first bucket ready, R = the reduction:
 *
 *     without overlap   step = C + R
 *     with overlap      step = max(C + R / buckets, F + R)
 *
 * The last of `buckets` can only travel when backward is done; the first when `first` of the computing of the last micro-batch is,
 * so F = C (1 - (1 - first) / micro-batches). R comes from the described links (comm/link.h: one slow uplink stalls a ring), or from
 * what was waited for in a run: then nothing is taken to hide behind computing, and with other members R changes as the formulas have it
 * for the links that were looked at (probe.h), or as if all links were alike, since a reduction tells nothing of whose link was slow.
 * SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_BALANCE_LINKS_H
#define MU_ENGINE_BALANCE_LINKS_H

#include <stdbool.h>

#include "comm/link.h"

typedef struct mu_balance_network {
	const mu_link_node *nodes; /* [n_nodes]: the links of each node (its `ranks` are not read); NULL: not known */
	bool probed; /* they are not described: a short look has told how they compare, and R is what is measured */
	int n_nodes;
	const int *seat; /* [ranks]: each rank's node; not read without nodes */
	mu_algorithm algorithm;
	double bytes; /* of all gradients as they travel, a miniature's byte scale included */
	bool overlap;
	double first; /* part of a micro-batch's computing before the first bucket is ready; 0: as buckets alike have it:
	                 forward, a third, and so much of backward, 1/3 + 2/3 / buckets */
	int buckets; /* 0 is taken as 1 */
	double measured; /* where links are not known: seconds of a reduction among so many ranks, 0: not known either */
	int measured_ranks;
	double measured_formula; /* what the formulas said of those; where links were looked at */
	double update; /* seconds of the optimizer's update and what else follows the reduction on every rank */
} mu_balance_network;

/* Seconds of an all-reduce of `bytes` among the members; 0 for one of them. room: [n_nodes], not used where links are not known. */
double mu_balance_reduction(const mu_balance_network *network, const bool *member, int ranks, double bytes,
                            mu_link_node *room);

/* The same by the links' formulas alone; only where nodes are known. */
double mu_balance_by_links(const mu_balance_network *network, const bool *member, int ranks, double bytes,
                           mu_link_node *room);

/* Are links described, so that a reduction can be told beforehand? */
static inline bool mu_balance_described(const mu_balance_network *network)
{
	return network->nodes && !network->probed;
}

/* F for a rank that computes so long in so many micro-batches. */
double mu_balance_ready(const mu_balance_network *network, double computing, double micro_batches);

/* Seconds of a step, from C, F and R. */
double mu_balance_step_seconds(const mu_balance_network *network, double computing, double ready, double reduction);

#endif
