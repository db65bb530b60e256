/* A timeline file: Chrome's Trace Event format (JSON), which Perfetto (ui.perfetto.dev) and chrome://tracing open.
 *
 * One process per rank with two rows: what the rank computes, and what its collectives do meanwhile. Times are microseconds on
 * rank 0's clock, from the first span on. Event names say what; arguments say step and bytes.
 *
 *     mu_timeline timeline;
 *     mu_timeline_begin(&timeline, file.out, zero);
 *     for each rank: mu_timeline_label(&timeline, &rank), mu_timeline_add(&timeline, &rank, spans, n) as often as needed
 *     mu_timeline_end(&timeline);
 * SPDX-License-Identifier: MIT */
#ifndef MU_MONITOR_TIMELINE_H
#define MU_MONITOR_TIMELINE_H

#include "base/json.h"
#include "monitor/trace.h"

typedef struct mu_timeline {
	mu_json json;
	double zero; /* seconds on rank 0's clock that become 0 */
} mu_timeline;

typedef struct mu_timeline_rank {
	int rank;
	const char *host;
	double ahead; /* of rank 0's clock, seconds */
	/* Names of a span's index: units, collectives. Borrowed. */
	const char *(*name)(const void *names, mu_span_kind kind, unsigned index);
	const void *names;
} mu_timeline_rank;

void mu_timeline_begin(mu_timeline *timeline, FILE *out, double zero);
void mu_timeline_label(mu_timeline *timeline, const mu_timeline_rank *rank); /* once per rank */
void mu_timeline_add(mu_timeline *timeline, const mu_timeline_rank *rank, const mu_span *spans, size_t n);
/* false: the FILE did not take it all. */
bool mu_timeline_end(mu_timeline *timeline);

#endif
