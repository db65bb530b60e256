/* Do emulated collectives take as long as the described links? Run by bench/run.sh emulation under mpirun.
 *
 * Each rank is a node of its own. Per collective and size: seconds as described, as the handle says, and by the wall clock over
 * several in a row, waking up included. SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "comm/emulated.h"

enum { REPEATS = 8, MOST_RANKS = 64 };

static const mu_link link = {1e8, 1e-3}; /* 0.1 GB/s, 1 ms: slow enough for a busy machine */

static mural_status begin(mu_comm *comm, mu_collective collective, char *buffer, size_t bytes, mu_pending *pending)
{
	const mu_comm_table *t = comm->table;
	size_t block = bytes / sizeof(float) / (size_t)t->facts(comm)->size;
	char *other = buffer + bytes;
	switch (collective) {
	case MU_ALL_REDUCE:
		return t->all_reduce_begin(comm, buffer, bytes / sizeof(float), MU_F32, MU_SUM, pending, NULL);
	case MU_BROADCAST: return t->broadcast_begin(comm, buffer, bytes, 0, pending, NULL);
	case MU_ALL_GATHER: return t->all_gather_begin(comm, other, buffer, block, MU_F32, pending, NULL);
	case MU_REDUCE_SCATTER: return t->reduce_scatter_begin(comm, buffer, other, block, MU_F32, pending, NULL);
	case MU_ALL_TO_ALL: return t->all_to_all_begin(comm, buffer, other, block, MU_F32, pending, NULL);
	default: return t->barrier_begin(comm, pending, NULL);
	}
}

static void measure(mu_comm *comm, const mu_links *links, mu_collective collective, char *buffer, size_t bytes)
{
	double described = mu_link_seconds(links, collective, (double)bytes), told = 0;
	mu_comm_barrier(comm, NULL);
	double from = mu_now();
	for (int i = 0; i < REPEATS; i++) {
		mu_pending pending = {0};
		if (begin(comm, collective, buffer, bytes, &pending) || comm->table->wait(comm, &pending, NULL))
			exit(1);
		told += pending.ended - pending.begun;
	}
	double wall = (mu_now() - from) / REPEATS;
	told /= REPEATS;
	if (comm->table->facts(comm)->rank == 0)
		printf("%-15s %10.3f MB  described %9.3f ms  handle %9.3f ms (%+5.1f %%)  wall %9.3f ms (%+5.1f %%)\n",
		       mu_collective_text(collective), (double)bytes / 1e6, 1e3 * described, 1e3 * told,
		       100 * (told / described - 1), 1e3 * wall, 100 * (wall / described - 1));
}

int main(void)
{
	static const size_t sizes[] = {(size_t)1 << 20, (size_t)1 << 22, (size_t)1 << 24};
	mu_comm *real, *comm;
	mural_error err = {0};
	mu_link_node nodes[MOST_RANKS];
	if (mu_comm_open("auto", &real, &err)) {
		mural_error_print(&err, stderr);
		return 1;
	}
	int n = real->table->facts(real)->size;
	for (int i = 0; i < n && i < MOST_RANKS; i++)
		nodes[i] = (mu_link_node){.ranks = 1, .uplink = link};
	const mu_emulated_settings settings = {.nodes = nodes, .n_nodes = n, .byte_scale = 1, .cluster = "bench"};
	const mu_links links = {.nodes = nodes, .n_nodes = n, .ranks = n};
	char *buffer = calloc(2, sizes[2]);
	if (!buffer || mu_emulated_create(&comm, real, &settings, &err)) {
		mural_error_print(&err, stderr);
		return 1;
	}
	for (mu_collective c = 0; c < MU_COLLECTIVE_COUNT; c++)
		for (int s = 0; s < (c == MU_BARRIER ? 1 : 3); s++)
			measure(comm, &links, c, buffer, c == MU_BARRIER ? 0 : sizes[s]);
	mu_emulated_counts counts;
	mu_emulated_read(comm, &counts);
	if (real->table->facts(real)->rank == 0)
		printf("%d ranks: %llu collectives, %llu late by %.3f ms in all\n", n,
		       (unsigned long long)counts.collectives, (unsigned long long)counts.late,
		       1e3 * counts.late_seconds);
	comm->table->close(comm);
	real->table->close(real);
	free(buffer);
	return 0;
}
