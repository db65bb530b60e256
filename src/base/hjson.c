/* HJSON's structure: members, elements, the root. One function per level of nesting, at most MU_HJSON_DEPTH deep.
 * SPDX-License-Identifier: MIT */
#include "base/hjson_reader.h"

#include <stdlib.h>
#include <string.h>

static unsigned line_of(const mu_hjson_reader *r, const char *at)
{
	unsigned line, column;
	mu_hjson_place(r->tree, at, &line, &column);
	return line;
}

static int by_key(const void *a, const void *b)
{
	const mu_hjson_value *x = *(mu_hjson_value *const *)a, *y = *(mu_hjson_value *const *)b;
	int order = strcmp(x->key, y->key);
	return order ? order : (x->key_raw > y->key_raw) - (x->key_raw < y->key_raw);
}

/* Sorts an object's members and links those with equal keys. */
static mural_status index_members(mu_hjson_reader *r, mu_hjson_value *object)
{
	object->sorted = mu_hjson_take(r->tree, object->count * sizeof *object->sorted);
	if (!object->sorted)
		return mu_hjson_no_memory(r);
	size_t n = 0;
	for (mu_hjson_value *v = object->first; v; v = v->next)
		object->sorted[n++] = v;
	qsort(object->sorted, n, sizeof *object->sorted, by_key);
	for (size_t i = 1; i < n; i++) {
		mu_hjson_value *v = object->sorted[i], *before = object->sorted[i - 1];
		if (strcmp(v->key, before->key))
			continue;
		v->earlier = before;
		if (r->strict)
			return mu_hjson_mistake(r, v->key_raw, v,
			                        "expected each key once, got this one also on line %u",
			                        line_of(r, before->key_raw));
	}
	return MURAL_OK;
}

static mu_hjson_value *add_value(mu_hjson_reader *r, mu_hjson_value *parent, mu_hjson_value **last)
{
	mu_hjson_value *value = mu_hjson_take(r->tree, sizeof *value);
	if (!value)
		return NULL;
	value->raw = r->at;
	value->parent = parent;
	if (parent) {
		if (*last)
			(*last)->next = value;
		else
			parent->first = value;
		*last = value;
		parent->count++;
	}
	return value;
}

static mural_status read_value(mu_hjson_reader *r, mu_hjson_value *value);

static mural_status read_key(mu_hjson_reader *r, mu_hjson_value *member)
{
	member->key_raw = r->at;
	if (*r->at == '"' || (!r->strict && *r->at == '\''))
		return mu_hjson_read_quoted(r, member->parent, &member->key);
	const char *from = r->at;
	while (!r->strict && r->at < r->end && (unsigned char)*r->at > ' ' && !strchr("{}[],:", *r->at))
		r->at++;
	size_t bytes = (size_t)(r->at - from);
	if (bytes == 0)
		return mu_hjson_mistake(r, from, member->parent, "expected a key, got %s", mu_hjson_got(r, from));
	char *key = mu_hjson_take(r->tree, bytes + 1);
	if (!key)
		return mu_hjson_no_memory(r);
	memcpy(key, from, bytes);
	member->key = key;
	return MURAL_OK;
}

/* key : value */
static mural_status read_member(mu_hjson_reader *r, mu_hjson_value *object, mu_hjson_value **last)
{
	mu_hjson_value *member = add_value(r, object, last);
	if (!member)
		return mu_hjson_no_memory(r);
	MU_TRY(read_key(r, member));
	MU_TRY(mu_hjson_skip(r, NULL));
	if (*r->at != ':')
		return mu_hjson_mistake(r, r->at, member, "expected a colon after the key, got %s",
		                        mu_hjson_got(r, r->at));
	r->at++;
	MU_TRY(mu_hjson_skip(r, NULL));
	return read_value(r, member);
}

/* The separator after a member or element: a comma, a new line (not in JSON), or nothing before `close`. */
static mural_status read_separator(mu_hjson_reader *r, const mu_hjson_value *inside, char close)
{
	bool new_line, comma = false;
	MU_TRY(mu_hjson_skip(r, &new_line));
	if (*r->at == ',') {
		const char *at = r->at++;
		comma = true;
		MU_TRY(mu_hjson_skip(r, NULL));
		if (*r->at == ',')
			return mu_hjson_mistake(r, r->at, inside,
			                        "expected one comma between two values, got a second one");
		if (r->strict && *r->at == close)
			return mu_hjson_mistake(r, at, inside, "a comma before the closing %c is not plain JSON",
			                        close);
	}
	if (comma || *r->at == close || r->at == r->end || (new_line && !r->strict))
		return MURAL_OK;
	const char closing[] = {close, '\0'};
	return mu_hjson_mistake(r, r->at, inside, "expected a comma or %s, got %s", close ? closing : "a new line",
	                        mu_hjson_got(r, r->at));
}

