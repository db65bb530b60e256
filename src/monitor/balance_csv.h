/* balance.csv: one row per meeting of ranks whose shares of a batch move, and one where a run begins or goes on.
 *
 * It replays: the shares of step n are those of the last row in the file whose from_step is at most n. A list is written with blanks
 * between its numbers, rank by rank.
 * SPDX-License-Identifier: MIT */
#ifndef MU_MONITOR_BALANCE_CSV_H
#define MU_MONITOR_BALANCE_CSV_H

#include <stdint.h>

#include "monitor/csv.h"

typedef struct mu_balance_csv_row {
	uint64_t step; /* the last one before the meeting; 0 where a run begins */
	uint64_t from_step; /* the first with these shares */
	int ranks;
	const int *share_R; /* [ranks]; below 0: left out of the reductions, "-" */
	double before, after; /* expected seconds of a step with the shares until now, and with these; NaN: not known */
	const double *seconds_R, *waited_R; /* [ranks]: of a step, own work and waiting; NULL: not known */
	const char *reason; /* in words */
} mu_balance_csv_row;

#define MU_BALANCE_CSV_STEP 0 /* number of the column */
#define MU_BALANCE_CSV_REPLAYED "step,from_step,shares," /* how the header begins: what a replay reads */

/* Columns: step, from_step, shares, seconds_before, seconds_expected, own_seconds, waited_seconds, reason. */
mural_status mu_balance_csv_open(mu_csv *csv, const char *path, mural_error *err);
mural_status mu_balance_csv_write(mu_csv *csv, const mu_balance_csv_row *row, mural_error *err);

#endif
