/* Reading the opcodes of a pickle. Source: the comments of Python's Lib/pickletools.py describe each opcode.
 * SPDX-License-Identifier: MIT */
#include "base/pickle.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROTOCOL 2
#define MAX_GLOBAL 200 /* bytes of module and name */

typedef enum opcode {
	PROTO = 0x80,
	STOP = '.',
	EMPTY_DICT = '}',
	EMPTY_LIST = ']',
	EMPTY_TUPLE = ')',
	MARK = '(',
	BININT = 'J',
	BININT1 = 'K',
	BININT2 = 'M',
	NEWTRUE = 0x88,
	NEWFALSE = 0x89,
	NONE = 'N',
	BINSTRING = 'T',
	SHORT_BINSTRING = 'U',
	GLOBAL = 'c',
	TUPLE = 't',
	TUPLE1 = 0x85,
	TUPLE2 = 0x86,
	TUPLE3 = 0x87,
	APPEND = 'a',
	APPENDS = 'e',
	SETITEM = 's',
	SETITEMS = 'u',
	REDUCE = 'R',
	BUILD = 'b',
	BINPUT = 'q',
	LONG_BINPUT = 'r',
	BINGET = 'h',
	LONG_BINGET = 'j',
	BINUNICODE = 'X',
	BINFLOAT = 'G',
	LONG1 = 0x8a,
	BINPERSID = 'Q',
	NEWOBJ = 0x81
} opcode;

/* Names of the opcodes that are refused, for messages. */
static const char *const refused_names[256] = {
        ['I'] = "INT",
        ['L'] = "LONG",
        [LONG1] = "LONG1",
        [0x8b] = "LONG4",
        ['S'] = "STRING",
        ['V'] = "UNICODE",
        [BINUNICODE] = "BINUNICODE",
        [0x8c] = "SHORT_BINUNICODE",
        [0x8d] = "BINUNICODE8",
        ['B'] = "BINBYTES",
        ['C'] = "SHORT_BINBYTES",
        [0x8e] = "BINBYTES8",
        [0x96] = "BYTEARRAY8",
        [0x97] = "NEXT_BUFFER",
        [0x98] = "READONLY_BUFFER",
        ['F'] = "FLOAT",
        [BINFLOAT] = "BINFLOAT",
        ['l'] = "LIST",
        ['d'] = "DICT",
        [0x8f] = "EMPTY_SET",
        [0x90] = "ADDITEMS",
        [0x91] = "FROZENSET",
        ['0'] = "POP",
        ['1'] = "POP_MARK",
        ['2'] = "DUP",
        ['g'] = "GET",
        ['p'] = "PUT",
        [0x94] = "MEMOIZE",
        [0x82] = "EXT1",
        [0x83] = "EXT2",
        [0x84] = "EXT4",
        [0x93] = "STACK_GLOBAL",
        ['i'] = "INST",
        ['o'] = "OBJ",
        [NEWOBJ] = "NEWOBJ",
        [0x92] = "NEWOBJ_EX",
        [0x95] = "FRAME",
        ['P'] = "PERSID",
        [BINPERSID] = "BINPERSID",
        [PROTO] = "PROTO",
        [EMPTY_TUPLE] = "EMPTY_TUPLE",
};

const char *mu_pickle_where(const mu_pickle *pickle, size_t at)
{
	static _Thread_local char where[PATH_MAX + 32];
	snprintf(where, sizeof where, "%s:%zu", pickle->path, at);
	return where;
}

const char *mu_pickle_describe(const mu_pickle_token *token)
{
	static const char *const words[] = {
	        [MU_PICKLE_DICT] = "a dictionary",
	        [MU_PICKLE_LIST] = "a list",
	        [MU_PICKLE_MARK] = "the begin of a sequence (MARK)",
	        [MU_PICKLE_NONE] = "None",
	        [MU_PICKLE_GLOBAL] = "a class or function (GLOBAL)",
	        [MU_PICKLE_TUPLE] = "the end of a tuple",
	        [MU_PICKLE_APPEND] = "the end of a list item (APPEND)",
	        [MU_PICKLE_APPENDS] = "the end of list items (APPENDS)",
	        [MU_PICKLE_SETITEM] = "the end of a dictionary item (SETITEM)",
	        [MU_PICKLE_SETITEMS] = "the end of dictionary items (SETITEMS)",
	        [MU_PICKLE_REDUCE] = "a call (REDUCE)",
	        [MU_PICKLE_BUILD] = "the state of an object (BUILD)",
	        [MU_PICKLE_STOP] = "the end of the pickle (STOP)",
	        [MU_PICKLE_EMPTY_TUPLE] = "an empty tuple",
	        [MU_PICKLE_FLOAT] = "a float",
	        [MU_PICKLE_PERSISTENT] = "a reference (BINPERSID)",
	        [MU_PICKLE_NEW] = "a new object (NEWOBJ)",
	        [MU_PICKLE_PUT] = "the numbering of a value (PUT)",
	        [MU_PICKLE_GET] = "a value once more (GET)",
	};
	static _Thread_local char text[80];
	if (token->kind == MU_PICKLE_NUMBER)
		snprintf(text, sizeof text, "the number %lld", (long long)token->number);
	else if (token->kind == MU_PICKLE_TEXT && token->length > 40)
		snprintf(text, sizeof text, "a text of %zu bytes", token->length);
	else if (token->kind == MU_PICKLE_TEXT)
		snprintf(text, sizeof text, "'%.*s'", (int)token->length, (const char *)token->text);
	else
		snprintf(text, sizeof text, "%s", words[token->kind]);
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
			*c = '?';
	return text;
}

