/* The links between placed ranks, for those who want to know what a collective costs on them. SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_CLUSTER_LINKS_H
#define MU_ENGINE_CLUSTER_LINKS_H

#include "comm/emulated.h"
#include "mural/cluster.h"

/* nodes: [cluster->nodes_in_all], the caller's, borrowed by *links. */
void mu_cluster_links(const mural_cluster *cluster, const mural_place *places, int ranks, mu_link_node *nodes,
                      mu_links *links);

/* mu_link_seconds of what sums, scatters and gathers. */
double mu_cluster_all_reduce(const mu_links *links, double bytes);
double mu_cluster_reduce_scatter(const mu_links *links, double bytes);
double mu_cluster_all_gather(const mu_links *links, double bytes);

#endif
