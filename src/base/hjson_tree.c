/* The HJSON tree: its pool, look-up and places. A place is computed when somebody asks, by counting lines from the
 * start of the text: reading stays simple and fast, and only messages pay. SPDX-License-Identifier: MIT */
#include "base/hjson_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES 16384 /* a configuration file fits in one or two */

struct mu_hjson_chunk {
	mu_hjson_chunk *next;
	size_t used, bytes;
	max_align_t memory[];
};

void *mu_hjson_take(mu_hjson *tree, size_t bytes)
{
	mu_hjson_chunk *chunk = tree->chunks;
	bytes = (bytes + _Alignof(max_align_t) - 1) / _Alignof(max_align_t) * _Alignof(max_align_t);
	if (!chunk || chunk->bytes - chunk->used < bytes) {
		size_t room = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
		chunk = calloc(1, sizeof *chunk + room);
		if (!chunk)
			return NULL;
		chunk->bytes = room;
		chunk->next = tree->chunks;
		tree->chunks = chunk;
	}
	void *taken = (char *)chunk->memory + chunk->used;
	chunk->used += bytes;
	return taken;
}

void mu_hjson_free(mu_hjson *tree)
{
	if (!tree)
		return;
	while (tree->chunks) {
		mu_hjson_chunk *chunk = tree->chunks;
		tree->chunks = chunk->next;
		free(chunk);
	}
	free(tree->text);
	free(tree);
}

const mu_hjson_value *mu_hjson_root(const mu_hjson *tree)
{
	return tree->root;
}

const mu_hjson_value *mu_hjson_member(const mu_hjson_value *object, const char *key)
{
	if (!object || object->kind != MU_HJSON_OBJECT)
		return NULL;
	size_t low = 0, high = object->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (strcmp(object->sorted[middle]->key, key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < object->count && !strcmp(object->sorted[low]->key, key) ? object->sorted[low] : NULL;
}

size_t mu_hjson_offset(const mu_hjson *tree, const char *at)
{
	return (size_t)(at - tree->text);
}

void mu_hjson_place(const mu_hjson *tree, const char *at, unsigned *line, unsigned *column)
{
	*line = *column = 1;
	const char *p = tree->text;
	if (tree->bytes >= 3 && !memcmp(p, "\xef\xbb\xbf", 3))
		p += 3;
	for (; p < at; p++) {
		if (*p == '\n' || (*p == '\r' && p[1] != '\n')) {
			(*line)++;
			*column = 1;
		} else if (((unsigned char)*p & 0xc0) != 0x80) {
			(*column)++;
		}
	}
}

unsigned mu_hjson_line(const mu_hjson *tree, const mu_hjson_value *value)
{
	unsigned line, column;
	mu_hjson_place(tree, value->key_raw ? value->key_raw : value->raw, &line, &column);
	return line;
}

static size_t index_in_parent(const mu_hjson_value *value)
{
	size_t i = 0;
	for (const mu_hjson_value *v = value->parent->first; v != value; v = v->next)
		i++;
	return i;
}

const char *mu_hjson_path(const mu_hjson_value *value, char path[MU_HJSON_PATH])
{
	const mu_hjson_value *chain[MU_HJSON_DEPTH + 2];
	size_t n = 0, used = 0;
	for (const mu_hjson_value *v = value; v->parent && n < sizeof chain / sizeof *chain; v = v->parent)
		chain[n++] = v;
	path[0] = '\0';
	while (n-- > 0 && used < MU_HJSON_PATH) {
		int wrote;
		if (chain[n]->key)
			wrote = snprintf(path + used, MU_HJSON_PATH - used, "%s%s", used ? "." : "", chain[n]->key);
		else
			wrote = snprintf(path + used, MU_HJSON_PATH - used, "[%zu]", index_in_parent(chain[n]));
		used += wrote > 0 ? (size_t)wrote : 0;
	}
	for (char *p = path; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 127)
			*p = '?';
	return path;
}

const char *mu_hjson_where(const mu_hjson *tree, const mu_hjson_value *value, char where[MU_HJSON_WHERE])
{
	unsigned line, column;
	char path[MU_HJSON_PATH];
	mu_hjson_place(tree, value->key_raw ? value->key_raw : value->raw, &line, &column);
	mu_hjson_path(value, path);
	snprintf(where, MU_HJSON_WHERE, "%.480s:%u:%u%s%s", tree->name, line, column, *path ? ": " : "", path);
	return where;
}
