/* Any bytes as a description of a cluster: refused with words, or one whose numbers hold together, and in which every rank
 * finds its place. SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mural/cluster.h"

#define RANKS 8

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t n);

static void check_link(const mural_cluster *cluster, int32_t link)
{
	if (link < -1 || link >= (int32_t)cluster->n_links)
		abort();
}

static void check_rate(const mural_cluster *cluster, const mural_cluster_rate *rate)
{
	const double times[] = {
	        rate->seconds_per_image,       rate->seconds_per_batch, rate->seconds_per_flop,
	        rate->seconds_per_value,       rate->seconds_per_unit,  rate->seconds_per_parameter,
	        rate->update_seconds,          rate->wait_share,        rate->update_seconds_per_parameter,
	        rate->loader_seconds_per_image};
	if (rate->device >= cluster->n_devices || rate->ranks < 1)
		abort();
	for (size_t i = 0; i < sizeof times / sizeof *times; i++)
		if (!(times[i] >= 0) || !isfinite(times[i]))
			abort();
}

static void check_numbers(const mural_cluster *cluster)
{
	uint64_t nodes = 0, devices = 0;
	for (uint32_t i = 0; i < cluster->n_links; i++)
		if (!(cluster->links[i].bytes_per_second > 0) || !(cluster->links[i].latency_seconds >= 0))
			abort();
	for (uint32_t i = 0; i < cluster->n_rates; i++)
		check_rate(cluster, &cluster->rates[i]);
	for (uint32_t i = 0; i < cluster->n_entries; i++) {
		const mural_cluster_node *node = &cluster->nodes[i];
		check_link(cluster, node->inside);
		check_link(cluster, node->uplink);
		nodes += node->count;
		for (uint32_t s = 0; s < node->n_slots; s++) {
			if (node->slots[s].device >= cluster->n_devices)
				abort();
			devices += (uint64_t)node->count * node->slots[s].count;
		}
	}
	if (nodes != cluster->nodes_in_all || devices != cluster->devices_in_all || devices > MURAL_CLUSTER_MOST)
		abort();
}

static void place(const mural_cluster *cluster, mural_placement how)
{
	mural_place places[RANKS];
	mural_error err = {0};
	mural_status status = mural_cluster_place(cluster, how, RANKS, places, &err);
	if ((status == MURAL_OK) != (cluster->devices_in_all >= RANKS))
		abort();
	for (int r = 0; status == MURAL_OK && r < RANKS; r++)
		if (places[r].entry >= cluster->n_entries || places[r].node >= cluster->nodes_in_all ||
		    places[r].device >= cluster->n_devices)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t n)
{
	char path[64];
	int fd = memfd_create("cluster", 0);
	if (fd < 0 || write(fd, input, n) != (ssize_t)n)
		abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	mural_cluster *cluster;
	mural_error err = {0};
	mural_status status = mural_cluster_read(&cluster, path, &err);
	if (status != MURAL_OK && (status != MURAL_USAGE || cluster || !err.message[0]))
		abort();
	if (status == MURAL_OK) {
		check_numbers(cluster);
		place(cluster, MURAL_PLACE_PACK);
		place(cluster, MURAL_PLACE_SPREAD);
	}
	mural_cluster_free(cluster);
	close(fd);
	return 0;
}
