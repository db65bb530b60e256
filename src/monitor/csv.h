/* A table on disk that grows by rows (RFC 4180): metrics.csv, steps.csv.
 *
 * Each row reaches the file whole, in one write, when it ends, so a killed run leaves complete rows and a reader can
 * follow along. Opening an existing file appends to it (a resumed run) if its header is the same, after cutting off a
 * torn last line.
 *
 *     mu_csv_text(csv, "NVIDIA H200, 141 GB");    quoted because of the comma
 *     mu_csv_number(csv, 0.25);
 *     MU_TRY(mu_csv_end_row(csv, err));
 * SPDX-License-Identifier: MIT */
#ifndef MU_MONITOR_CSV_H
#define MU_MONITOR_CSV_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fail.h"

typedef struct mu_csv { /* zero-initialise */
	bool opened;
	int fd;
	char path[PATH_MAX];
	char row[8192]; /* the row so far; a longer one is cut at mu_csv_end_row's failure */
	size_t used;
	int columns, filled; /* of the header; of the row so far */
	bool overflow;
} mu_csv;

/* header: the column line without its end, no quotes. MURAL_FAILED: cannot be written, or has another header. */
mural_status mu_csv_open(mu_csv *csv, const char *path, const char *header, mural_error *err);
/* NULL and all-zero structs are fine. A row that has not ended is lost. */
void mu_csv_close(mu_csv *csv);

/* For a run that goes back to an earlier point: cuts a table off before the first row whose number in `column` (from 0, no
 * quoted field before it) is above `last`, or is no number, and before a torn last line. The header stays. A file that is not
 * there is fine. */
mural_status mu_csv_cut(const char *path, int column, uint64_t last, mural_error *err);
/* What was written is on the disk afterwards. */
mural_status mu_csv_sync(const mu_csv *csv, mural_error *err);

void mu_csv_text(mu_csv *csv, const char *text);
void mu_csv_number(mu_csv *csv, double value); /* not finite: "nan", "inf", "-inf" */
void mu_csv_number_or_empty(mu_csv *csv, double value); /* NaN means "not known": an empty field */
void mu_csv_fixed_or_empty(mu_csv *csv, double value, int digits); /* digits behind the point */
void mu_csv_unsigned(mu_csv *csv, uint64_t value);

/* Writes the row. MURAL_FAILED: the disk did not take it. MURAL_BUG: not as many fields as the header has. */
mural_status mu_csv_end_row(mu_csv *csv, mural_error *err);

#endif
