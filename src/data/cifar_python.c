/* The shape of CIFAR's pickles: a descent over their tokens, one token ahead. SPDX-License-Identifier: MIT */
#include "data/cifar_python.h"

#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/pickle.h"

enum { RECONSTRUCT, NDARRAY, DTYPE };
static const char *const globals[] = {"numpy.core.multiarray _reconstruct", "numpy ndarray", "numpy dtype", NULL};

typedef struct parser {
	mu_pickle pickle;
	mu_pickle_token now; /* not yet used */
	/* What is wanted; the other keys of the shape are passed over. */
	const char *labels_key, *names_key;
	mu_cifar_batch *batch;
	mu_class_names *names;
	size_t classes;
	size_t label_room;
	size_t labels_at; /* byte of the list of labels, 0: none yet */
	uint64_t labels;
} parser;

static mural_status advance(parser *p, mural_error *err)
{
	return mu_pickle_next(&p->pickle, &p->now, err);
}

static mural_status unexpected(parser *p, const char *expected, mural_error *err)
{
	return mu_fail(err, MURAL_DATA, mu_pickle_where(&p->pickle, p->now.at), "expected %s, found %s", expected,
	               mu_pickle_describe(&p->now));
}

static bool text_is(const mu_pickle_token *token, const char *text)
{
	return token->kind == MU_PICKLE_TEXT && token->length == strlen(text) &&
	       memcmp(token->text, text, token->length) == 0;
}

/* ---- Lists. ---- */

typedef mural_status (*take_item)(parser *p, mural_error *err);

static mural_status take_label(parser *p, mural_error *err)
{
	mu_cifar_batch *batch = p->batch;
	if (p->now.number < 0 || (uint64_t)p->now.number >= p->classes)
		return mu_fail(err, MURAL_DATA, mu_pickle_where(&p->pickle, p->now.at),
		               "image %llu has label %lld; expected 0 to %zu", (unsigned long long)p->labels,
		               (long long)p->now.number, p->classes - 1);
	if (p->labels == p->label_room) {
		size_t room = 2 * p->label_room + 1024;
		uint8_t *grown = realloc(batch->labels, room);
		if (!grown)
			return mu_fail(err, MURAL_OUT_OF_MEMORY, p->pickle.path, "no memory for the labels");
		batch->labels = grown;
		p->label_room = room;
	}
	batch->labels[p->labels++] = (uint8_t)p->now.number;
	return MURAL_OK;
}

static mural_status take_name(parser *p, mural_error *err)
{
	mural_status status = mu_class_names_add(p->names, (const char *)p->now.text, p->now.length, err);
	if (status != MURAL_OK)
		mu_context(err, "at %s", mu_pickle_where(&p->pickle, p->now.at));
	return status;
}

static mural_status take_nothing(parser *p, mural_error *err)
{
	(void)p, (void)err;
	return MURAL_OK;
}

/* One item, of the kind that all items have. */
static mural_status read_item(parser *p, mu_pickle_kind kind, take_item take, mural_error *err)
{
	if (p->now.kind != kind)
		return unexpected(p, kind == MU_PICKLE_TEXT ? "a text in this list" : "a number in this list", err);
	MU_TRY(take(p, err));
	return advance(p, err);
}

/* An empty list, then any number of "MARK items APPENDS" and "item APPEND". */
static mural_status read_list(parser *p, mu_pickle_kind kind, take_item take, mural_error *err)
{
	if (p->now.kind != MU_PICKLE_LIST)
		return unexpected(p, "a list", err);
	MU_TRY(advance(p, err));
	while (p->now.kind == MU_PICKLE_MARK || p->now.kind == kind) {
		bool many = p->now.kind == MU_PICKLE_MARK;
		if (many)
			MU_TRY(advance(p, err));
		while (many && p->now.kind != MU_PICKLE_APPENDS)
			MU_TRY(read_item(p, kind, take, err));
		if (!many) {
			/* A text behind a list may be the next key: then no APPEND follows, and the list has ended. */
			mu_pickle before = p->pickle;
			mu_pickle_token item = p->now;
			MU_TRY(advance(p, err));
			if (p->now.kind != MU_PICKLE_APPEND) {
				p->pickle.next = before.next;
				p->now = item;
				return MURAL_OK;
			}
			mu_pickle_token append = p->now;
			p->now = item;
			MU_TRY(take(p, err));
			p->now = append;
		}
		MU_TRY(advance(p, err));
	}
	return MURAL_OK;
}

