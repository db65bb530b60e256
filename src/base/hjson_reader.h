/* What the parts of the HJSON reader share. Not for others. SPDX-License-Identifier: MIT */
#ifndef MU_BASE_HJSON_READER_H
#define MU_BASE_HJSON_READER_H

#include <stddef.h>

#include "base/hjson.h"

typedef struct mu_hjson_chunk mu_hjson_chunk;

struct mu_hjson {
	const char *name;
	char *text; /* the file, NUL-terminated */
	size_t bytes;
	mu_hjson_value *root;
	mu_hjson_chunk *chunks;
};

typedef struct mu_hjson_reader {
	mu_hjson *tree;
	const char *at, *end; /* *end is NUL */
	bool strict;
	mural_status kind;
	int depth;
	mu_hjson_value *swallowed; /* first bare string that took a closing brace or a comma with it */
	mural_error *err;
} mu_hjson_reader;

/* Zeroed memory that lives as long as the tree; NULL when there is none. */
void *mu_hjson_take(mu_hjson *tree, size_t bytes);
mural_status mu_hjson_no_memory(mu_hjson_reader *reader);

/* A mistake at a place in the text, inside `value` (may be NULL). If a bare string swallowed a brace before, that is
 * the better explanation and is told instead. */
MU_PRINTF(4, 5)
mural_status mu_hjson_mistake(mu_hjson_reader *reader, const char *at, const mu_hjson_value *value, const char *format,
                              ...);

/* The text at a place, quoted, cut and made printable, for "got ...": in one of two rotating buffers. */
const char *mu_hjson_got(const mu_hjson_reader *reader, const char *at);

/* White space and comments. *lines (may be NULL) becomes true if a line ended there. */
mural_status mu_hjson_skip(mu_hjson_reader *reader, bool *lines);

/* Strings and bare tokens, into value->kind, text, raw, ... */
mural_status mu_hjson_read_quoted(mu_hjson_reader *reader, mu_hjson_value *inside, const char **text);
mural_status mu_hjson_read_scalar(mu_hjson_reader *reader, mu_hjson_value *value);

#endif
