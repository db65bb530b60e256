/* What people see of a rank that stalls: a line of the progress, a row of stalls.csv. SPDX-License-Identifier: MIT */
#include <time.h>

#include "engine/engine_internal.h"
#include "engine/run_internal.h"

static const char header[] = "time,rank,host,device,state,seconds,step,operation";

static mural_status write_row(mu_run *r, const mu_stall_report *report, mural_error *err)
{
	const mu_comm_stall *stall = report->stall;
	static const char *const states[] = {[MU_STALL_NONE] = "",
	                                     [MU_STALL_WORKS] = "works",
	                                     [MU_STALL_STUCK] = "stuck",
	                                     [MU_STALL_SILENT] = "silent"};
	char path[MURAL_CHECKPOINT_PATH + 16];
	mu_csv csv = {0};
	snprintf(path, sizeof path, "%s/stalls.csv", r->folder);
	mural_status status = mu_csv_open(&csv, path, header, err); /* goes on where the file ends */
	if (status == MURAL_OK) {
		mu_csv_unsigned(&csv, (uint64_t)time(NULL));
		mu_csv_unsigned(&csv, (uint64_t)stall->rank);
		mu_csv_text(&csv, stall->host);
		mu_csv_text(&csv, stall->device);
		mu_csv_text(&csv, report->over ? "over" : states[stall->kind]);
		mu_csv_fixed_or_empty(&csv, report->seconds, 1);
		mu_csv_unsigned(&csv, stall->step);
		mu_csv_text(&csv, stall->doing);
		status = mu_csv_end_row(&csv, err);
	}
	mu_csv_close(&csv);
	return status;
}

/* On the first rank, from the comm's thread. */
static void tell(void *listener, const mu_stall_report *report)
{
	mu_run *r = listener;
	mural_error err = {0};
	mu_progress_wait(&r->progress, report->words);
	if ((report->begins || report->over) && write_row(r, report, &err) != MURAL_OK)
		mu_progress_line(&r->progress, "stalls.csv: %s", err.message);
}

/* On the second rank, which hears the first one: that cannot tell of itself. */
static void tell_of_the_first(void *listener, const mu_stall_report *report)
{
	const mu_run *r = listener;
	if (report->stall->rank == 0 && report->stall->kind == MU_STALL_SILENT && r->options->progress)
		fprintf(r->options->progress, "%s\n", report->words);
}

void mu_run_watch_stalls(mu_run *r)
{
	if (r->rank <= 1)
		mu_stall_listen(&r->engine->stall, r->rank == 0 ? tell : tell_of_the_first, r);
}