/* Members or elements up to `close`; 0: up to the end of the file. */
static mural_status read_children(mu_hjson_reader *r, mu_hjson_value *value, char close)
{
	mu_hjson_value *last = NULL;
	MU_TRY(mu_hjson_skip(r, NULL));
	while (r->at < r->end && (*r->at != close || !close)) {
		if (value->kind == MU_HJSON_OBJECT) {
			MU_TRY(read_member(r, value, &last));
		} else {
			mu_hjson_value *element = add_value(r, value, &last);
			if (!element)
				return mu_hjson_no_memory(r);
			MU_TRY(read_value(r, element));
		}
		MU_TRY(read_separator(r, value, close));
	}
	if (close && r->at == r->end)
		return mu_hjson_mistake(r, r->at, value,
		                        "the %s opened on line %u is not closed: expected %c, got the end of the file",
		                        close == '}' ? "object" : "list", line_of(r, value->raw), close);
	r->at += close != 0;
	return value->kind == MU_HJSON_OBJECT ? index_members(r, value) : MURAL_OK;
}

static mural_status read_value(mu_hjson_reader *r, mu_hjson_value *value)
{
	value->raw = r->at;
	if (r->at == r->end || strchr("}],:", *r->at))
		return mu_hjson_mistake(r, r->at, value, "expected a value, got %s", mu_hjson_got(r, r->at));
	if (*r->at == '{' || *r->at == '[') {
		char close = *r->at == '{' ? '}' : ']';
		if (++r->depth > MU_HJSON_DEPTH)
			return mu_hjson_mistake(r, r->at, NULL, "expected at most %d levels of nesting",
			                        MU_HJSON_DEPTH);
		value->kind = close == '}' ? MU_HJSON_OBJECT : MU_HJSON_ARRAY;
		r->at++;
		MU_TRY(read_children(r, value, close));
		r->depth--;
	} else {
		MU_TRY(mu_hjson_read_scalar(r, value));
	}
	value->raw_bytes = (size_t)(r->at - value->raw);
	return MURAL_OK;
}

/* Does a root without braces begin here, that is, a key and a colon? Leaves r->at. */
static bool looks_like_member(mu_hjson_reader *r)
{
	mu_hjson_reader probe = *r;
	mu_hjson_value root = {.kind = MU_HJSON_OBJECT}, member = {.parent = &root};
	mural_error unused = {0};
	probe.err = &unused;
	return read_key(&probe, &member) == MURAL_OK && mu_hjson_skip(&probe, NULL) == MURAL_OK && *probe.at == ':';
}

static mural_status read_root(mu_hjson_reader *r)
{
	MU_TRY(mu_hjson_skip(r, NULL));
	mu_hjson_value *root = add_value(r, NULL, NULL);
	if (!root)
		return mu_hjson_no_memory(r);
	r->tree->root = root;
	if (!r->strict && *r->at != '{' && *r->at != '[' && (r->at == r->end || looks_like_member(r))) {
		root->kind = MU_HJSON_OBJECT;
		MU_TRY(read_children(r, root, 0));
		root->raw_bytes = (size_t)(r->at - root->raw);
		return MURAL_OK;
	}
	MU_TRY(read_value(r, root));
	const char *last = r->at - 1;
	MU_TRY(mu_hjson_skip(r, NULL));
	if (r->at == r->end)
		return MURAL_OK;
	const char *what = root->kind == MU_HJSON_OBJECT ? "object" : root->kind == MU_HJSON_ARRAY ? "list" : "value";
	return mu_hjson_mistake(r, r->at, NULL,
	                        "expected the end of the file (the %s opened on line %u ended on line %u), got %s",
	                        what, line_of(r, root->raw), line_of(r, last), mu_hjson_got(r, r->at));
}

/* Length of the UTF-8 character at p, 0 if it is none. Overlong forms, surrogates and values past U+10FFFF are none. */
static size_t utf8_length(const unsigned char *p, const unsigned char *end)
{
	if (p[0] < 0x80)
		return p[0] != 0;
	size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
	if (p[0] < 0xc2 || p[0] > 0xf4 || (size_t)(end - p) < n)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf0 && p[1] < 0x90) ||
	    (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

static mural_status check_text(mu_hjson_reader *r)
{
	for (const char *p = r->at; p < r->end;) {
		size_t n = utf8_length((const unsigned char *)p, (const unsigned char *)r->end);
		if (n == 0)
			return mu_hjson_mistake(r, p, NULL, "expected UTF-8 text, got the byte 0x%02X",
			                        (unsigned char)*p);
		p += n;
	}
	return MURAL_OK;
}

static mural_status read_text(mu_hjson_reader *r)
{
	if (!r->strict && r->end - r->at >= 3 && !memcmp(r->at, "\xef\xbb\xbf", 3))
		r->at += 3;
	MU_TRY(check_text(r));
	return read_root(r);
}

mural_status mu_hjson_read(mu_hjson **tree, const mu_hjson_source *source, mural_error *err)
{
	mu_hjson_reader r = {.strict = source->strict, .kind = source->kind, .err = err};
	*tree = NULL;
	r.tree = calloc(1, sizeof *r.tree);
	if (!r.tree)
		return mu_hjson_no_memory(&r);
	r.tree->name = source->name;
	r.tree->bytes = source->bytes;
	r.tree->text = malloc(source->bytes + 1);
	mural_status status;
	if (!r.tree->text) {
		status = mu_hjson_no_memory(&r);
	} else {
		if (source->bytes)
			memcpy(r.tree->text, source->text, source->bytes);
		r.tree->text[source->bytes] = '\0';
		r.at = r.tree->text;
		r.end = r.at + source->bytes;
		status = read_text(&r);
	}
	if (status == MURAL_OK)
		*tree = r.tree;
	else
		mu_hjson_free(r.tree);
	return status;
}
