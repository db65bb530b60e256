/* A log of collectives: how often each kind moved how many bytes, how long it took, at which bandwidth.
 *
 * One row per kind and size. What finds no row of its own is summed up in the last row of its kind's, with 0 for its size.
 * Bandwidths as NCCL's tests define them, S = bytes of one rank's whole buffer (all blocks), t = seconds, n = ranks:
 *
 *     algorithm   S / t
 *     bus         that times 2 (n - 1) / n for all-reduce, (n - 1) / n for all-gather, reduce-scatter and all-to-all, 1 for broadcast:
 *                 what the links carry, comparable with their own bandwidth whatever n is
 * SPDX-License-Identifier: MIT */
#ifndef MU_COMM_LOG_H
#define MU_COMM_LOG_H

#include <stdint.h>

#include "comm/comm.h"

enum { MU_COMM_LOG_ROWS = 64 }; /* a run has one size per bucket and a handful more */

typedef struct mu_comm_log_row {
	mu_collective collective;
	uint64_t bytes; /* of one call; 0: of several sizes, or none */
	uint64_t count;
	uint64_t total_bytes;
	double seconds; /* of all calls */
} mu_comm_log_row;

typedef struct mu_comm_log { /* zero-initialise */
	mu_comm_log_row rows[MU_COMM_LOG_ROWS + MU_COLLECTIVE_COUNT];
	size_t n;
} mu_comm_log;

void mu_comm_log_add(mu_comm_log *log, mu_collective collective, uint64_t bytes, double seconds);

/* Bytes per second; 0 where no time has passed. */
double mu_comm_algorithm_bandwidth(double bytes, double seconds);
double mu_comm_bus_bandwidth(mu_collective collective, double bytes, double seconds, int ranks);

#endif
