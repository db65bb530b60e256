/* balance.csv. SPDX-License-Identifier: MIT */
#include "monitor/balance_csv.h"

#include <stdio.h>

mural_status mu_balance_csv_open(mu_csv *csv, const char *path, mural_error *err)
{
	return mu_csv_open(csv, path,
	                   MU_BALANCE_CSV_REPLAYED "seconds_before,seconds_expected,own_seconds,waited_seconds,reason",
	                   err);
}

enum { FIELD = 3072 }; /* bytes of a list: more than 256 numbers need */

static void write_shares(mu_csv *csv, const mu_balance_csv_row *row)
{
	char text[FIELD] = "";
	size_t used = 0;
	for (int r = 0; r < row->ranks && used < sizeof text; r++)
		if (row->share_R[r] < 0)
			used += (size_t)snprintf(text + used, sizeof text - used, "%s-", r ? " " : "");
		else
			used += (size_t)snprintf(text + used, sizeof text - used, "%s%d", r ? " " : "",
			                         row->share_R[r]);
	mu_csv_text(csv, text);
}

static void write_seconds(mu_csv *csv, const double *seconds_R, int ranks)
{
	char text[FIELD] = "";
	size_t used = 0;
	for (int r = 0; seconds_R && r < ranks && used < sizeof text; r++)
		used += (size_t)snprintf(text + used, sizeof text - used, "%s%.6f", r ? " " : "", seconds_R[r]);
	mu_csv_text(csv, text);
}

mural_status mu_balance_csv_write(mu_csv *csv, const mu_balance_csv_row *row, mural_error *err)
{
	mu_csv_unsigned(csv, row->step);
	mu_csv_unsigned(csv, row->from_step);
	write_shares(csv, row);
	mu_csv_fixed_or_empty(csv, row->before, 6);
	mu_csv_fixed_or_empty(csv, row->after, 6);
	write_seconds(csv, row->seconds_R, row->ranks);
	write_seconds(csv, row->waited_R, row->ranks);
	mu_csv_text(csv, row->reason);
	return mu_csv_end_row(csv, err);
}