/* ---- The array. ---- */

typedef enum step_kind { IS, IS_NUMBER, IS_TEXT, ANY_COUNT, ANY_FLAG, ANY_TEXT } step_kind;

typedef struct step {
	step_kind kind;
	mu_pickle_kind token;
	int64_t number; /* IS_NUMBER, and of tuples and globals */
	const char *expected; /* IS_TEXT: the text; else for messages */
} step;

/* _reconstruct(ndarray, (0,), 'b'), then its state (1, shape, dtype('u1', 0, 1) with state, fortran, bytes). */
static const step array_steps[] = {
        {IS, MU_PICKLE_GLOBAL, RECONSTRUCT, "an array (numpy.core.multiarray._reconstruct)"},
        {IS, MU_PICKLE_GLOBAL, NDARRAY, "numpy.ndarray"},
        {IS_NUMBER, MU_PICKLE_NUMBER, 0, "the number 0"},
        {IS, MU_PICKLE_TUPLE, 1, "the end of a tuple of 1"},
        {IS_TEXT, MU_PICKLE_TEXT, 0, "b"},
        {IS, MU_PICKLE_TUPLE, 3, "the end of a tuple of 3"},
        {IS, MU_PICKLE_REDUCE, 0, "a call (REDUCE)"},
        {IS, MU_PICKLE_MARK, 0, "the array's state"},
        {IS_NUMBER, MU_PICKLE_NUMBER, 1, "version 1 of an array's state"},
        {ANY_COUNT, MU_PICKLE_NUMBER, 0, "the number of images"},
        {IS_NUMBER, MU_PICKLE_NUMBER, MU_CIFAR_PIXELS, "3072 values per image"},
        {IS, MU_PICKLE_TUPLE, 2, "a shape of two numbers"},
        {IS, MU_PICKLE_GLOBAL, DTYPE, "numpy.dtype"},
        {IS_TEXT, MU_PICKLE_TEXT, 0, "u1"},
        {IS_NUMBER, MU_PICKLE_NUMBER, 0, "the number 0"},
        {IS_NUMBER, MU_PICKLE_NUMBER, 1, "the number 1"},
        {IS, MU_PICKLE_TUPLE, 3, "the end of a tuple of 3"},
        {IS, MU_PICKLE_REDUCE, 0, "a call (REDUCE)"},
        {IS, MU_PICKLE_MARK, 0, "the type's state"},
        {IS_NUMBER, MU_PICKLE_NUMBER, 3, "version 3 of a type's state"},
        {IS_TEXT, MU_PICKLE_TEXT, 0, "|"},
        {IS, MU_PICKLE_NONE, 0, "None"},
        {IS, MU_PICKLE_NONE, 0, "None"},
        {IS, MU_PICKLE_NONE, 0, "None"},
        {IS_NUMBER, MU_PICKLE_NUMBER, -1, "the number -1"},
        {IS_NUMBER, MU_PICKLE_NUMBER, -1, "the number -1"},
        {IS_NUMBER, MU_PICKLE_NUMBER, 0, "the number 0"},
        {IS, MU_PICKLE_TUPLE, 0, "the end of the type's state"},
        {IS, MU_PICKLE_BUILD, 0, "the type's state (BUILD)"},
        {ANY_FLAG, MU_PICKLE_NUMBER, 0, "True or False for the order of the array"},
        {ANY_TEXT, MU_PICKLE_TEXT, 0, "the bytes of the array"},
        {IS, MU_PICKLE_TUPLE, 0, "the end of the array's state"},
        {IS, MU_PICKLE_BUILD, 0, "the array's state (BUILD)"},
};

static bool step_matches(const step *s, const mu_pickle_token *token)
{
	if (token->kind != s->token)
		return false;
	switch (s->kind) {
	case IS:
	case IS_NUMBER: return token->number == s->number;
	case IS_TEXT: return text_is(token, s->expected);
	case ANY_COUNT: return token->number >= 1;
	case ANY_FLAG: return token->number == 0 || token->number == 1;
	case ANY_TEXT: return true;
	}
	return false;
}

