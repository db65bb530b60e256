/* The emulated collectives: another table's, each finished when the described links would have finished it.
 *
 * The messages really travel, through the inner comm; then the rest of the time is waited out. Nobody computes or sleeps for it in
 * between: a collective's end is a time that wait sleeps up to and test compares with, so what could overlap on the real
 * cluster overlaps here.
 *
 *     start = when the last rank has begun it, but not before the one ahead of it has ended: one at a time uses the links
 *     end   = start + mu_link_seconds(...), or when the messages were really through, if that is later ("late", counted)
 *
 * So that all ranks know when the last one has begun, each collective is followed by a reduction of that time, on rank 0's clock.
 * One thread at a time may use an emulated comm.
 * SPDX-License-Identifier: MIT */
#ifndef MU_COMM_EMULATED_H
#define MU_COMM_EMULATED_H

#include "comm/link.h"

typedef struct mu_emulated_settings {
	const mu_link_node *nodes; /* [n_nodes], in the order of the ranks they hold; copied */
	int n_nodes;
	const int *
	        seat_R; /* [ranks]: each rank's node, as many as that node says; NULL: they fill node after node. Copied */
	mu_algorithm algorithm;
	double byte_scale; /* each byte counts as so many on the links; > 0 */
	const char *cluster; /* its name, for the facts */
} mu_emulated_settings;

typedef struct mu_emulated_counts {
	uint64_t collectives, late; /* late: this machine was slower than the described links */
	double seconds, late_seconds; /* described in all; spent beyond that */
} mu_emulated_counts;

/* Collective. inner is borrowed and outlives the emulated comm; the nodes' ranks must add up to its size. close frees the emulated
 * comm only. */
mural_status mu_emulated_create(mu_comm **comm, mu_comm *inner, const mu_emulated_settings *settings, mural_error *err);

/* The links that a comm stands for; false if it is no emulated one. All is the comm's own. */
typedef struct mu_emulated_links {
	const mu_links *links;
	const int *seat_R; /* [ranks]: each rank's node */
	double byte_scale;
} mu_emulated_links;

bool mu_emulated_described(const mu_comm *comm, mu_emulated_links *described);

/* What has finished so far; false if comm is no emulated one. */
bool mu_emulated_read(const mu_comm *comm, mu_emulated_counts *counts);

#endif
