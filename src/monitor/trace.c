/* Spans of steps. SPDX-License-Identifier: MIT */
#include "monitor/trace.h"

#include <stdlib.h>

const char *mu_span_text(mu_span_kind kind)
{
	switch (kind) {
#define MU_X(name, text) \
	case name: return text;
		MU_SPAN_LIST(MU_X)
#undef MU_X
	case MU_SPAN_KINDS: break;
	}
	return "unknown";
}

mural_status mu_trace_init(mu_trace *trace, size_t room, uint64_t first_step, uint64_t steps, mural_error *err)
{
	*trace = (mu_trace){.first_step = first_step};
	trace->last_step = steps > UINT64_MAX - first_step ? UINT64_MAX : first_step + steps - 1;
	trace->spans = calloc(room, sizeof *trace->spans);
	if (!trace->spans)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for a timeline of %zu spans", room);
	trace->room = room;
	return MURAL_OK;
}

void mu_trace_release(mu_trace *trace)
{
	if (!trace)
		return;
	free(trace->spans);
	*trace = (mu_trace){0};
}

void mu_trace_step(mu_trace *trace, uint64_t step)
{
	if (!trace)
		return;
	trace->step = (uint32_t)step;
	trace->recording = (step >= trace->first_step && step <= trace->last_step) || step == trace->also;
}

void mu_trace_add(mu_trace *trace, mu_span_kind kind, uint16_t index, uint64_t amount, double begin, double end)
{
	if (!trace || !trace->recording)
		return;
	if (trace->n == trace->room) {
		trace->lost++;
		return;
	}
	trace->spans[trace->n++] = (mu_span){.begin = begin,
	                                     .end = end,
	                                     .amount = amount,
	                                     .step = trace->step,
	                                     .index = index,
	                                     .kind = (uint16_t)kind};
}
