/* Values of configuration rows: from the file or from text, checked against type and range, and into their field.
 * SPDX-License-Identifier: MIT */
#include "engine/config_build.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool mu_config_stored(size_t row)
{
	return mu_config_rows[row].size > 0;
}

static bool in_range(const char *range, double value)
{
	if (!range)
		return true;
	double low, high;
	bool above, below;
	mu_config_range(range, &low, &above, &high, &below);
	return (above ? value > low : value >= low) && (below ? value < high : value <= high);
}

/* Index of `text` in "a|b|c", or -1. */
static int find_choice(const char *choices, const char *text, bool fold)
{
	size_t bytes = strlen(text);
	for (int i = 0; *choices; i++) {
		size_t n = strcspn(choices, "|");
		if (n == bytes && !(fold ? strncasecmp(choices, text, n) : strncmp(choices, text, n)))
			return i;
		choices += n + (choices[n] == '|');
	}
	return -1;
}

/* The number in item i against the row's type and range. */
static bool check_number(mu_config_items *items, size_t i, const mu_config_row *row)
{
	const mu_hjson_number *n = &items->item[i].number;
	bool whole = row->type == MU_CONFIG_WHOLE || row->type == MU_CONFIG_SIDES || (row->flags & MU_CONFIG_INTEGER);
	if (whole && !n->whole)
		return false;
	if ((row->type == MU_CONFIG_WHOLE || row->type == MU_CONFIG_SIDES) && n->negative && n->magnitude > 0)
		return false;
	double kept = row->type == MU_CONFIG_FLOATS ? (double)(float)n->value : n->value;
	return isfinite(kept) && in_range(row->range, kept);
}

/* Each word between commas, with or without a number behind a colon. */
static bool check_words(const char *range, const char *text)
{
	const bool alone = !strchr(text, ',');
	char word[32];
	for (;;) {
		const size_t bytes = strcspn(text, ","), letters = strcspn(text, ",:");
		const size_t digits = letters < bytes ? strspn(text + letters + 1, "0123456789") : 0;
		if (letters >= sizeof word ||
		    (letters < bytes && (digits == 0 || digits > 4 || letters + 1 + digits != bytes)))
			return false;
		snprintf(word, sizeof word, "%.*s", (int)letters, text);
		if (find_choice(range, word, false) < 0 || (letters < bytes && strcmp(word, "cuda") != 0))
			return false;
		if (!alone && (strcmp(word, "auto") == 0 || strcmp(word, "mixed") == 0))
			return false; /* they are for all ranks */
		if (!text[bytes])
			return true;
		text += bytes + 1;
	}
}

static bool check_text(mu_config_items *items, const mu_config_row *row, mu_config_verdict *verdict)
{
	const char *text = items->item[0].text;
	if (row->type == MU_CONFIG_CHOICE) {
		items->item[0].choice = find_choice(row->range, text, row->flags & MU_CONFIG_FOLD);
		return items->item[0].choice >= 0;
	}
	if (row->size > 0 && strlen(text) >= row->size) {
		verdict->hint = "; this one is too long";
		return false;
	}
	char *end;
	if (row->flags & MU_CONFIG_NAME && *text && (strtod(text, &end), *end == '\0'))
		return false; /* also one that no row of numbers takes: .5 is a mistake and no folder */
	if (row->flags & MU_CONFIG_EACH)
		return check_words(row->range, text);
	return !row->range || find_choice(row->range, text, false) >= 0;
}

static bool is_list(mu_config_type type)
{
	return type == MU_CONFIG_REALS || type == MU_CONFIG_FLOATS || type == MU_CONFIG_SIDES;
}

/* Betas come in twos; means and deviations in any number; sides alone or in twos. */
static bool check_count(mu_config_items *items, const mu_config_row *row)
{
	if (row->type == MU_CONFIG_SIDES && items->n == 1) {
		items->item[1] = items->item[0];
		items->n = 2;
	}
	return row->type == MU_CONFIG_FLOATS ? items->n > 0 : items->n == mu_config_room(row);
}

/* A quoted string or a number that stands for a boolean, in a typed block. */
static bool coerce_bool(mu_config_items *items, const mu_hjson_value *node)
{
	if (node->kind == MU_HJSON_STRING && node->quoted) {
		items->item[0].boolean = !strcasecmp(node->text, "true");
		return items->item[0].boolean || !strcasecmp(node->text, "false");
	}
	items->item[0].boolean = node->number.magnitude == 1;
	return node->kind == MU_HJSON_NUMBER && node->number.whole && !node->number.negative &&
	       node->number.magnitude <= 1;
}