/* Images lie side by side, value by value, in Fortran's order. */
static mural_status turn(parser *p, const uint8_t *values, mural_error *err)
{
	mu_cifar_batch *batch = p->batch;
	size_t images = batch->images;
	batch->turned = malloc(images * MU_CIFAR_PIXELS);
	if (!batch->turned)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, p->pickle.path, "no memory for %llu images",
		               (unsigned long long)images);
	for (size_t i = 0; i < images; i++)
		for (size_t v = 0; v < MU_CIFAR_PIXELS; v++)
			batch->turned[i * MU_CIFAR_PIXELS + v] = values[v * images + i];
	batch->pixels = batch->turned;
	return MURAL_OK;
}

static mural_status read_array(parser *p, mural_error *err)
{
	mu_cifar_batch *batch = p->batch;
	int64_t images = 0, fortran = 0;
	mu_pickle_token values = {0};
	for (size_t i = 0; i < sizeof array_steps / sizeof *array_steps; i++) {
		const step *s = &array_steps[i];
		if (!step_matches(s, &p->now))
			return unexpected(p, s->expected, err);
		if (s->kind == ANY_COUNT)
			images = p->now.number;
		else if (s->kind == ANY_FLAG)
			fortran = p->now.number;
		else if (s->kind == ANY_TEXT)
			values = p->now;
		MU_TRY(advance(p, err));
	}
	/* The count is below 2^31. */
	if ((uint64_t)values.length != (uint64_t)images * MU_CIFAR_PIXELS)
		return mu_fail(err, MURAL_DATA, mu_pickle_where(&p->pickle, values.at),
		               "expected %lld bytes for %lld images of %d, found %zu",
		               (long long)images * MU_CIFAR_PIXELS, (long long)images, MU_CIFAR_PIXELS, values.length);
	batch->images = (uint64_t)images;
	batch->pixels = values.text;
	return fortran ? turn(p, values.text, err) : MURAL_OK;
}

/* ---- The dictionary. ---- */

static mural_status read_labels(parser *p, mural_error *err)
{
	p->labels_at = p->now.at;
	return read_list(p, MU_PICKLE_NUMBER, take_label, err);
}

/* A value that nobody asked for: a text, a number or a list of either. */
static mural_status skip_value(parser *p, mu_pickle_kind kind, bool list, mural_error *err)
{
	if (list)
		return read_list(p, kind, take_nothing, err);
	if (p->now.kind != kind)
		return unexpected(p, kind == MU_PICKLE_TEXT ? "a text" : "a number", err);
	return advance(p, err);
}

static mural_status read_value(parser *p, const mu_pickle_token *key, mural_error *err)
{
	static const struct {
		const char *key;
		mu_pickle_kind kind;
		bool list;
	} others[] = {
	        {"labels", MU_PICKLE_NUMBER, true},
	        {"fine_labels", MU_PICKLE_NUMBER, true},
	        {"coarse_labels", MU_PICKLE_NUMBER, true},
	        {"filenames", MU_PICKLE_TEXT, true},
	        {"batch_label", MU_PICKLE_TEXT, false},
	        {"label_names", MU_PICKLE_TEXT, true},
	        {"fine_label_names", MU_PICKLE_TEXT, true},
	        {"coarse_label_names", MU_PICKLE_TEXT, true},
	        {"num_cases_per_batch", MU_PICKLE_NUMBER, false},
	        {"num_vis", MU_PICKLE_NUMBER, false},
	};
	if (p->batch && text_is(key, "data") && !p->batch->pixels)
		return read_array(p, err);
	if (p->batch && text_is(key, p->labels_key) && !p->labels_at)
		return read_labels(p, err);
	if (p->names && text_is(key, p->names_key) && p->names->n == 0)
		return read_list(p, MU_PICKLE_TEXT, take_name, err);
	bool again = text_is(key, p->batch ? p->labels_key : p->names_key);
	for (size_t i = 0; i < sizeof others / sizeof *others && !again; i++)
		if (text_is(key, others[i].key))
			return skip_value(p, others[i].kind, others[i].list, err);
	return mu_fail(err, MURAL_DATA, mu_pickle_where(&p->pickle, key->at),
	               "expected one of the keys of a CIFAR %s, each once, found %s", p->batch ? "batch" : "meta file",
	               mu_pickle_describe(key));
}

