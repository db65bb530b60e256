/* A reader of configuration text (HJSON, as DeepSpeed's files are written) and of plain JSON, with positions.
 *
 * The dialect is hjson-py's: `#`, `//` and block comments, trailing commas, a new line in place of a comma, bare or
 * single-quoted keys, '''text over lines''', a root without braces, a UTF-8 byte order mark, CRLF. A bare value that is
 * no number, true, false or null is a string up to the end of its line, commas and braces included; `quoted` is then
 * false and the caller decides whether that was meant. Numbers follow JSON's grammar.
 *
 * Plain JSON (`strict`: safetensors headers, --result files) is RFC 8259 without duplicate keys.
 *
 * Nothing is lost: every value knows where it stands and how it was written, and duplicates are kept (`earlier`). The
 * tree is immutable, lives in one pool and goes with mu_hjson_free. Nesting is limited to MU_HJSON_DEPTH levels. The
 * text must be UTF-8 without NUL, so every key and string is a C string.
 * SPDX-License-Identifier: MIT */
#ifndef MU_BASE_HJSON_H
#define MU_BASE_HJSON_H

#include <stdint.h>

#include "base/fail.h"

#define MU_HJSON_DEPTH 32
#define MU_HJSON_PATH 256 /* bytes for a dotted path; longer ones are cut */
#define MU_HJSON_WHERE 768 /* bytes for "file:line:column: path" */

typedef enum mu_hjson_kind {
	MU_HJSON_NULL,
	MU_HJSON_BOOL,
	MU_HJSON_NUMBER,
	MU_HJSON_STRING,
	MU_HJSON_ARRAY,
	MU_HJSON_OBJECT
} mu_hjson_kind;

/* A number as written. whole: its value is an integer and magnitude, with the sign `negative`, is exactly that: 5e8 and
 * 64.0 are whole. Not whole also if it needs more than 64 bits. */
typedef struct mu_hjson_number {
	double value;
	bool whole, negative;
	uint64_t magnitude;
} mu_hjson_number;

typedef struct mu_hjson_value mu_hjson_value;
struct mu_hjson_value {
	mu_hjson_kind kind;
	bool boolean; /* BOOL */
	bool quoted; /* STRING in quotes */
	mu_hjson_number number; /* NUMBER */
	const char *text; /* STRING, decoded */
	const char *raw; /* as written, in the tree's copy of the file; not NUL-terminated */
	size_t raw_bytes;
	const char *key; /* member of an object, decoded; else NULL */
	const char *key_raw; /* where the key stands */
	mu_hjson_value *parent, *first, *next; /* OBJECT and ARRAY: children in the file's order */
	mu_hjson_value *earlier; /* the member before this one in the same object that has the same key, or NULL */
	mu_hjson_value **sorted; /* OBJECT: its `count` members by key, then by position */
	size_t count;
};

typedef struct mu_hjson mu_hjson;

typedef struct mu_hjson_source {
	const char *name; /* the file as the user gave it; borrowed for the tree's life */
	const char *text; /* copied */
	size_t bytes;
	bool strict; /* plain JSON, each key once */
	mural_status kind; /* status of a mistake in the text: MURAL_USAGE or MURAL_DATA */
} mu_hjson_source;

/* On failure *tree is NULL and err names file:line:column, what was expected and what was found. */
mural_status mu_hjson_read(mu_hjson **tree, const mu_hjson_source *source, mural_error *err);
void mu_hjson_free(mu_hjson *tree);
const mu_hjson_value *mu_hjson_root(const mu_hjson *tree);

/* The first member with this key, or NULL; also when `object` is no object, or NULL: a member of what is not there. */
const mu_hjson_value *mu_hjson_member(const mu_hjson_value *object, const char *key);

/* Bytes before a place in the tree's text: a value's raw or key_raw. */
size_t mu_hjson_offset(const mu_hjson *tree, const char *at);
/* 1-based line and column (in characters) of a place in the tree's text: a value's raw or key_raw. */
void mu_hjson_place(const mu_hjson *tree, const char *at, unsigned *line, unsigned *column);
/* Line of a member's key, or of a value that has none. */
unsigned mu_hjson_line(const mu_hjson *tree, const mu_hjson_value *value);
/* "zero_optimization.stage", "mural.mean[2]"; "" for the root. */
const char *mu_hjson_path(const mu_hjson_value *value, char path[MU_HJSON_PATH]);
/* "run.json:4:3: train_batch_size"; the key's place, or the value's where there is none. */
const char *mu_hjson_where(const mu_hjson *tree, const mu_hjson_value *value, char where[MU_HJSON_WHERE]);

/* A number in JSON's grammar that takes all `bytes` of text. Infinite when it is beyond a double. */
bool mu_hjson_number_read(mu_hjson_number *number, const char *text, size_t bytes);

#endif
