/* Ranks on a described cluster: where each sits, and the links between them. SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include <string.h>

#include "engine/cluster_links.h"

/* The kind of a node's `slot`-th device; false if it has fewer. */
static bool device_at(const mural_cluster_node *node, uint32_t slot, uint32_t *device)
{
	for (uint32_t s = 0; s < node->n_slots; s++) {
		*device = node->slots[s].device;
		if (slot < node->slots[s].count)
			return true;
		slot -= node->slots[s].count;
	}
	return false;
}

typedef struct placing {
	mural_place *places;
	int ranks, placed;
} placing;

/* One device of one node; false when it has no such device. */
static bool place(placing *p, const mural_cluster *c, uint32_t entry, uint32_t node, uint32_t slot)
{
	uint32_t device;
	if (p->placed == p->ranks || !device_at(&c->nodes[entry], slot, &device))
		return false;
	p->places[p->placed++] = (mural_place){.entry = entry, .node = node, .device = device};
	return true;
}

static void pack(placing *p, const mural_cluster *c)
{
	uint32_t node = 0;
	for (uint32_t entry = 0; entry < c->n_entries; entry++)
		for (uint32_t i = 0; i < c->nodes[entry].count; i++, node++)
			for (uint32_t slot = 0; place(p, c, entry, node, slot);)
				slot++;
}

static void spread(placing *p, const mural_cluster *c)
{
	for (uint32_t slot = 0; p->placed < p->ranks; slot++) {
		uint32_t node = 0;
		for (uint32_t entry = 0; entry < c->n_entries; entry++)
			for (uint32_t i = 0; i < c->nodes[entry].count; i++, node++)
				place(p, c, entry, node, slot);
	}
}

mural_status mural_cluster_place(const mural_cluster *cluster, mural_placement placement, int ranks,
                                 mural_place *places, mural_error *err)
{
	if (ranks < 1 || (uint32_t)ranks > cluster->devices_in_all)
		return mu_fail(err, MURAL_USAGE, NULL, "the cluster '%s' has %u device%s, too few for %d rank%s",
		               cluster->name, cluster->devices_in_all, cluster->devices_in_all == 1 ? "" : "s", ranks,
		               ranks == 1 ? "" : "s");
	placing p = {.places = places, .ranks = ranks};
	if (placement == MURAL_PLACE_SPREAD)
		spread(&p, cluster);
	else
		pack(&p, cluster);
	return MURAL_OK;
}

double mural_cluster_seconds(const mural_cluster_device *device, double flops_per_image)
{
	return device->tflops > 0 ? flops_per_image / (device->tflops * 1e12) : device->seconds_per_image;
}

static mu_link link_of(const mural_cluster *cluster, int32_t index)
{
	if (index < 0)
		return (mu_link){.bytes_per_second = 1}; /* never read: see link.h */
	return (mu_link){cluster->links[index].bytes_per_second, cluster->links[index].latency_seconds};
}

/* The nodes that hold ranks, and each rank's among them (seat_R may be NULL); nodes: [cluster->nodes_in_all]. Returns how many. */
static int collect(const mural_cluster *cluster, const mural_place *places, int ranks, mu_link_node *nodes, int *seat_R)
{
	int used = 0;
	for (int r = 0; r < ranks; r++)
		nodes[places[r].node].ranks++;
	for (int r = 0; r < ranks; r++) {
		nodes[places[r].node].uplink = link_of(cluster, cluster->nodes[places[r].entry].uplink);
		nodes[places[r].node].inside = link_of(cluster, cluster->nodes[places[r].entry].inside);
	}
	for (uint32_t n = 0; n < cluster->nodes_in_all; n++) {
		if (nodes[n].ranks == 0)
			continue;
		for (int r = 0; seat_R && r < ranks; r++)
			if (places[r].node == n)
				seat_R[r] = used;
		nodes[used++] = nodes[n];
	}
	return used;
}

/* The two enumerations say the same on two floors. */
static mu_algorithm algorithm_of(const mural_cluster *cluster)
{
	switch (cluster->algorithm) {
	case MURAL_CLUSTER_RING: return MU_ALGORITHM_RING;
	case MURAL_CLUSTER_TREE: return MU_ALGORITHM_TREE;
	case MURAL_CLUSTER_AUTO: break;
	}
	return MU_ALGORITHM_AUTO;
}

void mu_cluster_links(const mural_cluster *cluster, const mural_place *places, int ranks, mu_link_node *nodes,
                      mu_links *links)
{
	memset(nodes, 0, cluster->nodes_in_all * sizeof *nodes);
	*links = (mu_links){.nodes = nodes,
	                    .n_nodes = collect(cluster, places, ranks, nodes, NULL),
	                    .ranks = ranks,
	                    .algorithm = algorithm_of(cluster)};
}

double mu_cluster_all_reduce(const mu_links *links, double bytes)
{
	return mu_link_seconds(links, MU_ALL_REDUCE, bytes);
}

double mu_cluster_reduce_scatter(const mu_links *links, double bytes)
{
	return mu_link_seconds(links, MU_REDUCE_SCATTER, bytes);
}

double mu_cluster_all_gather(const mu_links *links, double bytes)
{
	return mu_link_seconds(links, MU_ALL_GATHER, bytes);
}

mural_status mural_comm_emulate(mural_comm **emulated, mural_comm *comm, const mural_cluster *cluster,
                                mural_placement placement, double byte_scale, mural_error *err)
{
	int ranks = mural_comm_get_facts(comm)->size;
	mural_place *places = calloc((size_t)ranks, sizeof *places);
	mu_link_node *nodes = calloc(cluster->nodes_in_all, sizeof *nodes);
	int *seat_R = calloc((size_t)ranks, sizeof *seat_R);
	mural_status status = MURAL_OK;
	*emulated = NULL;
	if (!places || !nodes || !seat_R)
		status = mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory to place %d ranks on a cluster", ranks);
	else
		status = mural_cluster_place(cluster, placement, ranks, places, err);
	status = mu_comm_agree(comm, status, err);
	if (status == MURAL_OK && places && nodes && seat_R) {
		const mu_emulated_settings settings = {.nodes = nodes,
		                                       .n_nodes = collect(cluster, places, ranks, nodes, seat_R),
		                                       .seat_R = seat_R,
		                                       .algorithm = algorithm_of(cluster),
		                                       .byte_scale = byte_scale,
		                                       .cluster = cluster->name};
		status = mu_emulated_create(emulated, comm, &settings, err);
	}
	free(places);
	free(nodes);
	free(seat_R);
	return status;
}
