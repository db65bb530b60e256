/* What balancing costs a job of equal ranks: the time of each event, and events per step times that. A decision is made every 10 steps
 * once shares have settled, a step is noted on each rank, and a meeting gathers one row per rank and sends one message back.
 *
 *     bench_balance                  deciding and noting; a meeting by the formulas of comm/link.h, one rank per node on 25 us and 1.2 GB/s
 *     mpirun -n N bench_balance      a meeting of N ranks as it is here
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "comm/comm.h"
#include "comm/link.h"
#include "engine/balance.h"

enum {
	MOST = 256,
	DECISIONS = 200,
	STEPS = 10,
	MEETINGS = 400,
	ROW = sizeof(mu_balance_row) / sizeof(double),
	HEAD = 2
};

static mu_balance_window window[MOST];

/* Equal ranks with 1 % of noise; seconds of a decision and of noting a step. */
static int measure(int ranks, double *decision, double *step)
{
	static mu_balance_rank rank[MOST];
	static mu_balance_row rows[MOST];
	mu_balance *balance;
	mural_error err = {0};
	for (int r = 0; r < ranks; r++)
		rank[r] = (mu_balance_rank){.capacity = 64 * ranks, .micro = 64};
	const mu_balance_settings settings = {.ranks = ranks, .global_batch = 64 * ranks, .rank = rank};
	if (mu_balance_create(&balance, &settings, &err) != MURAL_OK) {
		mural_error_print(&err, stderr);
		return 1;
	}
	*decision = *step = 0;
	for (int d = 0; d < DECISIONS; d++) {
		double from = mu_now();
		for (int s = 0; s < STEPS; s++)
			for (int r = 0; r < ranks; r++)
				mu_balance_step(&window[r], 64, 1, 0.1 * (1 + 0.01 * sin(d * 10 + s + 7 * r)), 0.01);
		*step += mu_now() - from;
		for (int r = 0; r < ranks; r++)
			rows[r] = mu_balance_close(&window[r]);
		from = mu_now();
		(void)mu_balance_decide(balance, rows);
		*decision += mu_now() - from;
	}
	*decision /= DECISIONS;
	*step /= (double)DECISIONS * STEPS * ranks;
	mu_balance_free(balance);
	return 0;
}

/* Seconds of a meeting's two collectives on links that many clusters have. */
static double meeting_on_links(int ranks)
{
	static mu_link_node nodes[MOST];
	for (int r = 0; r < ranks; r++)
		nodes[r] = (mu_link_node){.ranks = 1, .uplink = {.bytes_per_second = 1.2e9, .latency = 25e-6}};
	const mu_links links = {.nodes = nodes, .n_nodes = ranks, .ranks = ranks};
	return mu_link_seconds(&links, MU_ALL_GATHER, (double)ranks * sizeof(mu_balance_row)) +
	       mu_link_seconds(&links, MU_BROADCAST, (double)(HEAD + ranks) * sizeof(int32_t));
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* All ranks: MEETINGS of them, a pause in between as steps have it; the median. */
static mural_status measure_meeting(mu_comm *comm, double *seconds, mural_error *err)
{
	static mu_balance_row rows[MOST];
	static int32_t message[HEAD + MOST];
	static double took[MEETINGS];
	const int ranks = comm->table->facts(comm)->size;
	for (int m = 0; m < MEETINGS; m++) {
		const mu_balance_row own = {.steps = 10, .images = 64};
		mu_pending pending = {0};
		mu_sleep(2e-3);
		MU_TRY(mu_comm_barrier(comm, err));
		const double from = mu_now();
		MU_TRY(comm->table->all_gather_begin(comm, &own, rows, ROW, MU_F64, &pending, err));
		MU_TRY(comm->table->wait(comm, &pending, err));
		MU_TRY(mu_comm_broadcast(comm, message, (size_t)(HEAD + ranks) * sizeof *message, 0, err));
		took[m] = mu_now() - from;
	}
	qsort(took, MEETINGS, sizeof *took, by_size);
	*seconds = took[MEETINGS / 2];
	return MURAL_OK;
}

static int meet(mu_comm *comm)
{
	mural_error err = {0};
	double seconds = 0;
	if (comm->table->facts(comm)->size > MOST || measure_meeting(comm, &seconds, &err) != MURAL_OK) {
		mural_error_print(&err, stderr);
		comm->table->abort(comm, 1);
	}
	if (comm->table->facts(comm)->rank == 0)
		printf("%5d ranks here: a meeting %.0f us, %.1f us per step\n", comm->table->facts(comm)->size,
		       1e6 * seconds, 1e6 * seconds / STEPS);
	comm->table->close(comm);
	return 0;
}

int main(void)
{
	const int sizes[] = {2, 4, 8, 16, 64, 256};
	mural_error err = {0};
	mu_comm *comm;
	if (mu_comm_open("auto", &comm, &err) != MURAL_OK) {
		mural_error_print(&err, stderr);
		return 1;
	}
	if (comm->table->facts(comm)->size > 1)
		return meet(comm);
	comm->table->close(comm);
	printf("ranks  a decision, us  noting a step, us  a meeting on 25 us links, us  per step, us\n");
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		double decision, step, meeting = meeting_on_links(sizes[i]);
		if (measure(sizes[i], &decision, &step))
			return 1;
		printf("%5d %15.2f %18.3f %29.0f %13.1f\n", sizes[i], 1e6 * decision, 1e6 * step, 1e6 * meeting,
		       1e6 * ((decision + meeting) / STEPS + step));
	}
	return 0;
}
