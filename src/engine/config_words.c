/* What a row expects and what a file has instead, in words for a message; and the notation of ranges that both the words
 * and the check are made from. SPDX-License-Identifier: MIT */
#include "engine/config_build.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* The bound at *text: digits or inf, with a sign; moves past it. */
static double read_bound(const char **text)
{
	size_t bytes = strcspn(*text, ",])");
	mu_hjson_number number;
	double value;
	if (mu_hjson_number_read(&number, *text, bytes))
		value = number.value;
	else
		value = **text == '-' ? -INFINITY : INFINITY;
	*text += bytes;
	return value;
}

/* Splits "[0, 1)" into its bounds. */
void mu_config_range(const char *range, double *low, bool *above, double *high, bool *below)
{
	*above = range[0] == '(';
	range++;
	*low = read_bound(&range);
	range += strspn(range, ", ");
	*high = read_bound(&range);
	*below = *range == ')';
}

/* How many items a list may hold. */
size_t mu_config_room(const mu_config_row *row)
{
	size_t one = row->type == MU_CONFIG_FLOATS ? sizeof(float) : sizeof(double);
	return row->size / one;
}

/* A bare text where the caller wants a string: fine unless it took along what was meant to end it. */
bool mu_config_bare_is_whole(const mu_hjson_value *node)
{
	return node->raw_bytes > 0 && !strchr(",]}", node->raw[node->raw_bytes - 1]);
}

static bool looks_like_placeholder(const char *text)
{
	if (strstr(text, "${") || strstr(text, "{{") || text[0] == '<')
		return true;
	size_t n = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
	return n > 2 && (text[n] == '\0' || text[n] == ',');
}

const char *mu_config_hint(const mu_config_row *row, const mu_hjson_value *node)
{
	if (node->kind != MU_HJSON_STRING)
		return "";
	mu_hjson_number number;
	bool literal = !strncasecmp(node->text, "true", 4) || !strncasecmp(node->text, "false", 5);
	if (node->quoted) {
		bool is_number = mu_hjson_number_read(&number, node->text, strlen(node->text));
		if (row->type == MU_CONFIG_BOOL ? literal : is_number)
			return "; drop the quotes";
	} else if (row->type == MU_CONFIG_BOOL && literal) {
		return "; it must be lower case";
	}
	if (looks_like_placeholder(node->text))
		return "; an unexpanded placeholder?";
	if (node->quoted)
		return "";
	return mu_config_bare_is_whole(node) ? "; text stands in quotes"
	                                     : "; text without quotes runs to the end of its line, put it in quotes";
}

/* "above 0", "of 1 or more", "in [0, 1)" after "a number". */
static void describe_range(const char *range, bool whole, char *text, size_t bytes)
{
	double low, high;
	bool above, below;
	text[0] = '\0';
	if (!range)
		return;
	mu_config_range(range, &low, &above, &high, &below);
	if (isinf(low))
		return;
	if (!isinf(high))
		snprintf(text, bytes, " in %s", range);
	else if (above || (whole && low == 1))
		snprintf(text, bytes, " above 0");
	else
		snprintf(text, bytes, " of %g or more", low);
}

/* "token or mean", "fp32, fp16 or bf16". */
static void describe_choices(const char *choices, char *text, size_t bytes)
{
	size_t used = 0;
	while (*choices && used < bytes) {
		size_t n = strcspn(choices, "|");
		bool last = choices[n] == '\0' || !strchr(choices + n + 1, '|');
		int wrote = snprintf(text + used, bytes - used, "%.*s%s", (int)n, choices,
		                     choices[n] == '\0' ? ""
		                     : last             ? " or "
		                                        : ", ");
		used += wrote > 0 ? (size_t)wrote : 0;
		choices += n + (choices[n] == '|');
	}
}

