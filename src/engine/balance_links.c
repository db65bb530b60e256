/* The reduction among some of the ranks, and a step with it. SPDX-License-Identifier: MIT */
#include "engine/balance_links.h"

#include <math.h>

static int count(const bool *member, int ranks)
{
	int n = 0;
	for (int r = 0; r < ranks; r++)
		n += member[r];
	return n;
}

static double buckets_of(const mu_balance_network *network)
{
	return network->buckets > 1 ? network->buckets : 1;
}

/* On links that count as alike a ring takes 2 (n - 1) / n of the bytes. */
static double scaled(const mu_balance_network *network, int members, double bytes)
{
	double measured_ranks = network->measured_ranks;
	if (measured_ranks < 2 || network->bytes <= 0)
		return network->measured;
	double volume = (members - 1.0) / members / ((measured_ranks - 1) / measured_ranks);
	return network->measured * volume * bytes / network->bytes;
}

double mu_balance_by_links(const mu_balance_network *network, const bool *member, int ranks, double bytes,
                           mu_link_node *room)
{
	int members = count(member, ranks), used = 0;
	for (int i = 0; i < network->n_nodes; i++) {
		room[i] = network->nodes[i];
		room[i].ranks = 0;
	}
	for (int r = 0; r < ranks; r++)
		room[network->seat[r]].ranks += member[r];
	for (int i = 0; i < network->n_nodes; i++)
		if (room[i].ranks > 0)
			room[used++] = room[i];
	const mu_links links = {.nodes = room, .n_nodes = used, .ranks = members, .algorithm = network->algorithm};
	double buckets = buckets_of(network);
	return buckets * mu_link_seconds(&links, MU_ALL_REDUCE, bytes / buckets);
}

double mu_balance_reduction(const mu_balance_network *network, const bool *member, int ranks, double bytes,
                            mu_link_node *room)
{
	int members = count(member, ranks);
	if (members < 2)
		return 0;
	if (!network->nodes)
		return scaled(network, members, bytes);
	const double formula = mu_balance_by_links(network, member, ranks, bytes, room);
	if (!network->probed)
		return formula;
	return network->measured_formula > 0 ? network->measured * formula / network->measured_formula : 0;
}

double mu_balance_ready(const mu_balance_network *network, double computing, double micro_batches)
{
	double first = network->first > 0 ? network->first : 1.0 / 3 + 2.0 / 3 / buckets_of(network);
	return computing * (1 - (1 - first) / fmax(1, micro_batches));
}

double mu_balance_step_seconds(const mu_balance_network *network, double computing, double ready, double reduction)
{
	double together = computing + reduction;
	if (network->overlap)
		together = fmax(computing + reduction / buckets_of(network), ready + reduction);
	return together + network->update;
}
