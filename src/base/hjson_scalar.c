/* HJSON's leaves: white space, strings, bare tokens. SPDX-License-Identifier: MIT */
#include "base/hjson_reader.h"

#include <math.h>
#include <string.h>

static bool ends_line(char c)
{
	return c == '\n' || c == '\r';
}

static bool is_space(const mu_hjson_reader *r, char c)
{
	return c == ' ' || c == '\t' || ends_line(c) || (!r->strict && (c == '\v' || c == '\f'));
}

/* A comment at r->at, or nothing. */
static mural_status skip_comment(mu_hjson_reader *r, bool *lines, bool *skipped)
{
	const char *from = r->at;
	*skipped = false;
	if (r->strict || r->at == r->end)
		return MURAL_OK;
	if (*r->at == '#' || (r->at[0] == '/' && r->at[1] == '/')) {
		while (r->at < r->end && !ends_line(*r->at))
			r->at++;
	} else if (r->at[0] == '/' && r->at[1] == '*') {
		const char *close = strstr(r->at + 2, "*/");
		if (!close)
			return mu_hjson_mistake(r, from, NULL,
			                        "this comment is not closed: expected */ before the end of the file");
		for (; r->at < close; r->at++)
			*lines |= ends_line(*r->at);
		r->at = close + 2;
	}
	*skipped = r->at != from;
	return MURAL_OK;
}

mural_status mu_hjson_skip(mu_hjson_reader *r, bool *lines)
{
	bool ended = false, skipped = true;
	while (skipped) {
		while (r->at < r->end && is_space(r, *r->at))
			ended |= ends_line(*r->at++);
		MU_TRY(skip_comment(r, &ended, &skipped));
	}
	if (lines)
		*lines = ended;
	return MURAL_OK;
}

/* Four hexadecimal digits, or -1. */
static long read_hex4(const char *at, const char *end)
{
	long code = 0;
	for (int i = 0; i < 4; i++) {
		if (at + i >= end)
			return -1;
		char c = at[i];
		int digit = c >= '0' && c <= '9'   ? c - '0'
		            : c >= 'a' && c <= 'f' ? c - 'a' + 10
		            : c >= 'A' && c <= 'F' ? c - 'A' + 10
		                                   : -1;
		if (digit < 0)
			return -1;
		code = code * 16 + digit;
	}
	return code;
}

static char *put_utf8(char *to, unsigned long code)
{
	static const unsigned char lead[] = {0, 0xc0, 0xe0, 0xf0};
	int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
	*to++ = (char)(lead[more] | code >> 6 * more);
	while (more-- > 0)
		*to++ = (char)(0x80 | (code >> 6 * more & 0x3f));
	return to;
}

/* \uXXXX, with a second one for a surrogate pair; r->at is on the u. */
static mural_status read_unicode(mu_hjson_reader *r, const mu_hjson_value *inside, char **to)
{
	const char *escape = r->at - 1;
	long code = read_hex4(r->at + 1, r->end);
	if (code < 0)
		return mu_hjson_mistake(r, escape, inside, "expected four hexadecimal digits after \\u");
	if (code == 0)
		return mu_hjson_mistake(r, escape, inside, "a string must not hold the character NUL (\\u0000)");
	r->at += 5;
	if (code >= 0xd800 && code < 0xe000) {
		long low = code < 0xdc00 && r->at[0] == '\\' && r->at[1] == 'u' ? read_hex4(r->at + 2, r->end) : -1;
		if (low < 0xdc00 || low >= 0xe000)
			return mu_hjson_mistake(r, escape, inside, "half of a surrogate pair: expected \\uD8xx\\uDCxx");
		code = 0x10000 + (code - 0xd800) * 0x400 + (low - 0xdc00);
		r->at += 6;
	}
	*to = put_utf8(*to, (unsigned long)code);
	return MURAL_OK;
}

static mural_status read_escape(mu_hjson_reader *r, const mu_hjson_value *inside, char **to)
{
	static const char names[] = "\"\\/bfnrt'", values[] = "\"\\/\b\f\n\r\t'";
	r->at++;
	if (*r->at == 'u')
		return read_unicode(r, inside, to);
	const char *found = r->at < r->end ? strchr(names, *r->at) : NULL;
	if (!found || (r->strict && *found == '\''))
		return mu_hjson_mistake(r, r->at - 1, inside,
		                        "unknown escape: expected one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX");
	*(*to)++ = values[found - names];
	r->at++;
	return MURAL_OK;
}

mural_status mu_hjson_read_quoted(mu_hjson_reader *r, mu_hjson_value *inside, const char **text)
{
	const char *open = r->at, *close = open + 1;
	while (close < r->end && *close != *open && (unsigned char)*close >= ' ')
		close += *close == '\\' && close + 1 < r->end ? 2 : 1;
	char *out = mu_hjson_take(r->tree, (size_t)(close - open)), *to = out;
	if (!out)
		return mu_hjson_no_memory(r);
	*text = out;
	r->at++;
	while (r->at < r->end && *r->at != *open) {
		if (*r->at == '\\') {
			MU_TRY(read_escape(r, inside, &to));
		} else if ((unsigned char)*r->at < ' ') {
			if (ends_line(*r->at))
				break;
			return mu_hjson_mistake(r, r->at, inside,
			                        "a control character in a string: write it as an escape such as \\t");
		} else {
			*to++ = *r->at++;
		}
	}
	if (r->at == r->end || *r->at != *open)
		return mu_hjson_mistake(r, open, inside,
		                        "this string is not closed: expected %c before the end of the line", *open);
	r->at++;
	return MURAL_OK;
}

