/* How far the ranks' clocks are apart, measured through the collectives alone.
 *
 * For each other rank r, several times: rank 0 reads t0 and broadcasts (ping); r reads t when that has come and broadcasts it
 * (pong); rank 0 reads t1. What r read lies between t0 and t1 on rank 0's clock, so r is ahead by at least t - t1 and at most
 * t - t0 (Cristian 1989). Each exchange narrows both bounds. Where they leave room for 0, clocks of one host do agree, and 0 is
 * the answer; otherwise it is the middle.
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "base/clock.h"
#include "comm/comm.h"

enum { EXCHANGES = 8 }; /* the best of so many; one costs two broadcasts */

/* Bounds of how far rank r is ahead, known to rank 0 afterwards. */
static mural_status exchange(mu_comm *comm, int r, double bounds[2], mural_error *err)
{
	int rank = comm->table->facts(comm)->rank;
	double ping = 0, t0 = mu_now(), t = 0;
	MU_TRY(mu_comm_broadcast(comm, &ping, sizeof ping, 0, err));
	if (rank == r)
		t = mu_now();
	MU_TRY(mu_comm_broadcast(comm, &t, sizeof t, r, err));
	double t1 = mu_now();
	bounds[0] = fmax(bounds[0], t - t1);
	bounds[1] = fmin(bounds[1], t - t0);
	return MURAL_OK;
}

mural_status mu_comm_clock_offset(mu_comm *comm, double *ahead, double *uncertainty, mural_error *err)
{
	const mu_comm_facts *facts = comm->table->facts(comm);
	*ahead = *uncertainty = 0;
	for (int r = 1; r < facts->size; r++) {
		double bounds[2] = {-INFINITY, INFINITY};
		for (int i = 0; i < EXCHANGES; i++)
			MU_TRY(exchange(comm, r, bounds, err));
		MU_TRY(mu_comm_broadcast(comm, bounds, sizeof bounds, 0, err));
		if (facts->rank != r)
			continue;
		*ahead = bounds[0] <= 0 && bounds[1] >= 0 ? 0 : (bounds[0] + bounds[1]) / 2;
		*uncertainty = fmax(bounds[1] - *ahead, *ahead - bounds[0]);
	}
	return MURAL_OK;
}
