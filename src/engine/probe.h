/* How fast is each node's link? A short look before the first step, where shares follow speed, several hosts take part and nobody
 * described their links.
 *
 * The first ranks of two neighbouring nodes reduce a buffer among themselves while the others wait, one pair after the other, around
 * the ring of nodes. That takes bytes / bandwidth of the slower of two links; a node's link is as fast as its faster pair, so of three
 * nodes or more the one behind a slow link is found. Of two nodes nobody can say whose link it is, and both have the pair's.
 *
 * It says how links compare, not what a reduction costs: that is measured in the run (balance_links.h). A fraction of a second, a few
 * on links of 10 Mbit/s.
 * SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_PROBE_H
#define MU_ENGINE_PROBE_H

#include "comm/comm.h"
#include "comm/link.h"

typedef struct mu_probe { /* zero-initialise */
	int n_nodes; /* 0: not looked at, since all ranks are on one node */
	mu_link_node *nodes; /* [n_nodes] */
	int *seat_R; /* [ranks]: each rank's node */
} mu_probe;

/* All ranks. Ranks whose host has the same name sit on one node. */
mural_status mu_probe_links(mu_probe *probe, mu_comm *comm, mural_error *err);
void mu_probe_release(mu_probe *probe);

/* host_R: names of `bytes` each, rank by rank. Nodes in the order of their first ranks; seat_R: [ranks]. Returns how many nodes. */
int mu_probe_seats(const char *host_R, size_t bytes, int ranks, int *seat_R);

/* Each node's link from those of its pairs: pair i is of nodes i and i + 1, of two nodes there is one. */
void mu_probe_judge(const mu_link *pairs, mu_link_node *nodes, int n_nodes);

#endif
