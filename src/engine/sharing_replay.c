/* Reading balance.csv: its first three columns, which are never quoted. SPDX-License-Identifier: MIT */
#include "engine/sharing_replay.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/balance_csv.h"

/* Where in the file. */
typedef struct place {
	const char *path;
	unsigned line;
	int ranks, batch;
} place;

static mural_status fail_at(const place *at, mural_error *err, const char *expected, const char *got)
{
	char where[1200];
	snprintf(where, sizeof where, "%.1100s:%u", at->path, at->line);
	return mu_fail(err, MURAL_USAGE, where, "expected %s, got '%.60s'", expected, got);
}

/* A whole number that ends with `end`; moves behind it. */
static bool number(const char **text, char end, int64_t most, int64_t *value)
{
	char *behind;
	if (**text < '0' || **text > '9')
		return false;
	errno = 0;
	const long long found = strtoll(*text, &behind, 10);
	if (errno || *behind != end || found > most)
		return false;
	*value = found;
	*text = behind + 1;
	return true;
}

/* "24 24 8 -," into share_R. */
static mural_status read_shares(const place *at, const char *text, int64_t *share_R, mural_error *err)
{
	const char *whole = text;
	int64_t sum = 0;
	char expected[96];
	snprintf(expected, sizeof expected, "the shares of %d ranks, %d images together", at->ranks, at->batch);
	for (int r = 0; r < at->ranks; r++) {
		const char end = r + 1 == at->ranks ? ',' : ' ';
		if (text[0] == '-' && text[1] == end) {
			share_R[r] = -1;
			text += 2;
		} else if (number(&text, end, at->batch, &share_R[r])) {
			sum += share_R[r];
		} else {
			return fail_at(at, err, expected, whole);
		}
	}
	return sum == at->batch ? MURAL_OK : fail_at(at, err, expected, whole);
}

/* A row: a change, which takes back what was to begin later. */
static mural_status add_row(mu_sharing_log *log, const place *at, const char *line, mural_error *err)
{
	const size_t width = (size_t)(1 + log->ranks);
	int64_t step, from;
	if (!number(&line, ',', INT64_MAX, &step) || !number(&line, ',', INT64_MAX, &from) || from < 1)
		return fail_at(at, err, "step,from_step,shares", line);
	while (log->n > 0 && mu_sharing_log_change(log, log->n - 1)[0] >= from - 1)
		log->n--;
	int64_t *longer = realloc(log->changes, (log->n + 1) * width * sizeof *longer);
	if (!longer)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the shares in %s", at->path);
	log->changes = longer;
	longer[log->n * width] = from - 1;
	MU_TRY(read_shares(at, line, longer + log->n * width + 1, err));
	const bool same = log->n > 0 && memcmp(longer + log->n * width + 1, longer + (log->n - 1) * width + 1,
	                                       (size_t)log->ranks * sizeof *longer) == 0;
	log->n += !same;
	return MURAL_OK;
}

static mural_status read_rows(mu_sharing_log *log, place *at, FILE *in, mural_error *err)
{
	char *line = NULL;
	size_t capacity = 0;
	mural_status status = MURAL_OK;
	while (status == MURAL_OK && getline(&line, &capacity, in) > 0) {
		line[strcspn(line, "\r\n")] = '\0';
		const bool header = at->line++ == 0;
		if (!header)
			status = add_row(log, at, line, err);
		else if (strncmp(line, MU_BALANCE_CSV_REPLAYED, strlen(MU_BALANCE_CSV_REPLAYED)) != 0)
			status = fail_at(at, err, "a run's balance.csv, whose header begins " MU_BALANCE_CSV_REPLAYED,
			                 line);
	}
	free(line);
	if (status == MURAL_OK && ferror(in))
		status = mu_fail(err, MURAL_USAGE, at->path, "cannot be read: %s", strerror(errno));
	if (status == MURAL_OK && log->n == 0)
		status = mu_fail(err, MURAL_USAGE, at->path, "expected a run's balance.csv, got a file without rows");
	return status;
}

mural_status mu_sharing_log_read(mu_sharing_log *log, const char *path, int ranks, int batch, mural_error *err)
{
	*log = (mu_sharing_log){.ranks = ranks};
	place at = {.path = path, .ranks = ranks, .batch = batch};
	FILE *in = fopen(path, "re");
	if (!in)
		return mu_fail(err, MURAL_USAGE, path, "the shares to replay cannot be read: %s", strerror(errno));
	mural_status status = read_rows(log, &at, in, err);
	fclose(in);
	if (status != MURAL_OK)
		mu_sharing_log_release(log);
	return status;
}

void mu_sharing_log_release(mu_sharing_log *log)
{
	free(log->changes);
	*log = (mu_sharing_log){0};
}
