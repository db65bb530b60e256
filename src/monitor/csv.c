/* Rows are built in memory and written with one write() to a file opened for appending. SPDX-License-Identifier: MIT */
#include "monitor/csv.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/number.h"

static mural_status fail(const mu_csv *csv, mural_error *err)
{
	return mu_fail(err, MURAL_FAILED, csv->path, "cannot write the table: %s", strerror(errno));
}

static mural_status write_all(const mu_csv *csv, const char *text, size_t bytes, mural_error *err)
{
	while (bytes > 0) {
		ssize_t n = write(csv->fd, text, bytes);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return fail(csv, err);
		text += n;
		bytes -= (size_t)n;
	}
	return MURAL_OK;
}

/* Length of the file up to and including its last line end. */
static off_t whole_lines(int fd, off_t length)
{
	char byte;
	while (length > 0 && pread(fd, &byte, 1, length - 1) == 1 && byte != '\n')
		length--;
	return length;
}

/* An existing file: its header must be ours. Returns false in *empty when there is one. */
static mural_status check_existing(const mu_csv *csv, const char *header, bool *empty, mural_error *err)
{
	char found[1024];
	struct stat facts;
	*empty = true;
	if (fstat(csv->fd, &facts) != 0)
		return fail(csv, err);
	if (!S_ISREG(facts.st_mode) || facts.st_size == 0)
		return MURAL_OK;
	ssize_t n = pread(csv->fd, found, sizeof found - 1, 0);
	if (n < 0)
		return fail(csv, err);
	found[n] = '\0';
	found[strcspn(found, "\r\n")] = '\0';
	off_t whole = whole_lines(csv->fd, facts.st_size);
	if (whole > 0 && strcmp(found, header) != 0)
		return mu_fail(err, MURAL_FAILED, csv->path,
		               "the file exists and its first line is '%.200s', not '%.300s'; move it away or choose "
		               "another run folder",
		               found, header);
	if (whole != facts.st_size && ftruncate(csv->fd, whole) != 0)
		return fail(csv, err);
	*empty = whole == 0;
	return MURAL_OK;
}

static mural_status prepare(mu_csv *csv, const char *header, mural_error *err)
{
	bool empty;
	MU_TRY(check_existing(csv, header, &empty, err));
	if (!empty)
		return MURAL_OK;
	int n = snprintf(csv->row, sizeof csv->row, "%s\n", header);
	if (n < 0 || (size_t)n >= sizeof csv->row)
		return mu_bug(err, "a csv header is too long");
	return write_all(csv, csv->row, (size_t)n, err);
}

mural_status mu_csv_open(mu_csv *csv, const char *path, const char *header, mural_error *err)
{
	*csv = (mu_csv){.columns = 1};
	for (const char *c = header; *c; c++)
		csv->columns += *c == ',';
	if (strlen(path) >= sizeof csv->path)
		return mu_fail(err, MURAL_FAILED, NULL, "the path '%.40s...' is too long", path);
	snprintf(csv->path, sizeof csv->path, "%s", path);
	csv->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (csv->fd < 0)
		return fail(csv, err);
	csv->opened = true;
	mural_status status = prepare(csv, header, err);
	if (status != MURAL_OK)
		mu_csv_close(csv);
	return status;
}

void mu_csv_close(mu_csv *csv)
{
	if (!csv || !csv->opened)
		return;
	close(csv->fd);
	csv->opened = false;
}

mural_status mu_csv_sync(const mu_csv *csv, mural_error *err)
{
	/* EINVAL: a pipe or a device, which has nothing to sync */
	return fsync(csv->fd) == 0 || errno == EINVAL ? MURAL_OK : fail(csv, err);
}

/* The whole line `line` of `n` bytes stays. */
static bool row_stays(const char *line, ssize_t n, int column, uint64_t last)
{
	char *end;
	if (line[n - 1] != '\n')
		return false;
	for (; column > 0; column--) {
		line = strchr(line, ',');
		if (!line)
			return false;
		line++;
	}
	if (*line < '0' || *line > '9')
		return false;
	errno = 0;
	unsigned long long value = strtoull(line, &end, 10);
	return errno == 0 && (*end == ',' || *end == '\n' || *end == '\r') && value <= last;
}

/* Bytes of the file that stay. */
static off_t part_that_stays(FILE *in, int column, uint64_t last)
{
	char *line = NULL;
	size_t capacity = 0;
	off_t stays = 0;
	ssize_t n;
	while ((n = getline(&line, &capacity, in)) > 0) {
		bool header = stays == 0 && line[n - 1] == '\n';
		if (!header && !row_stays(line, n, column, last))
			break;
		stays += n;
	}
	free(line);
	return stays;
}

mural_status mu_csv_cut(const char *path, int column, uint64_t last, mural_error *err)
{
	FILE *in = fopen(path, "r+e");
	if (!in && errno == ENOENT)
		return MURAL_OK;
	bool done = in != NULL;
	if (in) {
		off_t stays = part_that_stays(in, column, last);
		done = !ferror(in) && ftruncate(fileno(in), stays) == 0;
	}
	mural_status status =
	        done ? MURAL_OK : mu_fail(err, MURAL_FAILED, path, "cannot shorten the table: %s", strerror(errno));
	if (in)
		fclose(in);
	return status;
}

static void put(mu_csv *csv, char c)
{
	if (csv->used + 1 < sizeof csv->row) /* room for the line end stays */
		csv->row[csv->used++] = c;
	else
		csv->overflow = true;
}

static void field(mu_csv *csv, const char *text)
{
	bool quoted = strpbrk(text, ",\"\r\n") != NULL;
	if (csv->filled++ > 0)
		put(csv, ',');
	if (quoted)
		put(csv, '"');
	for (; *text; text++) {
		if (*text == '"')
			put(csv, '"');
		put(csv, *text);
	}
	if (quoted)
		put(csv, '"');
}

void mu_csv_text(mu_csv *csv, const char *text)
{
	field(csv, text);
}

void mu_csv_number(mu_csv *csv, double value)
{
	char text[MU_NUMBER_SIZE];
	field(csv, mu_number_text(value, text));
}

void mu_csv_number_or_empty(mu_csv *csv, double value)
{
	if (value != value)
		field(csv, "");
	else
		mu_csv_number(csv, value);
}

void mu_csv_fixed_or_empty(mu_csv *csv, double value, int digits)
{
	char text[MU_NUMBER_SIZE];
	field(csv, value != value ? "" : mu_number_fixed(value, digits, text));
}

void mu_csv_unsigned(mu_csv *csv, uint64_t value)
{
	char text[MU_NUMBER_SIZE];
	snprintf(text, sizeof text, "%" PRIu64, value);
	field(csv, text);
}

mural_status mu_csv_end_row(mu_csv *csv, mural_error *err)
{
	bool whole = csv->filled == csv->columns && !csv->overflow;
	size_t used = csv->used;
	csv->used = 0;
	csv->filled = 0;
	csv->overflow = false;
	if (!whole)
		return mu_bug(err, "a csv row does not fit its header");
	csv->row[used++] = '\n';
	return write_all(csv, csv->row, used, err);
}