mural_status mu_pickle_init(mu_pickle *pickle, const char *path, const uint8_t *bytes, size_t n,
                            const char *const *globals, mural_error *err)
{
	*pickle = (mu_pickle){.path = path, .bytes = bytes, .n = n, .next = 2, .globals = globals};
	if (n > MU_PICKLE_MAX_BYTES)
		return mu_fail(err, MURAL_DATA, path, "expected a pickle of at most %s, found %s",
		               MU_SIZE(MU_PICKLE_MAX_BYTES), MU_SIZE(n));
	if (n < 2 || bytes[0] != PROTO || bytes[1] != PROTOCOL)
		return mu_fail(err, MURAL_DATA, mu_pickle_where(pickle, 0),
		               "expected a pickle of protocol 2, which starts with 80 02, found %02x %02x in a file of "
		               "%zu bytes",
		               n > 0 ? bytes[0] : 0, n > 1 ? bytes[1] : 0, n);
	return MURAL_OK;
}

void mu_pickle_release(mu_pickle *pickle)
{
	free(pickle->memo);
	*pickle = (mu_pickle){0};
}

/* The next `bytes` bytes of the opcode at `at`. */
static mural_status take(mu_pickle *pickle, size_t at, size_t bytes, const uint8_t **taken, mural_error *err)
{
	*taken = pickle->bytes + pickle->next;
	if (bytes > pickle->n - pickle->next)
		return mu_fail(err, MURAL_DATA, mu_pickle_where(pickle, at),
		               "the file is cut: this opcode needs %zu more bytes, %zu are left", bytes,
		               pickle->n - pickle->next);
	pickle->next += bytes;
	return MURAL_OK;
}

/* A little-endian unsigned number. */
static mural_status take_number(mu_pickle *pickle, size_t at, unsigned bytes, uint32_t *number, mural_error *err)
{
	const uint8_t *b;
	MU_TRY(take(pickle, at, bytes, &b, err));
	*number = 0;
	for (unsigned i = 0; i < bytes; i++)
		*number |= (uint32_t)b[i] << 8 * i;
	return MURAL_OK;
}

static mural_status take_int(mu_pickle *pickle, mu_pickle_token *token, unsigned bytes, mural_error *err)
{
	uint32_t number;
	MU_TRY(take_number(pickle, token->at, bytes, &number, err));
	token->number = bytes == 4 ? (int64_t)(int32_t)number : (int64_t)number;
	token->kind = MU_PICKLE_NUMBER;
	return MURAL_OK;
}

static mural_status take_text(mu_pickle *pickle, mu_pickle_token *token, unsigned bytes, mural_error *err)
{
	uint32_t length;
	MU_TRY(take_number(pickle, token->at, bytes, &length, err));
	if (length > INT32_MAX)
		return mu_fail(err, MURAL_DATA, mu_pickle_where(pickle, token->at),
		               "a text of negative length %d: the file is damaged", (int32_t)length);
	token->kind = MU_PICKLE_TEXT;
	token->length = length;
	return take(pickle, token->at, length, &token->text, err);
}

/* One line of text, without its end. */
static mural_status take_line(mu_pickle *pickle, size_t at, char line[MAX_GLOBAL], mural_error *err)
{
	size_t left = pickle->n - pickle->next, most = left < MAX_GLOBAL ? left : MAX_GLOBAL;
	const uint8_t *begin = pickle->bytes + pickle->next, *end = memchr(begin, '\n', most);
	if (!end)
		return mu_fail(err, MURAL_DATA, mu_pickle_where(pickle, at),
		               "the name of this global (a class or function) does not end within %zu bytes", most);
	size_t length = (size_t)(end - begin);
	for (size_t i = 0; i < length; i++)
		line[i] = begin[i] >= ' ' && begin[i] <= '~' ? (char)begin[i] : '?';
	line[length] = '\0';
	pickle->next += length + 1;
	return MURAL_OK;
}

