/* Links by a short look. SPDX-License-Identifier: MIT */
#include "engine/probe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum {
	TRIES = 3, /* the fastest counts */
	SHORT = 1 << 16, /* floats: 256 KiB; on 10 Mbit/s a fifth of a second */
	LONG = 1 << 20, /* 4 MiB, where that went fast */
};
static const double FAST = 0.02; /* seconds */
static const mu_link INSIDE = {.bytes_per_second = 1e10,
                               .latency = 1e-6}; /* memory is no bottleneck beside a network */

int mu_probe_seats(const char *host_R, size_t bytes, int ranks, int *seat_R)
{
	int n_nodes = 0;
	for (int r = 0; r < ranks; r++) {
		int like = 0;
		while (strncmp(host_R + (size_t)like * bytes, host_R + (size_t)r * bytes, bytes) != 0)
			like++;
		seat_R[r] = like < r ? seat_R[like] : n_nodes++;
	}
	return n_nodes;
}

void mu_probe_judge(const mu_link *pairs, mu_link_node *nodes, int n_nodes)
{
	for (int i = 0; i < n_nodes; i++) {
		const mu_link *before = &pairs[n_nodes > 2 ? (i + n_nodes - 1) % n_nodes : 0],
		              *after = &pairs[n_nodes > 2 ? i : 0];
		nodes[i].uplink = before->bytes_per_second > after->bytes_per_second ? *before : *after;
		nodes[i].inside = INSIDE;
	}
}

/* Seconds of an all-reduce among two. */
static mural_status reduce(mu_comm *pair, float *buffer, size_t count, double *seconds, mural_error *err)
{
	*seconds = INFINITY;
	for (int i = 0; i < TRIES; i++) {
		MU_TRY(mu_comm_barrier(pair, err));
		const double from = mu_now();
		MU_TRY(mu_comm_all_reduce(pair, buffer, count, MU_F32, MU_SUM, err));
		*seconds = fmin(*seconds, mu_now() - from);
	}
	return MURAL_OK;
}

/* Both come to the same lengths: the times they decide by are the slower one's. */
static mural_status measure(mu_comm *pair, float *buffer, mu_link *link, mural_error *err)
{
	double latency, seconds;
	size_t count = SHORT;
	MU_TRY(reduce(pair, buffer, 1, &latency, err));
	MU_TRY(reduce(pair, buffer, count, &seconds, err));
	MU_TRY(mu_comm_all_reduce(pair, &seconds, 1, MU_F64, MU_MAX, err));
	if (seconds < FAST) {
		count = LONG;
		MU_TRY(reduce(pair, buffer, count, &seconds, err));
	}
	*link = (mu_link){.bytes_per_second = (double)count * sizeof(float) / fmax(seconds - latency, 1e-9),
	                  .latency = latency / 2};
	return MURAL_OK;
}

static int first_of(const int *seat_R, int node)
{
	int r = 0;
	while (seat_R[r] != node)
		r++;
	return r;
}

/* All ranks: the link between two nodes, known to all afterwards. */
static mural_status measure_pair(mu_comm *comm, const mu_probe *probe, int a, int b, bool *member_R, float *buffer,
                                 mu_link *link, mural_error *err)
{
	const mu_comm_facts *facts = comm->table->facts(comm);
	const int first = first_of(probe->seat_R, a), second = first_of(probe->seat_R, b);
	mu_comm *pair;
	for (int r = 0; r < facts->size; r++)
		member_R[r] = r == first || r == second;
	mural_status status = comm->table->group(comm, member_R, &pair, err);
	MU_TRY(mu_comm_agree(comm, status, err));
	if (pair) {
		status = measure(pair, buffer, link, err);
		pair->table->close(pair);
	}
	MU_TRY(mu_comm_agree(comm, status, err));
	return mu_comm_broadcast(comm, link, sizeof *link, first, err);
}

static mural_status measure_all(mu_comm *comm, mu_probe *probe, mural_error *err)
{
	const int n = probe->n_nodes, pairs = n > 2 ? n : 1;
	bool *member_R = calloc((size_t)comm->table->facts(comm)->size, sizeof *member_R);
	float *buffer = calloc(LONG, sizeof *buffer);
	mu_link *link = calloc((size_t)pairs, sizeof *link);
	probe->nodes = calloc((size_t)n, sizeof *probe->nodes);
	const bool fine = member_R && buffer && link && probe->nodes;
	mural_status status =
	        fine ? MURAL_OK : mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory to look at %d links", n);
	status = mu_comm_agree(comm, status, err);
	for (int i = 0; fine && status == MURAL_OK && i < pairs; i++)
		status = measure_pair(comm, probe, i, (i + 1) % n, member_R, buffer, &link[i], err);
	if (fine && status == MURAL_OK)
		mu_probe_judge(link, probe->nodes, n);
	free(member_R);
	free(buffer);
	free(link);
	return status;
}

static mural_status gather(mu_comm *comm, const char *mine, char *all, size_t bytes, mural_error *err)
{
	mu_pending pending = {0};
	MU_TRY(comm->table->all_gather_begin(comm, mine, all, bytes, MU_U8, &pending, err));
	return comm->table->wait(comm, &pending, err);
}

mural_status mu_probe_links(mu_probe *probe, mu_comm *comm, mural_error *err)
{
	const mu_comm_facts *facts = comm->table->facts(comm);
	const size_t bytes = sizeof facts->host;
	char *host_R = calloc((size_t)facts->size, bytes);
	probe->seat_R = calloc((size_t)facts->size, sizeof *probe->seat_R);
	const bool fine = host_R && probe->seat_R;
	mural_status status =
	        fine ? MURAL_OK
	             : mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the hosts of %d ranks", facts->size);
	status = mu_comm_agree(comm, status, err);
	if (fine && status == MURAL_OK)
		status = gather(comm, facts->host, host_R, bytes, err);
	if (fine && status == MURAL_OK)
		probe->n_nodes = mu_probe_seats(host_R, bytes, facts->size, probe->seat_R);
	if (probe->n_nodes < 2)
		probe->n_nodes = 0;
	else
		status = measure_all(comm, probe, err);
	free(host_R);
	return status;
}

void mu_probe_release(mu_probe *probe)
{
	free(probe->nodes);
	free(probe->seat_R);
	*probe = (mu_probe){0};
}
