/* What the HJSON reader says about a mistake: where it is, in which value, and what stands there.
 * SPDX-License-Identifier: MIT */
#include "base/hjson_reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define GOT_BYTES 48 /* of the file's text in a message */

mural_status mu_hjson_no_memory(mu_hjson_reader *r)
{
	return mu_fail(r->err, MURAL_OUT_OF_MEMORY, r->tree ? r->tree->name : NULL, "no memory to read this file");
}

const char *mu_hjson_got(const mu_hjson_reader *r, const char *at)
{
	static _Thread_local char buffers[2][GOT_BYTES + 8];
	static _Thread_local unsigned next;
	char *text = buffers[next++ % 2], *to = text;
	if (at >= r->end)
		return strcpy(text, "the end of the file");
	const char *stop = at;
	if (*at == '"') {
		stop++;
		while (stop < r->end && *stop != '"' && *stop != '\n' && *stop != '\r')
			stop++;
		stop += stop < r->end && *stop == '"';
	} else {
		while (stop < r->end && (unsigned char)*stop > ' ' && !strchr(",:", *stop))
			stop++;
		stop += stop == at;
	}
	bool quoted = *at == '"';
	if (!quoted)
		*to++ = '`';
	for (; at < stop && to < text + GOT_BYTES; at++)
		*to++ = (char)((unsigned char)*at < ' ' ? '?' : *at);
	if (at < stop) {
		while (at > r->tree->text && ((unsigned char)*at & 0xc0) == 0x80 && to > text + 1) {
			at--;
			to--;
		}
		to = stpcpy(to, "...");
	}
	if (!quoted)
		*to++ = '`';
	*to = '\0';
	return text;
}

/* Where, and in which value: "run.json:4:3" or "run.json:4:3: optimizer.params". */
static void describe(const mu_hjson_reader *r, const char *at, const mu_hjson_value *value, char where[MU_HJSON_WHERE])
{
	unsigned line, column;
	char path[MU_HJSON_PATH] = "";
	mu_hjson_place(r->tree, at, &line, &column);
	if (value)
		mu_hjson_path(value, path);
	snprintf(where, MU_HJSON_WHERE, "%.480s:%u:%u%s%s", r->tree->name, line, column, *path ? ": " : "", path);
}

mural_status mu_hjson_mistake(mu_hjson_reader *r, const char *at, const mu_hjson_value *value, const char *format, ...)
{
	char where[MU_HJSON_WHERE], text[512];
	if (r->swallowed) {
		const mu_hjson_value *bare = r->swallowed;
		describe(r, bare->raw, bare, where);
		int bytes = (int)(bare->raw_bytes < 80 ? bare->raw_bytes : 80);
		return mu_fail(
		        r->err, r->kind, where,
		        "text without quotes runs to the end of its line and takes commas and braces with it, got "
		        "`%.*s`: "
		        "put text in quotes; true, false and null are lower case; a comma stands between two members",
		        bytes, bare->raw);
	}
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	describe(r, at, value, where);
	return mu_fail(r->err, r->kind, where, "%s", text);
}