/* Passes white space up to the column in which the opening quotes stand. */
static void skip_indent(mu_hjson_reader *r, size_t indent)
{
	while (indent-- > 0 && r->at < r->end && (unsigned char)*r->at <= ' ' && !ends_line(*r->at))
		r->at++;
}

/* '''text''': its indentation goes by the opening quotes; the first and the last line end do not count. */
static mural_status read_lines(mu_hjson_reader *r, mu_hjson_value *value)
{
	const char *open = r->at, *close = strstr(open + 3, "'''");
	if (!close)
		return mu_hjson_mistake(r, open, value,
		                        "this text is not closed: expected ''' before the end of the file");
	size_t indent = 0;
	while (open - indent > r->tree->text && !ends_line(open[-1 - (ptrdiff_t)indent]))
		indent++;
	char *out = mu_hjson_take(r->tree, (size_t)(close - open)), *to = out;
	if (!out)
		return mu_hjson_no_memory(r);
	r->at = open + 3;
	while (r->at < close && (*r->at == ' ' || *r->at == '\t' || *r->at == '\r'))
		r->at++;
	if (*r->at == '\n') {
		r->at++;
		skip_indent(r, indent);
	}
	while (r->at < close) {
		char c = *r->at++;
		if (c != '\r')
			*to++ = c;
		if (c == '\n')
			skip_indent(r, indent);
	}
	if (to > out && to[-1] == '\n')
		to--;
	*to = '\0';
	r->at = close + 3;
	value->kind = MU_HJSON_STRING;
	value->quoted = true;
	value->text = out;
	return MURAL_OK;
}

static bool is_literal(const char *text, size_t bytes, const char *word)
{
	return bytes == strlen(word) && !memcmp(text, word, bytes);
}

/* true, false, null or a number. */
static mural_status read_token(mu_hjson_reader *r, mu_hjson_value *value, size_t bytes, bool *found)
{
	*found = true;
	if (is_literal(r->at, bytes, "null")) {
		value->kind = MU_HJSON_NULL;
	} else if (is_literal(r->at, bytes, "true") || is_literal(r->at, bytes, "false")) {
		value->kind = MU_HJSON_BOOL;
		value->boolean = *r->at == 't';
	} else if (mu_hjson_number_read(&value->number, r->at, bytes)) {
		value->kind = MU_HJSON_NUMBER;
		if (isinf(value->number.value))
			return mu_hjson_mistake(r, r->at, value, "expected a number below 1.8e308, got %s",
			                        mu_hjson_got(r, r->at));
	} else {
		*found = false;
	}
	return MURAL_OK;
}

/* Did this bare text take along what was meant to end it? "{ on: True }" swallows the brace. */
static bool swallows(const char *text, size_t bytes)
{
	int open = 0;
	for (size_t i = 0; i < bytes; i++) {
		open += text[i] == '{' || text[i] == '[';
		open -= text[i] == '}' || text[i] == ']';
		if (open < 0)
			return true;
	}
	return false;
}

static mural_status read_bare(mu_hjson_reader *r, mu_hjson_value *value)
{
	const char *stop = r->at;
	while (stop < r->end && !ends_line(*stop) && !strchr(r->strict ? ",}] \t" : ",}]#", *stop) &&
	       !(*stop == '/' && (stop[1] == '/' || stop[1] == '*')))
		stop++;
	const char *last = stop;
	while (last > r->at && (last[-1] == ' ' || last[-1] == '\t'))
		last--;
	bool found;
	MU_TRY(read_token(r, value, (size_t)(last - r->at), &found));
	if (found) {
		r->at = last;
		return MURAL_OK;
	}
	if (r->strict)
		return mu_hjson_mistake(r, r->at, value, "expected a value, got %s", mu_hjson_got(r, r->at));
	while (stop < r->end && !ends_line(*stop))
		stop++;
	while (stop > r->at && (unsigned char)stop[-1] <= ' ')
		stop--;
	size_t bytes = (size_t)(stop - r->at);
	char *text = mu_hjson_take(r->tree, bytes + 1);
	if (!text)
		return mu_hjson_no_memory(r);
	memcpy(text, r->at, bytes);
	value->kind = MU_HJSON_STRING;
	value->text = text;
	if (!r->swallowed && swallows(text, bytes)) {
		value->raw_bytes = bytes;
		r->swallowed = value;
	}
	r->at = stop;
	return MURAL_OK;
}

mural_status mu_hjson_read_scalar(mu_hjson_reader *r, mu_hjson_value *value)
{
	if (!r->strict && !strncmp(r->at, "'''", 3))
		return read_lines(r, value);
	if (*r->at == '"' || (!r->strict && *r->at == '\'')) {
		value->kind = MU_HJSON_STRING;
		value->quoted = true;
		return mu_hjson_read_quoted(r, value, &value->text);
	}
	return read_bare(r, value);
}
