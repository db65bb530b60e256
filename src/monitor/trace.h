/* What happened when: spans of the steps of a window, kept in memory taken beforehand.
 *
 * Recording a span costs a clock reading and 32 bytes; without a trace (NULL) or outside its window it costs a branch. One owner,
 * no locks: the thread that trains. When the room is used up the rest is counted, not kept.
 *
 *     double t = mu_trace_begin(trace);
 *     ... forward of unit 3 ...
 *     t = mu_trace_span(trace, MU_SPAN_FORWARD, 3, t);
 * SPDX-License-Identifier: MIT */
#ifndef MU_MONITOR_TRACE_H
#define MU_MONITOR_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/fail.h"

/* X(enum, name) */
#define MU_SPAN_LIST(X)                           \
	X(MU_SPAN_STEP, "step")                   \
	X(MU_SPAN_DATA, "wait for data")          \
	X(MU_SPAN_FORWARD, "forward")             \
	X(MU_SPAN_BACKWARD, "backward")           \
	X(MU_SPAN_WAIT, "wait for communication") \
	X(MU_SPAN_OPTIMIZER, "optimizer")         \
	X(MU_SPAN_COLLECTIVE, "collective") /* index: which one */

typedef enum mu_span_kind {
#define MU_X(name, text) name,
	MU_SPAN_LIST(MU_X)
#undef MU_X
	        MU_SPAN_KINDS
} mu_span_kind;

typedef struct mu_span {
	double begin, end; /* mu_now() seconds */
	uint64_t amount; /* bytes of a collective; images, of a wait for them */
	uint32_t step; /* from 1 */
	uint16_t index; /* unit, or which collective */
	uint16_t kind; /* mu_span_kind */
} mu_span;

typedef struct mu_trace {
	mu_span *spans; /* [room] */
	size_t room, n;
	uint64_t lost; /* found no room */
	uint64_t first_step, last_step; /* the window */
	uint64_t also; /* one more step, 0 = none */
	uint32_t step; /* under way */
	bool recording; /* the step under way is in the window */
} mu_trace;

const char *mu_span_text(mu_span_kind kind);

/* steps first .. first + steps - 1 (from 1) will be recorded; steps 0: none, but for `also`. MURAL_OUT_OF_MEMORY. */
mural_status mu_trace_init(mu_trace *trace, size_t room, uint64_t first_step, uint64_t steps, mural_error *err);
void mu_trace_release(mu_trace *trace); /* NULL and all-zero structs are fine */

/* What the caller of mu_trace_step passes around: NULL and a trace outside its window record nothing. */
void mu_trace_step(mu_trace *trace, uint64_t step);
void mu_trace_add(mu_trace *trace, mu_span_kind kind, uint16_t index, uint64_t amount, double begin, double end);

static inline double mu_trace_begin(const mu_trace *trace)
{
	return trace && trace->recording ? mu_now() : 0;
}

/* A wait for so many images, from `begin` until now. */
static inline void mu_trace_span_of(mu_trace *trace, mu_span_kind kind, uint64_t amount, double begin)
{
	if (trace && trace->recording)
		mu_trace_add(trace, kind, 0, amount, begin, mu_now());
}

/* From `begin` until now, which is returned: where the next one begins. */
static inline double mu_trace_span(mu_trace *trace, mu_span_kind kind, size_t index, double begin)
{
	if (!trace || !trace->recording)
		return 0;
	double end = mu_now();
	mu_trace_add(trace, kind, (uint16_t)index, 0, begin, end);
	return end;
}

#endif
