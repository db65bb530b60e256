/* A stack machine of inert values. SPDX-License-Identifier: MIT */
#include "weights/pth_pickle.h"

#include <stdlib.h>
#include <string.h>

#include "base/pickle.h"

#define POOL_BLOCK 65536

typedef enum value_kind { NUMBER, TEXT, GLOBAL_NAME, TUPLE, LIST, DICT, STORAGE, TENSOR, INERT, MARK } value_kind;

typedef struct value value;

/* An item of a container; a value may lie in several. */
typedef struct cell {
	const value *key, *item; /* key: DICT only */
	struct cell *next;
} cell;

struct value {
	value_kind kind;
	union {
		int64_t number; /* NUMBER; GLOBAL_NAME: which one */
		struct {
			const uint8_t *text;
			size_t bytes;
		};
		struct {
			cell *first, *last;
			size_t count;
		};
		mu_pth_tensor *tensor; /* TENSOR; STORAGE: its storage fields only */
	};
};

typedef struct block {
	struct block *next;
	size_t used;
	_Alignas(16) char bytes[POOL_BLOCK];
} block;

typedef struct machine {
	mu_pickle pickle;
	block *pool;
	value **stack, **memo;
	size_t depth, stack_room, memo_n, memo_room;
	size_t at; /* byte of the opcode under way */
	mural_error *err;
} machine;

/* Names that may occur. Storages first, by number. */
static const char *const globals[] = {"torch FloatStorage",
                                      "torch HalfStorage",
                                      "torch BFloat16Storage",
                                      "torch DoubleStorage",
                                      "torch LongStorage",
                                      "torch IntStorage",
                                      "torch ShortStorage",
                                      "torch CharStorage",
                                      "torch ByteStorage",
                                      "torch BoolStorage",
                                      "collections OrderedDict",
                                      "torch._utils _rebuild_tensor_v2",
                                      "torch._utils _rebuild_parameter",
                                      "torch Size",
                                      "argparse Namespace",
                                      "pathlib PosixPath",
                                      "torch device",
                                      "torch float32",
                                      "torch float16",
                                      "torch bfloat16",
                                      NULL};
static const char *const storage_types[] = {"F32", "F16", "BF16", "F64", "I64", "I32", "I16", "I8", "U8", "BOOL"};
enum { N_STORAGES = 10, ORDERED_DICT = N_STORAGES, REBUILD_TENSOR, REBUILD_PARAMETER, SIZE };

static mural_status unexpected(machine *m, const char *what)
{
	return mu_fail(m->err, MURAL_DATA, mu_pickle_where(&m->pickle, m->at),
	               "the pickle is damaged or no state_dict: %s", what);
}

static mural_status no_memory(machine *m)
{
	return mu_fail(m->err, MURAL_OUT_OF_MEMORY, m->pickle.path, "no memory to read the pickle");
}

static void *take(machine *m, size_t bytes)
{
	bytes = (bytes + 15) / 16 * 16;
	if (!m->pool || POOL_BLOCK - m->pool->used < bytes) {
		block *b = malloc(sizeof *b);
		if (!b)
			return NULL;
		b->next = m->pool;
		b->used = 0;
		m->pool = b;
	}
	void *taken = m->pool->bytes + m->pool->used;
	m->pool->used += bytes;
	memset(taken, 0, bytes);
	return taken;
}

/* Room for one more pointer. */
static bool grow(value ***array, size_t *room, size_t n)
{
	if (n < *room)
		return true;
	size_t larger = 2 * *room + 256;
	value **grown = realloc(*array, larger * sizeof **array);
	if (!grown)
		return false;
	*array = grown;
	*room = larger;
	return true;
}

static mural_status push(machine *m, value *v)
{
	if (!v || !grow(&m->stack, &m->stack_room, m->depth))
		return no_memory(m);
	m->stack[m->depth++] = v;
	return MURAL_OK;
}

static mural_status push_new(machine *m, value_kind kind, value **made)
{
	value *v = take(m, sizeof *v);
	if (v)
		v->kind = kind;
	*made = v;
	return push(m, v);
}

