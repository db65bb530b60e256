/* The cost of collectives on described links. SPDX-License-Identifier: MIT */
#include "comm/link.h"

#include <math.h>

typedef struct worst {
	double step; /* max(latency + bytes / bandwidth) */
	double latency, seconds_per_byte;
} worst;

static void meet(worst *w, mu_link link, double bytes)
{
	w->step = fmax(w->step, link.latency + bytes / link.bytes_per_second);
	w->latency = fmax(w->latency, link.latency);
	w->seconds_per_byte = fmax(w->seconds_per_byte, 1 / link.bytes_per_second);
}

/* Over all links in use, each carrying `bytes`. */
static worst worst_link(const mu_links *links, double bytes)
{
	worst w = {0};
	for (int i = 0; i < links->n_nodes; i++) {
		if (links->n_nodes > 1)
			meet(&w, links->nodes[i].uplink, bytes);
		if (links->nodes[i].ranks > 1)
			meet(&w, links->nodes[i].inside, bytes);
	}
	return w;
}

static int levels(int n)
{
	int levels = 0;
	while (1 << levels < n)
		levels++;
	return levels;
}

/* From one rank to all: over the nodes, then in each node; the slowest node counts. */
static double tree(const mu_links *links, double bytes)
{
	double between = 0, inside = 0;
	for (int i = 0; i < links->n_nodes; i++) {
		const mu_link_node *node = &links->nodes[i];
		if (links->n_nodes > 1)
			between = fmax(between, node->uplink.latency + bytes / node->uplink.bytes_per_second);
		if (node->ranks > 1)
			inside = fmax(inside, levels(node->ranks) *
			                              (node->inside.latency + bytes / node->inside.bytes_per_second));
	}
	return levels(links->n_nodes) * between + inside;
}

static double ring(const mu_links *links, mu_collective collective, double bytes)
{
	double n = links->ranks;
	worst w = worst_link(links, bytes / n);
	double once = (n - 1) * w.step;
	if (collective == MU_ALL_REDUCE)
		return 2 * once;
	if (collective == MU_BROADCAST)
		return once + levels(links->ranks) * w.latency + (n - 1) / n * bytes * w.seconds_per_byte;
	return once;
}

static double pairs(const mu_links *links, double bytes)
{
	double n = links->ranks, block = bytes / n, seconds = 0;
	for (int i = 0; i < links->n_nodes; i++) {
		const mu_link_node *node = &links->nodes[i];
		double m = node->ranks;
		if (links->n_nodes > 1)
			seconds = fmax(seconds, m * (n - m) * block / node->uplink.bytes_per_second);
		if (node->ranks > 1)
			seconds = fmax(seconds, (m - 1) * block / node->inside.bytes_per_second);
	}
	return (n - 1) * worst_link(links, 0).latency + seconds;
}

static double choose(const mu_links *links, double by_ring, double by_tree)
{
	switch (links->algorithm) {
	case MU_ALGORITHM_RING: return by_ring;
	case MU_ALGORITHM_TREE: return by_tree;
	case MU_ALGORITHM_AUTO: break;
	}
	return fmin(by_ring, by_tree);
}

double mu_link_seconds(const mu_links *links, mu_collective collective, double bytes)
{
	if (links->ranks < 2)
		return 0;
	switch (collective) {
	case MU_ALL_REDUCE: return choose(links, ring(links, collective, bytes), 2 * tree(links, bytes));
	case MU_BROADCAST: return choose(links, ring(links, collective, bytes), tree(links, bytes));
	case MU_BARRIER: return 2 * tree(links, 0);
	case MU_ALL_TO_ALL: return pairs(links, bytes);
	case MU_ALL_GATHER:
	case MU_REDUCE_SCATTER:
	case MU_COLLECTIVE_COUNT: break;
	}
	return ring(links, collective, bytes);
}