static mural_status read_entry(parser *p, mural_error *err)
{
	mu_pickle_token key = p->now;
	if (key.kind != MU_PICKLE_TEXT)
		return unexpected(p, "a key of the dictionary", err);
	MU_TRY(advance(p, err));
	return read_value(p, &key, err);
}

/* A dictionary with "MARK entries SETITEMS" and "entry SETITEM", then the end of the pickle and of the file. */
static mural_status read_dictionary(parser *p, mural_error *err)
{
	MU_TRY(advance(p, err));
	if (p->now.kind != MU_PICKLE_DICT)
		return unexpected(p, "a dictionary", err);
	MU_TRY(advance(p, err));
	while (p->now.kind != MU_PICKLE_STOP) {
		bool many = p->now.kind == MU_PICKLE_MARK;
		if (many)
			MU_TRY(advance(p, err));
		do
			MU_TRY(read_entry(p, err));
		while (many && p->now.kind != MU_PICKLE_SETITEMS);
		if (!many && p->now.kind != MU_PICKLE_SETITEM)
			return unexpected(p, "the end of a dictionary item (SETITEM)", err);
		MU_TRY(advance(p, err));
	}
	if (p->pickle.next != p->pickle.n)
		return mu_fail(err, MURAL_DATA, mu_pickle_where(&p->pickle, p->pickle.next),
		               "expected the end of the file behind the pickle, found %zu more bytes",
		               p->pickle.n - p->pickle.next);
	return MURAL_OK;
}

static mural_status parse(parser *p, const char *path, const uint8_t *bytes, size_t n, mural_error *err)
{
	mural_status status = mu_pickle_init(&p->pickle, path, bytes, n, globals, err);
	if (status == MURAL_OK)
		status = read_dictionary(p, err);
	mu_pickle_release(&p->pickle);
	return status;
}

static mural_status check_batch(const parser *p, const char *path, mural_error *err)
{
	if (!p->batch->pixels || !p->labels_at)
		return mu_fail(err, MURAL_DATA, path, "the pickle has no entry '%s'; is this a batch of this CIFAR?",
		               p->batch->pixels ? p->labels_key : "data");
	if (p->labels != p->batch->images)
		return mu_fail(err, MURAL_DATA, path,
		               "expected as many labels as images, %llu, found %llu (at byte %zu)",
		               (unsigned long long)p->batch->images, (unsigned long long)p->labels, p->labels_at);
	return MURAL_OK;
}

mural_status mu_cifar_python_batch(mu_cifar_batch *batch, const char *path, const char *labels_key, size_t classes,
                                   mural_error *err)
{
	parser p = {.labels_key = labels_key, .batch = batch, .classes = classes};
	char *file;
	size_t n;
	*batch = (mu_cifar_batch){0};
	MU_TRY(mu_file_read(path, "CIFAR batch", MU_PICKLE_MAX_BYTES, MURAL_DATA, &file, &n, err));
	batch->file = (uint8_t *)file;
	mural_status status = parse(&p, path, batch->file, n, err);
	if (status == MURAL_OK)
		status = check_batch(&p, path, err);
	if (status != MURAL_OK)
		mu_cifar_batch_release(batch);
	return status;
}

void mu_cifar_batch_release(mu_cifar_batch *batch)
{
	free(batch->labels);
	free(batch->turned);
	free(batch->file);
	*batch = (mu_cifar_batch){0};
}

mural_status mu_cifar_python_names(mu_class_names *names, const char *path, const char *names_key, mural_error *err)
{
	parser p = {.names_key = names_key, .names = names};
	char *file;
	size_t n;
	MU_TRY(mu_file_read(path, "CIFAR meta file", MU_PICKLE_MAX_BYTES, MURAL_DATA, &file, &n, err));
	mural_status status = parse(&p, path, (uint8_t *)file, n, err);
	free(file);
	return status;
}