static mural_status pop(machine *m, value **v)
{
	if (m->depth == 0 || m->stack[m->depth - 1]->kind == MARK)
		return unexpected(m, "an opcode finds nothing on the stack");
	*v = m->stack[--m->depth];
	return MURAL_OK;
}

static mural_status append(machine *m, value *to, const value *key, const value *item)
{
	cell *c = take(m, sizeof *c);
	if (!c)
		return no_memory(m);
	*c = (cell){key, item, NULL};
	if (to->last)
		to->last->next = c;
	else
		to->first = c;
	to->last = c;
	to->count++;
	return MURAL_OK;
}

/* Index of the item behind the topmost mark. */
static mural_status find_mark(machine *m, size_t *first)
{
	for (size_t i = m->depth; i > 0; i--)
		if (m->stack[i - 1]->kind == MARK) {
			*first = i;
			return MURAL_OK;
		}
	return unexpected(m, "items without a begin");
}

/* The topmost n values (0: all since the mark) become one tuple. */
static mural_status make_tuple(machine *m, size_t n)
{
	size_t first = m->depth - n, end = m->depth;
	value *tuple = take(m, sizeof *tuple);
	if (!tuple)
		return no_memory(m);
	tuple->kind = TUPLE;
	if (n > m->depth)
		return unexpected(m, "a tuple of more items than there are");
	if (n == 0)
		MU_TRY(find_mark(m, &first));
	for (size_t i = first; i < end; i++) {
		if (m->stack[i]->kind == MARK)
			return unexpected(m, "a tuple of more items than there are");
		MU_TRY(append(m, tuple, NULL, m->stack[i]));
	}
	m->depth = n == 0 ? first - 1 : first;
	return push(m, tuple);
}

/* Items behind the mark, or the topmost `n`, go into the container below them. */
static mural_status fill(machine *m, value_kind kind, size_t n)
{
	size_t first = m->depth - n, step = kind == DICT ? 2 : 1;
	if (n > m->depth)
		return unexpected(m, "items without a container");
	if (n == 0)
		MU_TRY(find_mark(m, &first));
	size_t below = n == 0 ? first - 1 : first; /* behind the container */
	value *container = below > 0 ? m->stack[below - 1] : NULL;
	if (!container || container->kind != kind || (m->depth - first) % step)
		return unexpected(m, "items without a container that takes them");
	for (size_t i = first; i < m->depth; i += step)
		MU_TRY(append(m, container, kind == DICT ? m->stack[i] : NULL, m->stack[i + step - 1]));
	m->depth = below;
	return MURAL_OK;
}

/* ---- Tensors. ---- */

/* A tuple's item; something without content where it has none. */
static const value *item(const value *tuple, size_t number)
{
	static const value nothing = {.kind = INERT};
	const cell *c = tuple->kind == TUPLE ? tuple->first : NULL;
	while (c && number-- > 0)
		c = c->next;
	return c ? c->item : &nothing;
}

static bool is_text(const value *v, const char *text)
{
	return v->kind == TEXT && v->bytes == strlen(text) && memcmp(v->text, text, v->bytes) == 0;
}

static bool is_count(const value *v)
{
	return v->kind == NUMBER && v->number >= 0;
}

/* ('storage', type, key, location, elements) */
static mural_status take_storage(machine *m)
{
	value *id = NULL, *storage;
	MU_TRY(pop(m, &id));
	const value *type = item(id, 1), *key = item(id, 2), *elements = item(id, 4);
	if (!is_text(item(id, 0), "storage") || type->kind != GLOBAL_NAME || type->number >= N_STORAGES ||
	    key->kind != TEXT || !is_count(elements))
		return unexpected(m, "a reference that is none to a storage of a known type");
	MU_TRY(push_new(m, STORAGE, &storage));
	mu_pth_tensor *t = storage->tensor = take(m, sizeof *t);
	if (!t)
		return no_memory(m);
	t->storage = (const char *)key->text;
	t->storage_bytes = key->bytes;
	t->dtype = storage_types[type->number];
	t->storage_elements = (uint64_t)elements->number;
	return MURAL_OK;
}

