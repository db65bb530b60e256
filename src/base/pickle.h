/* The tokens of a Python pickle of protocol 2, read for their shape; nothing is ever executed or built.
 *
 * A pickle is a program for a small stack machine. This reader does not run it: it hands out one token per opcode, and
 * its caller demands the one order of tokens that it knows. Only opcodes that plain data needs are allowed, and only the
 * globals that the caller lists; everything else is refused by name and byte. So a hostile file can do no more than be
 * wrong. Memory: 4 bytes per memo entry of the file, and each entry takes at least 2 bytes there.
 *
 * PUTs are noted and not handed out; a GET gives again the text or global it names. Other GETs are refused. With `machine`
 * PUTs and GETs are handed out instead, and the opcodes that PyTorch's files need besides: for a caller that keeps a stack of
 * values of its own (src/weights/pth_pickle.c).
 * SPDX-License-Identifier: MIT */
#ifndef MU_BASE_PICKLE_H
#define MU_BASE_PICKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fail.h"

#define MU_PICKLE_MAX_BYTES ((size_t)1 << 30) /* of a file: offsets are 32 bits wide */

typedef enum mu_pickle_kind {
	MU_PICKLE_DICT, /* an empty one */
	MU_PICKLE_LIST, /* an empty one */
	MU_PICKLE_MARK, /* begins the items of TUPLE 0, APPENDS and SETITEMS */
	MU_PICKLE_NUMBER, /* `number`; booleans too */
	MU_PICKLE_TEXT, /* `text`, `length`: any bytes */
	MU_PICKLE_NONE,
	MU_PICKLE_GLOBAL, /* `number`: which one of the allowed */
	MU_PICKLE_TUPLE, /* `number`: of that many items, 0: of all since the mark */
	MU_PICKLE_APPEND,
	MU_PICKLE_APPENDS,
	MU_PICKLE_SETITEM,
	MU_PICKLE_SETITEMS,
	MU_PICKLE_REDUCE,
	MU_PICKLE_BUILD,
	MU_PICKLE_STOP,
	/* with `machine` only */
	MU_PICKLE_EMPTY_TUPLE,
	MU_PICKLE_FLOAT, /* its value is not told */
	MU_PICKLE_PERSISTENT, /* a reference to something outside of the pickle */
	MU_PICKLE_NEW, /* an object of a class */
	MU_PICKLE_PUT, /* `number` */
	MU_PICKLE_GET /* `number` */
} mu_pickle_kind;

typedef struct mu_pickle_token {
	mu_pickle_kind kind;
	size_t at; /* byte of its opcode */
	int64_t number;
	const uint8_t *text; /* in the pickle's bytes */
	size_t length;
} mu_pickle_token;

typedef struct mu_pickle {
	const char *path; /* borrowed, for messages */
	const uint8_t *bytes; /* borrowed */
	size_t n, next;
	const char *const *globals; /* allowed "module name"s, NULL behind the last; borrowed */
	bool machine; /* set after mu_pickle_init */
	uint32_t *memo; /* [memo_n] bytes of tokens */
	size_t memo_n, memo_room;
} mu_pickle;

/* MURAL_DATA when the bytes do not start as protocol 2 does or are too many. Release in every case. */
mural_status mu_pickle_init(mu_pickle *pickle, const char *path, const uint8_t *bytes, size_t n,
                            const char *const *globals, mural_error *err);
void mu_pickle_release(mu_pickle *pickle);

mural_status mu_pickle_next(mu_pickle *pickle, mu_pickle_token *token, mural_error *err);

/* What the token is, for messages ("a list", "'u1'", "the number 7"), in a thread-local buffer until the next call. */
const char *mu_pickle_describe(const mu_pickle_token *token);

/* "path:byte" in a thread-local buffer, until the next call. */
const char *mu_pickle_where(const mu_pickle *pickle, size_t at);

#endif
