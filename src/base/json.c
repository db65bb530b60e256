/* JSON writer: every value goes through `place`, which alone decides about commas, lines and keys.
 * SPDX-License-Identifier: MIT */
#include "base/json.h"

#include <inttypes.h>
#include <math.h>

#include "base/number.h"

void mu_json_init(mu_json *json, FILE *out, mu_json_style style)
{
	*json = (mu_json){.out = out, .style = style};
}

/* Length of the valid UTF-8 sequence at `text` (no overlong forms, no surrogates, up to U+10FFFF), 0 if there is none. */
static int sequence_length(const unsigned char *text)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	if (text[0] < 0x80)
		return 1;
	int length = text[0] >= 0xf0 && text[0] < 0xf8 ? 4 : text[0] >= 0xe0 ? 3 : text[0] >= 0xc0 ? 2 : 0;
	if (length == 0 || text[0] >= 0xf8)
		return 0;
	uint32_t code = text[0] & (0x7fu >> length);
	for (int i = 1; i < length; i++) {
		if ((text[i] & 0xc0) != 0x80) /* the NUL ends here too */
			return 0;
		code = code << 6 | (text[i] & 0x3fu);
	}
	if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return 0;
	return length;
}

static void write_character(FILE *out, unsigned char c)
{
	switch (c) {
	case '"': fputs("\\\"", out); break;
	case '\\': fputs("\\\\", out); break;
	case '\n': fputs("\\n", out); break;
	case '\r': fputs("\\r", out); break;
	case '\t': fputs("\\t", out); break;
	default:
		if (c < 0x20 || c == 0x7f)
			fprintf(out, "\\u%04x", (unsigned)c);
		else
			fputc(c, out);
	}
}

static void write_text(FILE *out, const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	fputc('"', out);
	while (*at) {
		int length = sequence_length(at);
		if (length == 0) {
			fputs("\xef\xbf\xbd", out);
			at++;
		} else if (length == 1) {
			write_character(out, *at++);
		} else {
			fwrite(at, 1, (size_t)length, out);
			at += length;
		}
	}
	fputc('"', out);
}

static void new_line(mu_json *json)
{
	if (json->style == MU_JSON_PRETTY && !json->line)
		fprintf(json->out, "\n%*s", 2 * json->depth, "");
}

/* Comma, line and key in front of a value; false if no value belongs here. */
static bool place(mu_json *json, const char *key)
{
	if (json->misused)
		return false;
	bool in_object = json->depth > 0 && json->level[json->depth - 1].object;
	if (json->done || in_object != (key != NULL)) {
		json->misused = true;
		return false;
	}
	if (json->depth > 0) {
		if (json->level[json->depth - 1].filled)
			fputs(json->line && json->style == MU_JSON_PRETTY ? ", " : ",", json->out);
		json->level[json->depth - 1].filled = true;
		new_line(json);
	}
	if (key) {
		write_text(json->out, key);
		fputs(json->style == MU_JSON_PRETTY ? ": " : ":", json->out);
	}
	return true;
}

static void value_ends(mu_json *json)
{
	if (json->depth > 0)
		return;
	json->done = true;
	if (json->style == MU_JSON_PRETTY)
		fputc('\n', json->out);
}

static void begin(mu_json *json, const char *key, bool object)
{
	if (json->depth == MU_JSON_DEPTH)
		json->misused = true;
	if (!place(json, key))
		return;
	fputc(object ? '{' : '[', json->out);
	json->level[json->depth].object = object;
	json->level[json->depth].filled = false;
	json->depth++;
}

static void end(mu_json *json, bool object)
{
	if (json->depth == 0 || json->level[json->depth - 1].object != object)
		json->misused = true;
	if (json->misused)
		return;
	json->depth--;
	if (json->level[json->depth].filled)
		new_line(json);
	if (json->depth < json->line)
		json->line = 0;
	fputc(object ? '}' : ']', json->out);
	value_ends(json);
}

void mu_json_object_begin(mu_json *json, const char *key)
{
	begin(json, key, true);
}

void mu_json_line_begin(mu_json *json, const char *key)
{
	begin(json, key, true);
	if (!json->line)
		json->line = json->depth;
}

void mu_json_object_end(mu_json *json)
{
	end(json, true);
}

void mu_json_array_begin(mu_json *json, const char *key)
{
	begin(json, key, false);
}

void mu_json_array_end(mu_json *json)
{
	end(json, false);
}

void mu_json_string(mu_json *json, const char *key, const char *text)
{
	if (!place(json, key))
		return;
	if (text)
		write_text(json->out, text);
	else
		fputs("null", json->out);
	value_ends(json);
}

/* A value whose text needs no escaping. */
static void bare(mu_json *json, const char *key, const char *text)
{
	if (!place(json, key))
		return;
	fputs(text, json->out);
	value_ends(json);
}

void mu_json_number(mu_json *json, const char *key, double value)
{
	char text[MU_NUMBER_SIZE];
	bare(json, key, isfinite(value) ? mu_number_text(value, text) : "null");
}

void mu_json_integer(mu_json *json, const char *key, int64_t value)
{
	char text[MU_NUMBER_SIZE];
	snprintf(text, sizeof text, "%" PRId64, value);
	bare(json, key, text);
}

void mu_json_unsigned(mu_json *json, const char *key, uint64_t value)
{
	char text[MU_NUMBER_SIZE];
	snprintf(text, sizeof text, "%" PRIu64, value);
	bare(json, key, text);
}

void mu_json_bool(mu_json *json, const char *key, bool value)
{
	bare(json, key, value ? "true" : "false");
}

void mu_json_null(mu_json *json, const char *key)
{
	bare(json, key, "null");
}

bool mu_json_finished(const mu_json *json)
{
	return json->done && !json->misused && !ferror(json->out);
}