static mural_status take_global(mu_pickle *pickle, mu_pickle_token *token, mural_error *err)
{
	char module[MAX_GLOBAL], name[MAX_GLOBAL], both[2 * MAX_GLOBAL];
	MU_TRY(take_line(pickle, token->at, module, err));
	MU_TRY(take_line(pickle, token->at, name, err));
	snprintf(both, sizeof both, "%s %s", module, name);
	token->kind = MU_PICKLE_GLOBAL;
	for (token->number = 0; pickle->globals[token->number]; token->number++)
		if (strcmp(pickle->globals[token->number], both) == 0)
			return MURAL_OK;
	return mu_fail(err, MURAL_DATA, mu_pickle_where(pickle, token->at),
	               "the pickle names '%s.%s', which does not belong into this data: refused, nothing was executed",
	               module, name);
}

static mural_status simple(mu_pickle_token *token, mu_pickle_kind kind, int64_t number)
{
	token->kind = kind;
	token->number = number;
	return MURAL_OK;
}

static mural_status refuse(mu_pickle *pickle, size_t at, mural_error *err)
{
	uint8_t code = pickle->bytes[at];
	return mu_fail(err, MURAL_DATA, mu_pickle_where(pickle, at),
	               "the opcode %s (0x%02x) does not belong into this data: refused, nothing was executed",
	               refused_names[code] ? refused_names[code] : "of no known name", code);
}

/* A whole number of up to 8 bytes, the highest bit its sign. */
static mural_status take_long(mu_pickle *pickle, mu_pickle_token *token, mural_error *err)
{
	const uint8_t *n, *b;
	uint64_t number = 0;
	MU_TRY(take(pickle, token->at, 1, &n, err));
	if (*n > 8)
		return mu_fail(err, MURAL_DATA, mu_pickle_where(pickle, token->at),
		               "a whole number of %d bytes, expected at most 8", *n);
	MU_TRY(take(pickle, token->at, *n, &b, err));
	for (unsigned i = 0; i < 8; i++)
		number |= (uint64_t)(i < *n ? b[i] : *n && b[*n - 1] & 0x80 ? 0xff : 0) << 8 * i;
	return simple(token, MU_PICKLE_NUMBER, (int64_t)number);
}

static mural_status take_index(mu_pickle *pickle, mu_pickle_token *token, mu_pickle_kind kind, unsigned bytes,
                               mural_error *err)
{
	uint32_t index;
	MU_TRY(take_number(pickle, token->at, bytes, &index, err));
	return simple(token, kind, index);
}

/* Opcodes that only a machine takes. */
static mural_status read_machine_token(mu_pickle *pickle, mu_pickle_token *token, opcode code, mural_error *err)
{
	const uint8_t *skipped;
	switch (code) {
	case EMPTY_TUPLE: return simple(token, MU_PICKLE_EMPTY_TUPLE, 0);
	case BINUNICODE: return take_text(pickle, token, 4, err);
	case BINFLOAT: token->kind = MU_PICKLE_FLOAT; return take(pickle, token->at, 8, &skipped, err);
	case LONG1: return take_long(pickle, token, err);
	case BINPERSID: return simple(token, MU_PICKLE_PERSISTENT, 0);
	case NEWOBJ: return simple(token, MU_PICKLE_NEW, 0);
	case BINPUT: return take_index(pickle, token, MU_PICKLE_PUT, 1, err);
	case LONG_BINPUT: return take_index(pickle, token, MU_PICKLE_PUT, 4, err);
	case BINGET: return take_index(pickle, token, MU_PICKLE_GET, 1, err);
	case LONG_BINGET: return take_index(pickle, token, MU_PICKLE_GET, 4, err);
	default: return refuse(pickle, token->at, err);
	}
}