static mural_status take_counts(machine *m, const value *tuple, uint64_t counts[MU_STORED_MAX_DIMS], size_t *n)
{
	if (tuple->kind != TUPLE || tuple->count > MU_STORED_MAX_DIMS)
		return unexpected(m, "a shape that is no tuple, or of too many dims");
	*n = 0;
	for (const cell *c = tuple->first; c; c = c->next) {
		if (!is_count(c->item))
			return unexpected(m, "a shape with something else than counts");
		counts[(*n)++] = (uint64_t)c->item->number;
	}
	return MURAL_OK;
}

/* (storage, offset, size, stride, requires_grad, hooks, ...) */
static mural_status rebuild_tensor(machine *m, const value *arguments)
{
	const value *storage = item(arguments, 0), *offset = item(arguments, 1);
	value *made;
	size_t n_strides;
	if (storage->kind != STORAGE || !is_count(offset))
		return unexpected(m, "a tensor without storage and offset");
	MU_TRY(push_new(m, TENSOR, &made));
	mu_pth_tensor *t = made->tensor = take(m, sizeof *t);
	if (!t)
		return no_memory(m);
	*t = *storage->tensor;
	t->offset = (uint64_t)offset->number;
	MU_TRY(take_counts(m, item(arguments, 2), t->dims, &t->n_dims));
	MU_TRY(take_counts(m, item(arguments, 3), t->strides, &n_strides));
	return n_strides == t->n_dims ? MURAL_OK : unexpected(m, "a tensor with fewer strides than dims");
}

/* What Python would call with these arguments; here only names that are known. */
static mural_status call(machine *m)
{
	value *arguments = NULL, *callee = NULL, *made;
	MU_TRY(pop(m, &arguments));
	MU_TRY(pop(m, &callee));
	if (callee->kind != GLOBAL_NAME || arguments->kind != TUPLE)
		return unexpected(m, "a call of something that is no function");
	switch (callee->number) {
	case ORDERED_DICT:
		if (arguments->count)
			return unexpected(m, "an OrderedDict with arguments");
		return push_new(m, DICT, &made);
	case REBUILD_TENSOR: return rebuild_tensor(m, arguments);
	case REBUILD_PARAMETER:
	case SIZE:
		if (arguments->count == 0)
			return unexpected(m, "a parameter or shape without content");
		return push(m, (value *)arguments->first->item);
	default:
		if (callee->number < N_STORAGES)
			return unexpected(m, "a call of a storage's type");
		return push_new(m, INERT, &made);
	}
}

static mural_status put(machine *m, uint64_t index)
{
	if (index > m->memo_n || m->depth == 0)
		return unexpected(m, "values are not numbered in order");
	if (!grow(&m->memo, &m->memo_room, index))
		return no_memory(m);
	m->memo[index] = m->stack[m->depth - 1];
	m->memo_n += index == m->memo_n;
	return MURAL_OK;
}

static mural_status step(machine *m, const mu_pickle_token *token)
{
	value *v = NULL;
	switch (token->kind) {
	case MU_PICKLE_DICT: return push_new(m, DICT, &v);
	case MU_PICKLE_LIST: return push_new(m, LIST, &v);
	case MU_PICKLE_EMPTY_TUPLE: return push_new(m, TUPLE, &v);
	case MU_PICKLE_MARK: return push_new(m, MARK, &v);
	case MU_PICKLE_NONE:
	case MU_PICKLE_FLOAT: return push_new(m, INERT, &v);
	case MU_PICKLE_NUMBER:
	case MU_PICKLE_GLOBAL:
		MU_TRY(push_new(m, token->kind == MU_PICKLE_NUMBER ? NUMBER : GLOBAL_NAME, &v));
		v->number = token->number;
		return MURAL_OK;
	case MU_PICKLE_TEXT:
		MU_TRY(push_new(m, TEXT, &v));
		v->text = token->text;
		v->bytes = token->length;
		return MURAL_OK;
	case MU_PICKLE_TUPLE: return make_tuple(m, (size_t)token->number);
	case MU_PICKLE_APPEND: return fill(m, LIST, 1);
	case MU_PICKLE_APPENDS: return fill(m, LIST, 0);
	case MU_PICKLE_SETITEM: return fill(m, DICT, 2);
	case MU_PICKLE_SETITEMS: return fill(m, DICT, 0);
	case MU_PICKLE_PERSISTENT: return take_storage(m);
	case MU_PICKLE_REDUCE:
	case MU_PICKLE_NEW: return call(m);
	case MU_PICKLE_BUILD: return pop(m, &v); /* an object's attributes: no tensor of the model is there */
	case MU_PICKLE_PUT: return put(m, (uint64_t)token->number);
	case MU_PICKLE_GET:
		if ((uint64_t)token->number >= m->memo_n)
			return unexpected(m, "it refers to a value that it does not have");
		return push(m, m->memo[token->number]);
	case MU_PICKLE_STOP: break;
	}
	return MURAL_OK;
}

