/* Reading CSV: one pass that counts, one that cuts cells in place. SPDX-License-Identifier: MIT */
#include "study/csv_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/files.h"

/* Where in the file the reader is. Cells are decoded into the text itself, which only ever gets shorter. */
typedef struct cursor {
	const char *path;
	char *at;
	unsigned line;
} cursor;

static mural_status broken(const cursor *c, mural_error *err, const char *what)
{
	char where[512];
	snprintf(where, sizeof where, "%.480s:%u", c->path, c->line);
	return mu_fail(err, MURAL_DATA, where, "%s", what);
}

static bool at_end_of_line(const char *at)
{
	return *at == '\0' || *at == '\n' || (*at == '\r' && (at[1] == '\n' || at[1] == '\0'));
}

/* Cuts a quoted cell; the cursor stands on the quote. */
static mural_status quoted_cell(cursor *c, char **cell, mural_error *err)
{
	char *to = ++c->at;
	*cell = to;
	for (;;) {
		if (*c->at == '\0')
			return broken(c, err, "a quoted cell has no closing quote");
		if (*c->at == '"' && *++c->at != '"')
			break;
		if (*c->at == '\n')
			c->line++;
		*to++ = *c->at++;
	}
	if (*c->at != ',' && !at_end_of_line(c->at))
		return broken(c, err, "expected a comma or the end of the line behind a closing quote");
	*to = '\0';
	return MURAL_OK;
}

/* Cuts one cell and steps over what ends it; *last: the record ends here. */
static mural_status next_cell(cursor *c, char **cell, bool *last, mural_error *err)
{
	char *end;
	if (*c->at == '"') {
		MU_TRY(quoted_cell(c, cell, err));
		end = c->at;
	} else {
		*cell = c->at;
		while (*c->at != ',' && !at_end_of_line(c->at))
			c->at++;
		end = c->at;
	}
	*last = *end != ',';
	if (*end == '\0')
		return MURAL_OK;
	c->at += *end == '\r' && end[1] == '\n' ? 2 : 1;
	c->line += *last;
	*end = '\0';
	return MURAL_OK;
}

static mural_status read_record(cursor *c, mu_csv_row *row, size_t *n_cells, size_t most, mural_error *err)
{
	bool last = false;
	row->line = c->line;
	for (*n_cells = 0; !last; ++*n_cells) {
		if (*n_cells == most)
			return broken(c, err,
			              most == MU_CSV_COLUMNS ? "the line has more than 256 cells"
			                                     : "the line has more cells than there are columns");
		MU_TRY(next_cell(c, &row->cells[*n_cells], &last, err));
	}
	return MURAL_OK;
}

static bool is_blank(const char *line)
{
	return at_end_of_line(line);
}

static void skip_blank_lines(cursor *c)
{
	while (*c->at != '\0' && is_blank(c->at)) {
		c->at += *c->at == '\r' && c->at[1] == '\n' ? 2 : 1;
		c->line++;
	}
}

/* The record's text in the untouched copy, ended there. Blank lines before it are the caller's business. */
static void keep_raw(mu_csv_row *row, char *copy, size_t from, size_t to)
{
	while (to > from && (copy[to - 1] == '\n' || copy[to - 1] == '\r'))
		to--;
	copy[to] = '\0';
	row->raw = copy + from;
}

static mural_status read_header(mu_csv_table *table, cursor *c, mural_error *err)
{
	skip_blank_lines(c);
	if (*c->at == '\0')
		return broken(c, err, "the file is empty; expected a line with the columns' names");
	size_t from = (size_t)(c->at - table->text);
	table->header.cells = calloc(MU_CSV_COLUMNS, sizeof *table->header.cells);
	if (!table->header.cells)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, table->path, "no memory for the names of columns");
	MU_TRY(read_record(c, &table->header, &table->n_columns, MU_CSV_COLUMNS, err));
	keep_raw(&table->header, table->copy, from, (size_t)(c->at - table->text));
	return MURAL_OK;
}

static mural_status read_rows(mu_csv_table *table, cursor *c, mural_error *err)
{
	size_t most = 1;
	for (const char *at = c->at; *at; at++)
		most += *at == '\n';
	table->rows = calloc(most, sizeof *table->rows);
	table->cells = calloc(most * table->n_columns, sizeof *table->cells);
	if (!table->rows || !table->cells)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, table->path, "no memory for %zu rows", most);
	for (skip_blank_lines(c); *c->at; skip_blank_lines(c)) {
		mu_csv_row *row = &table->rows[table->n_rows];
		size_t n, from = (size_t)(c->at - table->text);
		row->cells = table->cells + table->n_rows * table->n_columns;
		MU_TRY(read_record(c, row, &n, table->n_columns, err));
		if (n != table->n_columns) {
			c->line = row->line;
			return broken(c, err, "the line has fewer cells than there are columns");
		}
		keep_raw(row, table->copy, from, (size_t)(c->at - table->text));
		table->n_rows++;
	}
	return MURAL_OK;
}

mural_status mu_csv_table_read_begin(mu_csv_table *table, const char *path, mural_error *err)
{
	size_t bytes;
	*table = (mu_csv_table){.path = path};
	MU_TRY(mu_file_read(path, "CSV file", MU_CSV_BYTES, MURAL_DATA, &table->text, &bytes, err));
	cursor c = {.path = path, .at = table->text, .line = 1};
	if (memchr(table->text, '\0', bytes))
		return broken(&c, err, "this is no text: it has a NUL byte");
	table->copy = malloc(bytes + 1);
	if (!table->copy)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, path, "no memory for a copy of %s", MU_SIZE(bytes));
	memcpy(table->copy, table->text, bytes + 1);
	if (strncmp(c.at, "\xef\xbb\xbf", 3) == 0)
		c.at += 3;
	MU_TRY(read_header(table, &c, err));
	mural_status status = read_rows(table, &c, err);
	table->torn = status == MURAL_DATA && c.at == table->text + bytes && table->copy[bytes - 1] != '\n';
	return status;
}

mural_status mu_csv_table_read(mu_csv_table *table, const char *path, mural_error *err)
{
	mural_status status = mu_csv_table_read_begin(table, path, err);
	if (status != MURAL_OK)
		mu_csv_table_release(table);
	return status;
}

void mu_csv_table_release(mu_csv_table *table)
{
	free(table->text);
	free(table->copy);
	free(table->header.cells);
	free(table->rows);
	free(table->cells);
	*table = (mu_csv_table){0};
}

int mu_csv_table_column(const mu_csv_table *table, const char *name)
{
	for (size_t c = 0; c < table->n_columns; c++)
		if (strcmp(table->header.cells[c], name) == 0)
			return (int)c;
	return -1;
}