/* An opcode with its argument, but for PUT and GET. */
static mural_status read_token(mu_pickle *pickle, mu_pickle_token *token, mural_error *err)
{
	const uint8_t *code;
	*token = (mu_pickle_token){.at = pickle->next};
	MU_TRY(take(pickle, token->at, 1, &code, err));
	switch ((opcode)*code) {
	case EMPTY_DICT: return simple(token, MU_PICKLE_DICT, 0);
	case EMPTY_LIST: return simple(token, MU_PICKLE_LIST, 0);
	case MARK: return simple(token, MU_PICKLE_MARK, 0);
	case BININT: return take_int(pickle, token, 4, err);
	case BININT1: return take_int(pickle, token, 1, err);
	case BININT2: return take_int(pickle, token, 2, err);
	case NEWTRUE: return simple(token, MU_PICKLE_NUMBER, 1);
	case NEWFALSE: return simple(token, MU_PICKLE_NUMBER, 0);
	case NONE: return simple(token, MU_PICKLE_NONE, 0);
	case BINSTRING: return take_text(pickle, token, 4, err);
	case SHORT_BINSTRING: return take_text(pickle, token, 1, err);
	case GLOBAL: return take_global(pickle, token, err);
	case TUPLE: return simple(token, MU_PICKLE_TUPLE, 0);
	case TUPLE1: return simple(token, MU_PICKLE_TUPLE, 1);
	case TUPLE2: return simple(token, MU_PICKLE_TUPLE, 2);
	case TUPLE3: return simple(token, MU_PICKLE_TUPLE, 3);
	case APPEND: return simple(token, MU_PICKLE_APPEND, 0);
	case APPENDS: return simple(token, MU_PICKLE_APPENDS, 0);
	case SETITEM: return simple(token, MU_PICKLE_SETITEM, 0);
	case SETITEMS: return simple(token, MU_PICKLE_SETITEMS, 0);
	case REDUCE: return simple(token, MU_PICKLE_REDUCE, 0);
	case BUILD: return simple(token, MU_PICKLE_BUILD, 0);
	case STOP: return simple(token, MU_PICKLE_STOP, 0);
	default: break;
	}
	return pickle->machine ? read_machine_token(pickle, token, (opcode)*code, err) : refuse(pickle, token->at, err);
}

/* Reads what the memo holds under the number of the GET at `at`, as if it stood there. */
static mural_status recall(mu_pickle *pickle, unsigned bytes, mu_pickle_token *token, mural_error *err)
{
	size_t at = pickle->next++, behind;
	uint32_t index;
	MU_TRY(take_number(pickle, at, bytes, &index, err));
	if (index >= pickle->memo_n || pickle->memo[index] == 0)
		return mu_fail(err, MURAL_DATA, mu_pickle_where(pickle, at),
		               "the pickle refers to its value number %u, which it does not have", index);
	behind = pickle->next;
	pickle->next = pickle->memo[index];
	MU_TRY(read_token(pickle, token, err));
	pickle->next = behind;
	if (token->kind != MU_PICKLE_TEXT && token->kind != MU_PICKLE_GLOBAL)
		return mu_fail(err, MURAL_DATA, mu_pickle_where(pickle, at),
		               "the pickle refers to %s again, which does not belong into this data",
		               mu_pickle_describe(token));
	return MURAL_OK;
}

/* Notes that value number `index` is the token at byte `at`; 0 is no token's place. Numbers come in order. */
static mural_status note(mu_pickle *pickle, size_t at, uint32_t index, mural_error *err)
{
	if (index > pickle->memo_n + 1)
		return mu_fail(err, MURAL_DATA, mu_pickle_where(pickle, pickle->next),
		               "the pickle numbers a value %u, expected at most %zu", index, pickle->memo_n + 1);
	if (index >= pickle->memo_room) {
		size_t room = 2 * pickle->memo_room + 64;
		uint32_t *memo = realloc(pickle->memo, room * sizeof *memo);
		if (!memo)
			return mu_fail(err, MURAL_OUT_OF_MEMORY, pickle->path, "no memory to read the pickle");
		pickle->memo = memo;
		pickle->memo_room = room;
	}
	while (pickle->memo_n <= index)
		pickle->memo[pickle->memo_n++] = 0;
	pickle->memo[index] = (uint32_t)at;
	return MURAL_OK;
}

static uint8_t peek(const mu_pickle *pickle)
{
	return pickle->next < pickle->n ? pickle->bytes[pickle->next] : (uint8_t)STOP;
}

static mural_status take_puts(mu_pickle *pickle, size_t at, mural_error *err)
{
	while (peek(pickle) == BINPUT || peek(pickle) == LONG_BINPUT) {
		unsigned bytes = peek(pickle) == BINPUT ? 1 : 4;
		uint32_t index;
		size_t put = pickle->next++;
		MU_TRY(take_number(pickle, put, bytes, &index, err));
		MU_TRY(note(pickle, at, index, err));
	}
	return MURAL_OK;
}

mural_status mu_pickle_next(mu_pickle *pickle, mu_pickle_token *token, mural_error *err)
{
	uint8_t code = peek(pickle);
	if (pickle->machine)
		return read_token(pickle, token, err);
	if (code == BINGET || code == LONG_BINGET)
		MU_TRY(recall(pickle, code == BINGET ? 1 : 4, token, err));
	else
		MU_TRY(read_token(pickle, token, err));
	return take_puts(pickle, token->at, err);
}
