/* What people see of shares that move. SPDX-License-Identifier: MIT */
#include "engine/run_balance.h"

#include <math.h>
#include <string.h>

#include "engine/balance_advice.h"
#include "engine/balance_watch.h"
#include "monitor/balance_csv.h"

/* Seconds of one kind out of the ranks' rows. */
static void take_column(const mu_sharing *sharing, double own_R[], double waited_R[])
{
	for (int rank = 0; rank < sharing->ranks; rank++) {
		own_R[rank] = sharing->rows[rank].seconds;
		waited_R[rank] = sharing->rows[rank].waited;
	}
}

/* Shares as the table has them: below 0 for who is left out. */
static void list_shares(const int *share_R, const bool *member_R, int ranks, int *listed_R)
{
	for (int rank = 0; rank < ranks; rank++)
		listed_R[rank] = member_R[rank] ? share_R[rank] : -1;
}

mural_status mu_run_balance_begin(mu_run *r, mural_error *err)
{
	const mu_sharing *sharing = &r->engine->sharing;
	const uint64_t steps = mural_engine_steps_done(r->engine);
	int listed_R[MURAL_BALANCE_RANKS];
	if (r->rank > 0 || !mu_sharing_moves(sharing))
		return MURAL_OK;
	list_shares(sharing->share_R, sharing->member_R, sharing->ranks, listed_R);
	const mu_balance_csv_row row = {.step = steps,
	                                .from_step = steps + 1,
	                                .ranks = sharing->ranks,
	                                .share_R = listed_R,
	                                .before = NAN,
	                                .after = NAN,
	                                .reason = steps > 0 ? "the run goes on" : "the run begins"};
	return mu_balance_csv_write(&r->files.balance, &row, err);
}

static mural_status tell_decision(mu_run *r, const mu_sharing *sharing, mural_error *err)
{
	const mu_balance_decision *d = sharing->decision;
	double own_R[MURAL_BALANCE_RANKS], waited_R[MURAL_BALANCE_RANKS];
	int listed_R[MURAL_BALANCE_RANKS];
	take_column(sharing, own_R, waited_R);
	list_shares(d->shares, d->member, sharing->ranks, listed_R);
	const uint64_t from = (sharing->next_from ? sharing->next_from : sharing->met) + 1;
	const mu_balance_csv_row row = {.step = sharing->met,
	                                .from_step = from,
	                                .ranks = sharing->ranks,
	                                .share_R = listed_R,
	                                .before = d->before > 0 ? d->before : NAN,
	                                .after = d->after > 0 ? d->after : NAN,
	                                .seconds_R = own_R,
	                                .waited_R = waited_R,
	                                .reason = d->reason};
	if (d->changed)
		mu_progress_line(&r->progress, "from step %llu: %s", (unsigned long long)from, d->reason);
	return mu_balance_csv_write(&r->files.balance, &row, err);
}

static mural_status tell_replayed(mu_run *r, const mu_sharing *sharing, mural_error *err)
{
	int listed_R[MURAL_BALANCE_RANKS];
	list_shares(sharing->share_R, sharing->member_R, sharing->ranks, listed_R);
	const mu_balance_csv_row row = {.step = sharing->turned,
	                                .from_step = sharing->turned + 1,
	                                .ranks = sharing->ranks,
	                                .share_R = listed_R,
	                                .before = NAN,
	                                .after = NAN,
	                                .reason = "replayed"};
	return mu_balance_csv_write(&r->files.balance, &row, err);
}

mural_status mu_run_balance_step(mu_run *r, mural_error *err)
{
	const mu_sharing *sharing = &r->engine->sharing;
	const uint64_t steps = mural_engine_steps_done(r->engine);
	if (r->rank > 0)
		return MURAL_OK;
	if (sharing->decision && sharing->met == steps)
		return tell_decision(r, sharing, err);
	if (sharing->kind == MU_SHARES_REPLAY && sharing->turned == steps)
		return tell_replayed(r, sharing, err);
	return MURAL_OK;
}

void mu_run_balance_waits(const mural_engine *engine, char *text, size_t bytes)
{
	const mu_sharing *sharing = &engine->sharing;
	text[0] = '\0';
	if (!sharing->decision)
		return;
	const mu_balance_wait wait = mu_balance_wait_of(sharing->rows, sharing->decision->member, sharing->ranks);
	mu_balance_wait_words(&wait, wait.slowest < 0 ? NULL : sharing->name_R[wait.slowest], text, bytes);
}

enum { ADVICE = 2048 };

/* A line for each thing to say; "" for nothing. */
static void advise(const mural_engine *engine, char text[ADVICE])
{
	const mu_sharing *sharing = &engine->sharing;
	const char *names[MURAL_BALANCE_RANKS];
	text[0] = '\0';
	if (!sharing->balance)
		return;
	for (int rank = 0; rank < sharing->ranks; rank++)
		names[rank] = sharing->name_R[rank];
	mu_balance_advice_words(sharing->balance, (double)mu_dtype_bytes(engine->reducer.settings.wire_type), names,
	                        text, ADVICE);
}

void mu_run_balance_finish(mu_run *r)
{
	char text[ADVICE];
	advise(r->engine, text);
	for (const char *line = text; *line;) {
		size_t n = strcspn(line, "\n");
		mu_progress_line(&r->progress, "%.*s", (int)n, line);
		line += n + (line[n] == '\n');
	}
}

static void write_ranks(mu_json *json, const mu_sharing *sharing)
{
	mu_json_array_begin(json, "ranks");
	for (int rank = 0; rank < sharing->ranks; rank++) {
		double per_image = 0, per_micro = 0;
		if (sharing->balance)
			mu_balance_pace(sharing->balance, rank, &per_image, &per_micro);
		mu_json_line_begin(json, NULL);
		mu_json_string(json, "rank", sharing->name_R[rank]);
		mu_json_integer(json, "share", sharing->share_R[rank]);
		mu_json_bool(json, "reduces", sharing->member_R[rank]);
		mu_json_integer(json, "micro_batch", sharing->capacity_R[rank]);
		mu_json_number(json, "seconds_per_image", per_image > 0 ? per_image : NAN);
		mu_json_number(json, "own_seconds", sharing->decision ? sharing->rows[rank].seconds : NAN);
		mu_json_number(json, "waited_seconds", sharing->decision ? sharing->rows[rank].waited : NAN);
		mu_json_object_end(json);
	}
	mu_json_array_end(json);
}

void mu_balance_write(mu_json *json, const mural_config *config, const mural_engine *engine)
{
	const mu_sharing *sharing = &engine->sharing;
	const mu_balance_decision *d = sharing->decision;
	char advice[ADVICE], waits[MU_RUN_WAITS];
	if (!sharing->share_R)
		return;
	mu_json_object_begin(json, "balance");
	mu_json_string(json, "shares", config->balance.shares);
	mu_json_unsigned(json, "meetings", sharing->meetings);
	mu_json_unsigned(json, "changes", sharing->changes);
	mu_json_number(json, "expected_step_seconds", d && d->after > 0 ? d->after : NAN);
	mu_json_string(json, "last_decision", d ? d->reason : NULL);
	mu_run_balance_waits(engine, waits, sizeof waits);
	mu_json_string(json, "waits", waits[0] ? waits : NULL);
	advise(engine, advice);
	mu_json_string(json, "advice", advice[0] ? advice : NULL);
	write_ranks(json, sharing);
	mu_json_object_end(json);
}