/* ---- The state_dict. ---- */

static bool has_tensors(const value *dict)
{
	for (const cell *c = dict->first; c; c = c->next)
		if (c->item->kind == TENSOR)
			return true;
	return false;
}

/* Wrappers are taken off, at most this many. */
static const value *find_state(const value *dict, int levels)
{
	static const char *const wrappers[] = {"state_dict", "model", "model_state_dict", "module"};
	for (size_t w = 0; w < sizeof wrappers / sizeof *wrappers; w++)
		for (const cell *c = dict->first; c && levels > 0; c = c->next)
			if (is_text(c->key, wrappers[w]) && c->item->kind == DICT) {
				const value *inner = find_state(c->item, levels - 1);
				if (inner)
					return inner;
			}
	return has_tensors(dict) ? dict : NULL;
}

static mural_status list_tensors(machine *m, const value *dict, mu_pth_tensor **tensors, size_t *n)
{
	*tensors = calloc(dict->count + 1, sizeof **tensors);
	if (!*tensors)
		return no_memory(m);
	for (const cell *c = dict->first; c; c = c->next) {
		if (c->item->kind != TENSOR)
			continue; /* a version number, a step count */
		if (c->key->kind != TEXT || c->key->bytes == 0 || memchr(c->key->text, '\0', c->key->bytes))
			return unexpected(m, "a tensor whose name is no text");
		mu_pth_tensor *t = &(*tensors)[(*n)++];
		*t = *c->item->tensor;
		t->name = (const char *)c->key->text;
		t->name_bytes = c->key->bytes;
	}
	return MURAL_OK;
}

static mural_status run(machine *m, mu_pth_tensor **tensors, size_t *n)
{
	mu_pickle_token token;
	do {
		MU_TRY(mu_pickle_next(&m->pickle, &token, m->err));
		m->at = token.at;
		MU_TRY(step(m, &token));
	} while (token.kind != MU_PICKLE_STOP);
	if (m->depth != 1 || m->stack[0]->kind != DICT)
		return unexpected(m, "it holds no dictionary; save the model's state_dict(), not the model");
	const value *state = find_state(m->stack[0], 3);
	if (!state)
		return unexpected(m, "there is no tensor in it, nor below state_dict, model, model_state_dict, module");
	return list_tensors(m, state, tensors, n);
}

mural_status mu_pth_pickle_read(const char *path, const uint8_t *bytes, size_t n, mu_pth_tensor **tensors,
                                size_t *n_tensors, mural_error *err)
{
	machine m = {.err = err};
	*tensors = NULL;
	*n_tensors = 0;
	mural_status status = mu_pickle_init(&m.pickle, path, bytes, n, globals, err);
	m.pickle.machine = true;
	if (status == MURAL_OK)
		status = run(&m, tensors, n_tensors);
	mu_pickle_release(&m.pickle);
	while (m.pool) {
		block *next = m.pool->next;
		free(m.pool);
		m.pool = next;
	}
	free(m.stack);
	free(m.memo);
	if (status != MURAL_OK) {
		free(*tensors);
		*tensors = NULL;
	}
	return status;
}
