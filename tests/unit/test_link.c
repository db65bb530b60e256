/* What collectives cost on described links, against sums done by hand. SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "comm/link.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static void close_to(double got, double expected)
{
	if (fabs(got - expected) > 1e-12 * fabs(expected))
		fail_msg("%.15g, not %.15g", got, expected);
}

static mu_links links_of(const mu_link_node *nodes, int n, mu_algorithm algorithm)
{
	mu_links links = {.nodes = nodes, .n_nodes = n, .algorithm = algorithm};
	for (int i = 0; i < n; i++)
		links.ranks += nodes[i].ranks;
	return links;
}

/* The study's Tesla: 346 MB of gradients, 0.95 GB/s, the fifth node 0.12 GB/s. */
static void the_slowest_uplink_sets_the_rings_pace(void **state)
{
	(void)state;
	const mu_link fast = {0.95e9, 30e-6}, slow = {0.12e9, 50e-6};
	const mu_link_node nodes[] = {
	        {1, fast, {0, 0}}, {1, fast, {0, 0}}, {1, fast, {0, 0}}, {1, fast, {0, 0}}, {1, slow, {0, 0}}};
	const double bytes = 346e6;
	mu_links links = links_of(nodes, 2, MU_ALGORITHM_RING);
	close_to(mu_link_seconds(&links, MU_ALL_REDUCE, bytes), 2 * (30e-6 + bytes / 2 / 0.95e9));
	links = links_of(nodes, 4, MU_ALGORITHM_RING);
	close_to(mu_link_seconds(&links, MU_ALL_REDUCE, bytes), 6 * (30e-6 + bytes / 4 / 0.95e9));
	links = links_of(nodes, 5, MU_ALGORITHM_RING);
	close_to(mu_link_seconds(&links, MU_ALL_REDUCE, bytes), 8 * (50e-6 + bytes / 5 / 0.12e9));
	/* 4.6 s: the study's fifth worker */
	assert_true(mu_link_seconds(&links, MU_ALL_REDUCE, bytes) > 4.6 &&
	            mu_link_seconds(&links, MU_ALL_REDUCE, bytes) < 4.7);
	close_to(mu_link_seconds(&links, MU_REDUCE_SCATTER, bytes), 4 * (50e-6 + bytes / 5 / 0.12e9));
	close_to(mu_link_seconds(&links, MU_ALL_GATHER, bytes), 4 * (50e-6 + bytes / 5 / 0.12e9));
}

static void a_ring_meets_links_inside_nodes_too(void **state)
{
	(void)state;
	const mu_link up = {10e9, 5e-6}, inside = {4e9, 15e-6};
	const mu_link_node nodes[] = {{3, up, inside}, {1, up, {0, 0}}};
	mu_links links = links_of(nodes, COUNT(nodes), MU_ALGORITHM_RING);
	close_to(mu_link_seconds(&links, MU_ALL_REDUCE, 8e6), 6 * (15e-6 + 2e6 / 4e9));
	close_to(mu_link_seconds(&links, MU_BROADCAST, 8e6), 3 * (15e-6 + 2e6 / 4e9) + 2 * 15e-6 + 0.75 * 8e6 / 4e9);
}

static void a_tree_spans_nodes_then_their_ranks(void **state)
{
	(void)state;
	const mu_link up = {1e9, 100e-6}, inside = {8e9, 10e-6};
	const mu_link_node nodes[] = {{4, up, inside}, {2, up, inside}, {1, up, {0, 0}}};
	mu_links links = links_of(nodes, COUNT(nodes), MU_ALGORITHM_TREE);
	double once = 2 * (100e-6 + 1e6 / 1e9) + 2 * (10e-6 + 1e6 / 8e9);
	close_to(mu_link_seconds(&links, MU_BROADCAST, 1e6), once);
	close_to(mu_link_seconds(&links, MU_ALL_REDUCE, 1e6), 2 * once);
	close_to(mu_link_seconds(&links, MU_BARRIER, 0), 2 * (2 * 100e-6 + 2 * 10e-6));
}

static void auto_takes_the_cheaper(void **state)
{
	(void)state;
	const mu_link up = {1e9, 100e-6};
	const mu_link_node nodes[8] = {{1, up, {0, 0}}, {1, up, {0, 0}}, {1, up, {0, 0}}, {1, up, {0, 0}},
	                               {1, up, {0, 0}}, {1, up, {0, 0}}, {1, up, {0, 0}}, {1, up, {0, 0}}};
	mu_links links = links_of(nodes, COUNT(nodes), MU_ALGORITHM_AUTO);
	/* 8 bytes: three levels up and down; 100 MB: the ring */
	close_to(mu_link_seconds(&links, MU_ALL_REDUCE, 8), 6 * (100e-6 + 8e-9));
	close_to(mu_link_seconds(&links, MU_ALL_REDUCE, 1e8), 14 * (100e-6 + 1e8 / 8 / 1e9));
}

static void ranks_of_a_node_share_its_uplink(void **state)
{
	(void)state;
	const mu_link up = {1e9, 100e-6}, inside = {100e9, 0};
	const mu_link_node two[] = {{1, up, {0, 0}}, {1, up, {0, 0}}}, eight[] = {{4, up, inside}, {4, up, inside}};
	mu_links links = links_of(two, 2, MU_ALGORITHM_AUTO);
	/* a rank sends half of its 8 MB to the other */
	close_to(mu_link_seconds(&links, MU_ALL_TO_ALL, 8e6), 100e-6 + 4e6 / 1e9);
	links = links_of(eight, 2, MU_ALGORITHM_AUTO);
	/* four ranks, four blocks of 1 MB each, through one uplink */
	close_to(mu_link_seconds(&links, MU_ALL_TO_ALL, 8e6), 7 * 100e-6 + 16e6 / 1e9);
}

static void one_rank_pays_nothing(void **state)
{
	(void)state;
	const mu_link_node alone = {1, {1e9, 1}, {1e9, 1}};
	mu_links links = links_of(&alone, 1, MU_ALGORITHM_AUTO);
	for (mu_collective c = 0; c < MU_COLLECTIVE_COUNT; c++)
		assert_true(mu_link_seconds(&links, c, 1e9) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(the_slowest_uplink_sets_the_rings_pace),
	        cmocka_unit_test(a_ring_meets_links_inside_nodes_too),
	        cmocka_unit_test(a_tree_spans_nodes_then_their_ranks),
	        cmocka_unit_test(auto_takes_the_cheaper),
	        cmocka_unit_test(ranks_of_a_node_share_its_uplink),
	        cmocka_unit_test(one_rank_pays_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
