/* A CSV file (RFC 4180) as rows of text, with positions for messages.
 *
 * The first record names the columns. Quoted cells, CRLF, a UTF-8 byte order mark and cells over several lines are
 * understood; a record with another number of cells than there are columns is an error. Each row also keeps its text as
 * written, so that a copy of the file can differ in what is appended only.
 *
 *     mu_csv_table table;
 *     MU_TRY(mu_csv_table_read(&table, path, err));
 *     int gpus = mu_csv_table_column(&table, "gpus");            -1: no such column
 *     table.rows[r].cells[gpus] ...
 *     mu_csv_table_release(&table);
 *
 * mu_csv_table_read_begin is for a table that may be under way or damaged: it keeps the rows before the first line that cannot be read.
 * SPDX-License-Identifier: MIT */
#ifndef MU_STUDY_CSV_TABLE_H
#define MU_STUDY_CSV_TABLE_H

#include <stdbool.h>

#include "base/fail.h"

#define MU_CSV_COLUMNS 256 /* most columns */
#define MU_CSV_BYTES ((size_t)64 << 20) /* largest file */

typedef struct mu_csv_row {
	unsigned line; /* where the record begins, from 1 */
	const char *raw; /* as written, without the end of the line */
	char **cells; /* [n_columns], decoded */
} mu_csv_row;

typedef struct mu_csv_table {
	const char *path; /* borrowed */
	size_t n_columns, n_rows;
	mu_csv_row header, *rows;
	bool torn; /* reading stopped at a last line without an end: its writer is at work, or was killed */
	char *text, *copy; /* what raw and cells point into */
	char **cells;
} mu_csv_table;

/* MURAL_DATA names path:line. On failure nothing is kept. */
mural_status mu_csv_table_read(mu_csv_table *table, const char *path, mural_error *err);
/* The same, but on failure the rows so far stay, and the table has to be released. */
mural_status mu_csv_table_read_begin(mu_csv_table *table, const char *path, mural_error *err);
void mu_csv_table_release(mu_csv_table *table);

/* The first column of this name, or -1. */
int mu_csv_table_column(const mu_csv_table *table, const char *name);

#endif
