/* The ranks' spans in one file, on rank 0's clock. Each rank's spans travel in pieces through a buffer of fixed size, and rank 0
 * writes them as they come. SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "engine/engine_internal.h"
#include "engine/observe.h"
#include "monitor/timeline.h"

enum { PIECE = 2048 }; /* spans: 64 KiB */

/* What rank 0 has to know of a rank before its spans. */
typedef struct rank_head {
	uint64_t spans, lost;
	double ahead, uncertainty, earliest;
	char host[256];
} rank_head;

typedef struct span_names {
	const mu_vit *vit;
	char text[32];
} span_names;

static bool in_window(const mu_trace *trace, const mu_span *span)
{
	return span->step >= trace->first_step && span->step <= trace->last_step;
}

static const char *name_of(const void *context, mu_span_kind kind, unsigned index)
{
	span_names *names = (span_names *)context; /* ours: its text is rewritten each time */
	if (kind == MU_SPAN_COLLECTIVE)
		return mu_collective_text((mu_collective)index);
	if (kind != MU_SPAN_FORWARD && kind != MU_SPAN_BACKWARD)
		return NULL;
	const mu_unit *unit = &names->vit->units[index];
	if (unit->kind != MU_UNIT_BLOCK)
		return unit->kind == MU_UNIT_EMBED ? "embed" : "head";
	snprintf(names->text, sizeof names->text, "block %d", unit->block);
	return names->text;
}

static rank_head head_of(const mu_observe *o)
{
	rank_head head = {.lost = o->trace.lost, .ahead = o->ahead, .uncertainty = o->ahead_uncertainty};
	const mu_comm_facts *facts = o->plain->table->facts(o->plain);
	for (size_t i = 0; i < o->trace.n; i++) {
		const mu_span *span = &o->trace.spans[i];
		if (!in_window(&o->trace, span))
			continue;
		double begin = span->begin - o->ahead;
		if (head.spans++ == 0 || begin < head.earliest)
			head.earliest = begin;
	}
	snprintf(head.host, sizeof head.host, "%s", facts->host);
	return head;
}

/* The next spans of the window from *at on, into `piece`. Returns how many. */
static size_t next_piece(const mu_trace *trace, size_t *at, mu_span *piece)
{
	size_t n = 0;
	for (; *at < trace->n && n < PIECE; (*at)++)
		if (in_window(trace, &trace->spans[*at]))
			piece[n++] = trace->spans[*at];
	return n;
}

/* All ranks: rank `from`'s spans to rank 0's file (timeline: NULL elsewhere). */
static mural_status pass_spans(mu_observe *o, int from, const rank_head *head, mu_span *piece, mu_timeline *timeline,
                               mural_error *err)
{
	span_names names = {.vit = &o->engine->vit};
	const mu_timeline_rank rank = {
	        .rank = from, .host = head->host, .ahead = head->ahead, .name = name_of, .names = &names};
	size_t at = 0;
	if (timeline)
		mu_timeline_label(timeline, &rank);
	for (uint64_t left = head->spans; left > 0;) {
		size_t n = left < PIECE ? (size_t)left : PIECE;
		if (o->rank == from)
			next_piece(&o->trace, &at, piece);
		MU_TRY(mu_comm_broadcast(o->plain, piece, n * sizeof *piece, from, err));
		if (timeline)
			mu_timeline_add(timeline, &rank, piece, n);
		left -= n;
	}
	return MURAL_OK;
}

/* All ranks: everybody's head, and when the first of all spans begins. */
static mural_status gather_heads(mu_observe *o, rank_head *heads, double *zero, mural_error *err)
{
	heads[o->rank] = head_of(o);
	for (int r = 0; r < o->ranks; r++) {
		MU_TRY(mu_comm_broadcast(o->plain, &heads[r], sizeof heads[r], r, err));
		if (heads[r].spans > 0 && (r == 0 || heads[r].earliest < *zero))
			*zero = heads[r].earliest;
	}
	return MURAL_OK;
}

static mural_status pass_all(mu_observe *o, rank_head *heads, mu_span *piece, mu_file *file, mural_error *err)
{
	mu_timeline timeline;
	double zero = 0;
	MU_TRY(gather_heads(o, heads, &zero, err));
	if (o->rank == 0)
		mu_timeline_begin(&timeline, file->out, zero);
	for (int r = 0; r < o->ranks; r++)
		MU_TRY(pass_spans(o, r, &heads[r], piece, o->rank == 0 ? &timeline : NULL, err));
	if (o->rank == 0)
		mu_timeline_end(&timeline);
	return MURAL_OK;
}

static void tell(mu_observe *o, const rank_head *heads)
{
	unsigned long long spans = 0, lost = 0;
	double uncertainty = 0;
	for (int r = 0; r < o->ranks; r++) {
		spans += heads[r].spans;
		lost += heads[r].lost;
		uncertainty = heads[r].uncertainty > uncertainty ? heads[r].uncertainty : uncertainty;
	}
	mu_progress_line(o->progress, "timeline: %llu spans of %d rank%s in %s, clocks aligned to %.0f us%s", spans,
	                 o->ranks, o->ranks == 1 ? "" : "s", o->config->observe.timeline, 1e6 * uncertainty,
	                 lost ? "; some found no room" : "");
}

bool mu_observe_timeline_is_due(const mu_observe *o, uint64_t step, bool last)
{
	if (!o->config->observe.timeline[0] || o->timeline_written || step < o->trace.first_step)
		return false;
	return last || step >= o->trace.last_step;
}

mural_status mu_observe_write_timeline(mu_observe *o, mural_error *err)
{
	mu_file file = {0};
	rank_head *heads = calloc((size_t)o->ranks, sizeof *heads);
	mu_span *piece = calloc(PIECE, sizeof *piece);
	mural_status status =
	        heads && piece ? MURAL_OK : mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory to pass spans on");
	o->timeline_written = true;
	if (status == MURAL_OK && o->rank == 0)
		status = mu_file_begin(&file, o->config->observe.timeline, err);
	status = mu_comm_agree(o->plain, status, err);
	if (status == MURAL_OK && heads && piece) {
		status = pass_all(o, heads, piece, &file, err);
		if (status == MURAL_OK && o->rank == 0)
			status = mu_file_commit(&file, err);
		status = mu_comm_agree(o->plain, status, err);
	}
	if (status == MURAL_OK && heads && o->rank == 0)
		tell(o, heads);
	mu_file_abandon(&file);
	free(heads);
	free(piece);
	return status;
}