/* A block, by the key that most of its kind begin with. */
static const char *describe_block(size_t block, char text[MU_CONFIG_WORDS])
{
	static const struct {
		const char *key, *example;
	} rows[] = {
	        {"enabled", "true"}, {"type", "\"...\""}, {"stage", "1"}, {"device", "\"cpu\""}, {"model", "\"...\""}};
	strcpy(text, "an object such as {}");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (mu_config_find_in(block, rows[i].key) != MU_CONFIG_NO_ROW) {
			snprintf(text, MU_CONFIG_WORDS, "an object such as { \"%s\": %s }", rows[i].key,
			         rows[i].example);
			break;
		}
	return text;
}

const char *mu_config_expected(size_t index, char text[MU_CONFIG_WORDS])
{
	const mu_config_row *row = &mu_config_rows[index];
	bool whole = row->type == MU_CONFIG_WHOLE || row->type == MU_CONFIG_SIDES || (row->flags & MU_CONFIG_INTEGER);
	char range[96];
	if (row->type == MU_CONFIG_CHOICE || (row->type == MU_CONFIG_TEXT && row->range)) {
		describe_choices(row->range, text, MU_CONFIG_WORDS);
		return text;
	}
	if (row->type == MU_CONFIG_SET) {
		int used = snprintf(text, MU_CONFIG_WORDS, "a list of ");
		describe_choices(row->range, text + used, MU_CONFIG_WORDS - (size_t)used);
		return text;
	}
	describe_range(row->range, whole, range, sizeof range);
	switch (row->type) {
	case MU_CONFIG_BLOCK: return describe_block(index, text);
	case MU_CONFIG_BOOL: return strcpy(text, "true or false");
	case MU_CONFIG_WHOLE: snprintf(text, MU_CONFIG_WORDS, "a whole number%s", range); break;
	case MU_CONFIG_REAL: snprintf(text, MU_CONFIG_WORDS, "a %snumber%s", whole ? "whole " : "", range); break;
	case MU_CONFIG_REALS: snprintf(text, MU_CONFIG_WORDS, "%zu numbers%s", mu_config_room(row), range); break;
	case MU_CONFIG_FLOATS: snprintf(text, MU_CONFIG_WORDS, "1 to %zu numbers%s", mu_config_room(row), range); break;
	case MU_CONFIG_SIDES: snprintf(text, MU_CONFIG_WORDS, "one or two whole numbers%s", range); break;
	case MU_CONFIG_TEXT:
		if (row->size > 0)
			snprintf(text, MU_CONFIG_WORDS, "text in quotes, at most %zu bytes", row->size - 1);
		else
			strcpy(text, "text in quotes");
		break;
	case MU_CONFIG_SHARES:
		snprintf(text, MU_CONFIG_WORDS,
		         "\"equal\", \"auto\", \"replay:FILE\" or a list of whole numbers, one for each rank");
		break;
	case MU_CONFIG_CHOICE:
	case MU_CONFIG_SET:
	case MU_CONFIG_ANY: strcpy(text, "a value"); break;
	}
	return text;
}

const char *mu_config_found(const mu_hjson_value *node, char text[MU_CONFIG_WORDS])
{
	size_t bytes = node->raw_bytes;
	if (node->kind == MU_HJSON_OBJECT)
		return strcpy(text, "an object");
	bool bare = node->kind == MU_HJSON_STRING && !node->quoted;
	while (bare && bytes > 1 && strchr(", \t", node->raw[bytes - 1]))
		bytes--;
	bool cut = bytes > 60;
	for (bytes = cut ? 60 : bytes; cut && bytes > 0 && ((unsigned char)node->raw[bytes] & 0xc0) == 0x80;)
		bytes--;
	snprintf(text, MU_CONFIG_WORDS, "%s%s%.*s%s%s",
	         node->kind == MU_HJSON_STRING && node->quoted ? "the string " : "", bare ? "`" : "", (int)bytes,
	         node->raw, cut ? "..." : "", bare ? "`" : "");
	for (char *p = text; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 127)
			*p = ' ';
	return text;
}
