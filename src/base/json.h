/* A writer of JSON (RFC 8259): --result files, safetensors headers.
 *
 * It streams to a FILE (open_memstream makes one of a buffer) and keeps only the nesting, so it never allocates.
 *
 *     mu_json json;
 *     mu_json_init(&json, file, MU_JSON_PRETTY);
 *     mu_json_object_begin(&json, NULL);
 *     mu_json_number(&json, "train_loss", loss);
 *     mu_json_array_begin(&json, "ranks");
 *     mu_json_unsigned(&json, NULL, 2);
 *     mu_json_array_end(&json);
 *     mu_json_object_end(&json);
 *     if (!mu_json_finished(&json)) ...
 *
 * key: the member's name inside an object, NULL inside an array and at the top. Using it otherwise, closing what is not
 * open, a second value at the top or more than MU_JSON_DEPTH levels write nothing and make mu_json_finished false.
 * Doubles read back bit for bit; NaN and infinities, which JSON lacks, become null. Text is UTF-8; bytes that are not
 * become U+FFFD, so the result is always valid.
 * SPDX-License-Identifier: MIT */
#ifndef MU_BASE_JSON_H
#define MU_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define MU_JSON_DEPTH 32

typedef enum mu_json_style {
	MU_JSON_COMPACT, /* no space at all */
	MU_JSON_PRETTY /* a line per value but for what is in a line, two spaces per level, a newline at the end */
} mu_json_style;

typedef struct mu_json {
	FILE *out; /* borrowed */
	mu_json_style style;
	int depth;
	int line; /* depth from which on everything stands on one line; 0: nothing does */
	struct {
		bool object, filled; /* else an array; has a value already */
	} level[MU_JSON_DEPTH];
	bool done, misused;
} mu_json;

void mu_json_init(mu_json *json, FILE *out, mu_json_style style);

void mu_json_object_begin(mu_json *json, const char *key);
/* An object that stands on one line with all that is in it, for tables. */
void mu_json_line_begin(mu_json *json, const char *key);
void mu_json_object_end(mu_json *json);
void mu_json_array_begin(mu_json *json, const char *key);
void mu_json_array_end(mu_json *json);

void mu_json_string(mu_json *json, const char *key, const char *text); /* NULL: null */
void mu_json_number(mu_json *json, const char *key, double value);
void mu_json_integer(mu_json *json, const char *key, int64_t value);
void mu_json_unsigned(mu_json *json, const char *key, uint64_t value);
void mu_json_bool(mu_json *json, const char *key, bool value);
void mu_json_null(mu_json *json, const char *key);

/* One whole value was written, the calls were in order, and the FILE took everything. */
bool mu_json_finished(const mu_json *json);

#endif