/* A quoted string or a boolean that stands for a number, in a typed block. */
static bool coerce_number(mu_hjson_number *number, const mu_config_row *row, const mu_hjson_value *node)
{
	if (node->kind == MU_HJSON_BOOL && row->type == MU_CONFIG_WHOLE) {
		*number = (mu_hjson_number){.value = node->boolean, .whole = true, .magnitude = node->boolean};
		return true;
	}
	return node->kind == MU_HJSON_STRING && node->quoted &&
	       mu_hjson_number_read(number, node->text, strlen(node->text));
}

static bool bool_from_node(mu_config_items *items, const mu_hjson_value *node, bool typed, mu_config_verdict *verdict)
{
	items->n = 1;
	items->item[0].boolean = node->boolean;
	if (node->kind == MU_HJSON_BOOL)
		return true;
	return verdict->coerced = typed && coerce_bool(items, node);
}

static bool number_from_node(mu_config_items *items, const mu_config_row *row, const mu_hjson_value *node, bool typed,
                             mu_config_verdict *verdict)
{
	size_t i = items->n++;
	items->item[i].number = node->number;
	if (node->kind != MU_HJSON_NUMBER) {
		verdict->coerced = typed && coerce_number(&items->item[i].number, row, node);
		if (!verdict->coerced)
			return false;
	}
	return check_number(items, i, row);
}

static bool text_from_node(mu_config_items *items, const mu_config_row *row, const mu_hjson_value *node,
                           mu_config_verdict *verdict)
{
	if (node->kind != MU_HJSON_STRING || (!node->quoted && !mu_config_bare_is_whole(node)))
		return false;
	items->n = 1;
	items->item[0].text = node->text;
	verdict->coerced = !node->quoted;
	return check_text(items, row, verdict);
}

static bool list_from_node(mu_config_items *items, const mu_config_row *row, const mu_hjson_value *node, bool typed,
                           mu_config_verdict *verdict)
{
	if (node->kind != MU_HJSON_ARRAY)
		return row->type == MU_CONFIG_SIDES && number_from_node(items, row, node, typed, verdict) &&
		       check_count(items, row);
	for (const mu_hjson_value *v = node->first; v; v = v->next)
		if (items->n >= mu_config_room(row) || !number_from_node(items, row, v, false, verdict))
			return false;
	return check_count(items, row);
}

static bool add_word(mu_config_items *items, const mu_config_row *row, const char *text)
{
	int word = find_choice(row->range, text, false);
	if (word < 0 || items->n == sizeof items->item / sizeof *items->item)
		return false;
	items->item[items->n++].choice = word;
	return true;
}

static bool set_from_node(mu_config_items *items, const mu_config_row *row, const mu_hjson_value *node)
{
	if (node->kind != MU_HJSON_ARRAY)
		return false;
	for (const mu_hjson_value *v = node->first; v; v = v->next)
		if (v->kind != MU_HJSON_STRING || !add_word(items, row, v->text))
			return false;
	return true;
}

static bool set_from_text(mu_config_items *items, const mu_config_row *row, const char *text)
{
	char word[64];
	while (*text) {
		size_t bytes = strcspn(text, ",");
		snprintf(word, sizeof word, "%.*s", bytes < sizeof word ? (int)bytes : 0, text);
		if (!add_word(items, row, word))
			return false;
		text += bytes + (text[bytes] == ',');
	}
	return true;
}

static uint64_t set_bits(const mu_config_items *items)
{
	uint64_t bits = 0;
	for (size_t i = 0; i < items->n; i++)
		bits |= (uint64_t)1 << items->item[i].choice;
	return bits;
}

bool mu_config_from_node(mu_config_items *items, size_t index, const mu_hjson_value *node, bool typed,
                         mu_config_verdict *verdict)
{
	const mu_config_row *row = &mu_config_rows[index];
	bool good = false;
	*verdict = (mu_config_verdict){.hint = ""};
	items->n = 0;
	switch (row->type) {
	case MU_CONFIG_BLOCK:
	case MU_CONFIG_ANY: return true;
	case MU_CONFIG_BOOL: good = bool_from_node(items, node, typed, verdict); break;
	case MU_CONFIG_WHOLE:
	case MU_CONFIG_REAL: good = number_from_node(items, row, node, typed, verdict); break;
	case MU_CONFIG_TEXT:
	case MU_CONFIG_CHOICE: good = text_from_node(items, row, node, verdict); break;
	case MU_CONFIG_REALS:
	case MU_CONFIG_FLOATS:
	case MU_CONFIG_SIDES: good = list_from_node(items, row, node, typed, verdict); break;
	case MU_CONFIG_SET: good = set_from_node(items, row, node); break;
	case MU_CONFIG_SHARES: good = mu_config_shares_from_node(items, row, node); break;
	}
	if (!good && !*verdict->hint)
		verdict->hint = mu_config_hint(row, node);
	return good;
}

