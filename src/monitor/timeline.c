/* The timeline file. SPDX-License-Identifier: MIT */
#include "monitor/timeline.h"

#include <math.h>

enum { ROW_COMPUTE, ROW_COMMUNICATION };

void mu_timeline_begin(mu_timeline *timeline, FILE *out, double zero)
{
	*timeline = (mu_timeline){.zero = zero};
	mu_json_init(&timeline->json, out, MU_JSON_COMPACT);
	mu_json_object_begin(&timeline->json, NULL);
	mu_json_string(&timeline->json, "displayTimeUnit", "ms");
	mu_json_array_begin(&timeline->json, "traceEvents");
}

/* A name for a process or one of its rows, and where it stands among the others. */
static void label(mu_json *json, const char *what, int rank, int row, const char *name)
{
	mu_json_object_begin(json, NULL);
	mu_json_string(json, "name", what);
	mu_json_string(json, "ph", "M");
	mu_json_integer(json, "pid", rank);
	mu_json_integer(json, "tid", row);
	mu_json_object_begin(json, "args");
	if (name)
		mu_json_string(json, "name", name);
	else
		mu_json_integer(json, "sort_index", rank);
	mu_json_object_end(json);
	mu_json_object_end(json);
}

/* Whole nanoseconds: shorter text, and nothing here is more exact. */
static double microseconds(double seconds)
{
	return round(seconds * 1e9) / 1e3;
}

static void write_span(mu_timeline *timeline, const mu_timeline_rank *rank, const mu_span *span)
{
	mu_json *json = &timeline->json;
	bool collective = span->kind == MU_SPAN_COLLECTIVE;
	char text[128];
	const char *name = rank->name ? rank->name(rank->names, (mu_span_kind)span->kind, span->index) : NULL;
	if (collective && name)
		snprintf(text, sizeof text, "%s", name);
	else
		snprintf(text, sizeof text, "%s%s%s", mu_span_text((mu_span_kind)span->kind), name ? " " : "",
		         name ? name : "");
	mu_json_object_begin(json, NULL);
	mu_json_string(json, "name", text);
	mu_json_string(json, "cat", mu_span_text((mu_span_kind)span->kind));
	mu_json_string(json, "ph", "X");
	mu_json_number(json, "ts", microseconds(span->begin - rank->ahead - timeline->zero));
	mu_json_number(json, "dur", microseconds(span->end - span->begin));
	mu_json_integer(json, "pid", rank->rank);
	mu_json_integer(json, "tid", collective ? ROW_COMMUNICATION : ROW_COMPUTE);
	mu_json_object_begin(json, "args");
	mu_json_unsigned(json, "step", span->step);
	if (collective)
		mu_json_unsigned(json, "bytes", span->amount);
	mu_json_object_end(json);
	mu_json_object_end(json);
}

void mu_timeline_label(mu_timeline *timeline, const mu_timeline_rank *rank)
{
	char process[320];
	snprintf(process, sizeof process, "rank %d (%s)", rank->rank, rank->host);
	label(&timeline->json, "process_name", rank->rank, ROW_COMPUTE, process);
	label(&timeline->json, "process_sort_index", rank->rank, ROW_COMPUTE, NULL);
	label(&timeline->json, "thread_name", rank->rank, ROW_COMPUTE, "compute");
	label(&timeline->json, "thread_name", rank->rank, ROW_COMMUNICATION, "communication");
}

void mu_timeline_add(mu_timeline *timeline, const mu_timeline_rank *rank, const mu_span *spans, size_t n)
{
	for (size_t i = 0; i < n; i++)
		write_span(timeline, rank, &spans[i]);
}

bool mu_timeline_end(mu_timeline *timeline)
{
	mu_json_array_end(&timeline->json);
	mu_json_object_end(&timeline->json);
	return mu_json_finished(&timeline->json);
}
