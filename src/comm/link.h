/* What a collective costs on described links: arithmetic only, no clock and no messages.
 *
 * Ranks sit on nodes. Inside a node each device has a link of its own to the others (`inside`); between nodes each node has one
 * full-duplex uplink that all its ranks share. Every algorithm is laid out node by node, so a ring crosses each uplink once in each
 * direction, and a tree spans the nodes first and then each node. With n ranks, s bytes, and max over the links in use:
 *
 *     ring   all-reduce            2 (n - 1) max(latency + s / n / bandwidth)
 *            all-gather,           (n - 1) max(latency + s / n / bandwidth)        s: all n blocks
 *            reduce-scatter
 *            broadcast             scatter and all-gather: (n - 1) max(...) + ceil(log2 n) max latency + (n - 1) / n s / min bandwidth
 *     tree   broadcast             ceil(log2 nodes) (uplink's latency + s / bandwidth) + ceil(log2 ranks of a node) (inside's ...)
 *            all-reduce, barrier   twice that (up and down); a barrier carries no bytes
 *     pairs  all-to-all            (n - 1) max latency + the largest of: what a node's m ranks send out through their one uplink,
 *                                  m (n - m) s / n / bandwidth; what a device sends to its neighbours, (m - 1) s / n / bandwidth
 *
 * MU_ALGORITHM_AUTO takes the cheaper of ring and tree, as MPI and NCCL do. Thakur, Rabenseifner, Gropp 2005, "Optimization of
 * Collective Communication Operations in MPICH".
 * SPDX-License-Identifier: MIT */
#ifndef MU_COMM_LINK_H
#define MU_COMM_LINK_H

#include "comm/comm.h"

typedef struct mu_link {
	double bytes_per_second, latency; /* > 0; seconds, >= 0 */
} mu_link;

typedef enum mu_algorithm { MU_ALGORITHM_AUTO, MU_ALGORITHM_RING, MU_ALGORITHM_TREE } mu_algorithm;

/* A node that holds ranks. */
typedef struct mu_link_node {
	int ranks; /* >= 1 */
	mu_link uplink; /* not read where there is one node only */
	mu_link inside; /* not read where ranks is 1 */
} mu_link_node;

typedef struct mu_links {
	const mu_link_node *nodes; /* borrowed */
	int n_nodes, ranks;
	mu_algorithm algorithm;
} mu_links;

/* Seconds from when the last rank has begun until it is done everywhere. bytes as in mu_pending. One rank: 0. */
double mu_link_seconds(const mu_links *links, mu_collective collective, double bytes);

#endif