static bool list_from_text(mu_config_items *items, const mu_config_row *row, const char *text)
{
	const char *separators = row->type == MU_CONFIG_SIDES ? ",xX" : ",";
	for (;;) {
		text += strspn(text, " ");
		size_t bytes = strcspn(text, separators);
		if (items->n >= mu_config_room(row) ||
		    !mu_hjson_number_read(&items->item[items->n].number, text, bytes) ||
		    !check_number(items, items->n, row))
			return false;
		items->n++;
		text += bytes;
		if (!*text)
			return check_count(items, row);
		text++;
	}
}

bool mu_config_from_text(mu_config_items *items, size_t index, const char *text)
{
	const mu_config_row *row = &mu_config_rows[index];
	mu_config_verdict unused = {.hint = ""};
	items->n = 0;
	if (is_list(row->type))
		return list_from_text(items, row, text);
	if (row->type == MU_CONFIG_SET)
		return set_from_text(items, row, text);
	if (row->type == MU_CONFIG_SHARES)
		return mu_config_shares_from_text(items, row, text);
	items->n = 1;
	if (row->type == MU_CONFIG_TEXT || row->type == MU_CONFIG_CHOICE) {
		items->item[0].text = text;
		return check_text(items, row, &unused);
	}
	if (row->type == MU_CONFIG_BOOL) {
		items->item[0].boolean = !strcmp(text, "true");
		return items->item[0].boolean || !strcmp(text, "false");
	}
	return mu_hjson_number_read(&items->item[0].number, text, strlen(text)) && check_number(items, 0, row);
}

/* An integer into a field of 1, 4 or 8 bytes. */
static void put_integer(void *at, size_t size, uint64_t value)
{
	uint32_t four = (uint32_t)value;
	bool one = value != 0;
	if (size == sizeof value)
		memcpy(at, &value, size);
	else if (size == sizeof four)
		memcpy(at, &four, size);
	else
		memcpy(at, &one, sizeof one);
}

void mu_config_store(mu_config_values *values, size_t index, const mu_config_items *items)
{
	const mu_config_row *row = &mu_config_rows[index];
	if (row->size == 0)
		return;
	char *at = (char *)values + row->offset;
	switch (row->type) {
	case MU_CONFIG_BOOL: put_integer(at, sizeof(bool), items->item[0].boolean); break;
	case MU_CONFIG_WHOLE: put_integer(at, row->size, items->item[0].number.magnitude); break;
	case MU_CONFIG_CHOICE: put_integer(at, row->size, (uint64_t)items->item[0].choice); break;
	case MU_CONFIG_TEXT: snprintf(at, row->size, "%s", items->item[0].text); break;
	case MU_CONFIG_SHARES: mu_config_shares_text(items, at, row->size); break;
	case MU_CONFIG_REAL:
	case MU_CONFIG_REALS:
		for (size_t i = 0; i < items->n; i++)
			((double *)(void *)at)[i] = items->item[i].number.value;
		break;
	case MU_CONFIG_FLOATS:
		for (size_t i = 0; i < items->n; i++)
			((float *)(void *)at)[i] = (float)items->item[i].number.value;
		break;
	case MU_CONFIG_SIDES:
		for (size_t i = 0; i < items->n; i++)
			((size_t *)(void *)at)[i] = (size_t)items->item[i].number.magnitude;
		break;
	case MU_CONFIG_SET: put_integer(at, row->size, set_bits(items)); break;
	case MU_CONFIG_BLOCK:
	case MU_CONFIG_ANY: break;
	}
}

static bool same_shares(const mu_config_items *a, const mu_config_items *b, size_t bytes)
{
	char one[sizeof(mural_balance_config)], other[sizeof one];
	mu_config_shares_text(a, one, bytes);
	mu_config_shares_text(b, other, bytes);
	return strcmp(one, other) == 0;
}

bool mu_config_same(size_t index, const mu_config_items *a, const mu_config_items *b)
{
	mu_config_type type = mu_config_rows[index].type;
	if (type == MU_CONFIG_SET)
		return set_bits(a) == set_bits(b);
	if (type == MU_CONFIG_SHARES)
		return same_shares(a, b, mu_config_rows[index].size);
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++) {
		bool same = type == MU_CONFIG_BOOL     ? a->item[i].boolean == b->item[i].boolean
		            : type == MU_CONFIG_CHOICE ? a->item[i].choice == b->item[i].choice
		            : type == MU_CONFIG_TEXT   ? !strcmp(a->item[i].text, b->item[i].text)
		                                       : a->item[i].number.value == b->item[i].number.value;
		if (!same)
			return false;
	}
	return true;
}
