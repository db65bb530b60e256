/* The configuration file: from its tree to one checked value per row. Every key is either a row, an old name of one, a
 * comment (`_...`), or told to the user: DeepSpeed's silence about misspelt keys is what this file is against.
 * SPDX-License-Identifier: MIT */
#include "engine/config_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/nearest.h"
#include "engine/config_unknown.h"

#define MOST_BYTES ((size_t)1 << 20) /* a configuration is some kilobytes: this is a mistaken file */
#define MOST_DUPLICATES_TEXT 600 /* bytes of "key on lines 1 and 2" after which the rest is left out */

const mu_hjson_value *mu_config_peek(const mu_config_build *b, const char *block, const char *name)
{
	const mu_hjson_value *root = b->tree ? mu_hjson_root(b->tree) : NULL;
	const mu_hjson_value *object = root ? mu_hjson_member(root, block) : NULL;
	const mu_hjson_value *value = object ? mu_hjson_member(object, name) : NULL;
	return value && value->kind == MU_HJSON_STRING && strcmp(value->text, "auto") ? value : NULL;
}

bool mu_config_applies(size_t row, unsigned optimizer_bit, mural_schedule_kind schedule)
{
	unsigned kinds = mu_config_rows[row].kinds;
	if (kinds == 0)
		return true;
	if (!strncmp(mu_config_rows[row].key, "optimizer.", 10))
		return kinds & optimizer_bit;
	return kinds & 1u << schedule;
}

/* "fp16.hysteresis on lines 5 and 7 (2, 4)", once per repeated key. */
static void list_duplicates(const mu_config_build *b, const mu_hjson_value *value, char *text, size_t bytes,
                            char *where, size_t where_bytes)
{
	for (const mu_hjson_value *v = value->first; v && strlen(text) < MOST_DUPLICATES_TEXT; v = v->next) {
		if (v->earlier) {
			char path[MU_HJSON_PATH], place[MU_HJSON_WHERE], found[2][MU_CONFIG_WORDS];
			size_t used = strlen(text), where_used = strlen(where);
			snprintf(text + used, bytes - used, "%s%s on lines %u and %u (%s, %s)", used ? "; " : "",
			         mu_hjson_path(v, path), mu_hjson_line(b->tree, v->earlier), mu_hjson_line(b->tree, v),
			         mu_config_found(v->earlier, found[0]), mu_config_found(v, found[1]));
			snprintf(where + where_used, where_bytes - where_used, "%s%s", where_used ? "\n" : "",
			         mu_hjson_where(b->tree, v, place));
		}
		list_duplicates(b, v, text, bytes, where, where_bytes);
	}
}

static mural_status check_duplicates(mu_config_build *b)
{
	char text[900] = "", where[MU_HJSON_WHERE] = "";
	list_duplicates(b, mu_hjson_root(b->tree), text, sizeof text, where, sizeof where);
	return *text ? mu_fail(b->err, MURAL_USAGE, where, "expected each key once, got %s", text) : MURAL_OK;
}

static mural_status walk(mu_config_build *b, const mu_hjson_value *object, size_t block);

static bool is_typed(size_t row)
{
	size_t block = mu_config_block_of(row);
	return block != MU_CONFIG_NO_ROW && (mu_config_rows[block].flags & MU_CONFIG_TYPED);
}

/* "auto" in quotes, where it is not one of the row's own words. */
static bool is_automatic(size_t row, const mu_hjson_value *v)
{
	mu_config_items own;
	mu_config_verdict verdict;
	const mu_config_row *r = &mu_config_rows[row];
	if (v->kind != MU_HJSON_STRING || !v->quoted || strcmp(v->text, "auto") || r->type == MU_CONFIG_BLOCK ||
	    r->type == MU_CONFIG_ANY || r->type == MU_CONFIG_SHARES ||
	    (r->type == MU_CONFIG_TEXT && !strncmp(r->key, "mural.", 6)))
		return false;
	return r->type != MU_CONFIG_CHOICE || !mu_config_from_node(&own, row, v, true, &verdict);
}

/* One spelling of a key only: alias and name, or old and new. */
static mural_status check_once(mu_config_build *b, size_t row, const mu_hjson_value *v)
{
	const mu_config_given *given = &b->given[row];
	const mu_hjson_value *other = given->node ? given->node : given->automatic;
	if (!other)
		return MURAL_OK;
	char path[MU_HJSON_PATH];
	return mu_config_fail(b, v, "expected one of the two names of %s, got both: %s is on line %u",
	                      mu_config_rows[row].key, mu_hjson_path(other, path), mu_hjson_line(b->tree, other));
}

static mural_status check_optimizer(mu_config_build *b, size_t row, const mu_hjson_value *v)
{
	if (strcmp(mu_config_rows[row].key, "optimizer.type") || mu_config_find_optimizer(v->text))
		return MURAL_OK;
	return mu_config_unknown_optimizer(b, v, v->text);
}

/* A parameter that the optimizer or schedule in force does not have. *skip: it was another one in the file. */
static mural_status check_applies(mu_config_build *b, size_t row, const mu_hjson_value *v, bool *skip)
{
	const char *key = mu_config_rows[row].key;
	bool of_optimizer = !strncmp(key, "optimizer.", 10), own = !strncmp(key, "mural.", 6);
	*skip = false;
	if (mu_config_applies(row, b->optimizer->bit, b->schedule) ||
	    (of_optimizer && b->optimizer->bit == MU_OPT_FOREIGN))
		return MURAL_OK;
	size_t type = mu_config_find(of_optimizer ? "optimizer.type" : "scheduler.type");
	size_t own_type = mu_config_find("mural.schedule");
	bool overridden = b->given[type].option || (!of_optimizer && b->given[own_type].option);
	if (!overridden && !own)
		return mu_config_unknown_parameter(b, row, v);
	*skip = true;
	if (row == type || row == own_type)
		return MURAL_OK;
	mu_config_warn(b, "W-NOEFFECT", v, MU_CONFIG_NO_ROW, "%s",
	               overridden ? "overridden with its type by an argument"
	                          : "works with the schedule \"cosine\" only, ignored");
	return MURAL_OK;
}

/* A value for a row that is no block. */
static mural_status take_value(mu_config_build *b, size_t row, const mu_hjson_value *v)
{
	char expected[MU_CONFIG_WORDS], found[MU_CONFIG_WORDS];
	mu_config_given *given = &b->given[row];
	mu_config_verdict verdict;
	bool skip;
	MU_TRY(check_once(b, row, v));
	if (is_automatic(row, v)) {
		given->automatic = v;
		return MURAL_OK;
	}
	if (v->kind == MU_HJSON_NULL && (mu_config_rows[row].flags & MU_CONFIG_NULL))
		return MURAL_OK;
	if (!mu_config_from_node(&given->file, row, v, is_typed(row), &verdict))
		return mu_config_fail(b, v, "expected %s, got %s%s", mu_config_expected(row, expected),
		                      mu_config_found(v, found), verdict.hint);
	MU_TRY(check_optimizer(b, row, v));
	MU_TRY(check_applies(b, row, v, &skip));
	if (skip)
		return MURAL_OK;
	given->node = v;
	if (verdict.coerced)
		mu_config_warn(b, "W-COERCED", v, row, "expected %s, got %s, read as such",
		               mu_config_expected(row, expected), mu_config_found(v, found));
	return MURAL_OK;
}

/* "zero_optimization": true is stage 1 of old; allgather_size then stood at the top level. */
static mural_status take_old_zero(mu_config_build *b, size_t row, const mu_hjson_value *v)
{
	size_t stage = mu_config_find("zero_optimization.stage"),
	       gather = mu_config_find("zero_optimization.allgather_bucket_size");
	b->given[row].node = v;
	b->given[stage].node = v;
	b->given[stage].file = (mu_config_items){.n = 1};
	b->given[stage].file.item[0].number = (mu_hjson_number){v->boolean, true, false, v->boolean};
	mu_config_warn(b, "W-DEPRECATED", v, MU_CONFIG_NO_ROW, "expected an object, got %s, read as stage %d",
	               v->boolean ? "true" : "false", v->boolean);
	const mu_hjson_value *old = mu_hjson_member(v->parent, "allgather_size");
	if (!old)
		return MURAL_OK;
	mu_config_warn(b, "W-DEPRECATED", old, gather,
	               "old name of zero_optimization.allgather_bucket_size, read as that");
	return take_value(b, gather, old);
}

static mural_status take_block(mu_config_build *b, size_t row, const mu_hjson_value *v)
{
	char expected[MU_CONFIG_WORDS], found[MU_CONFIG_WORDS];
	MU_TRY(check_once(b, row, v));
	if (v->kind == MU_HJSON_BOOL && !strcmp(mu_config_rows[row].key, "zero_optimization"))
		return take_old_zero(b, row, v);
	if (v->kind == MU_HJSON_NULL && (mu_config_rows[row].flags & MU_CONFIG_NULL))
		return MURAL_OK;
	if (v->kind != MU_HJSON_OBJECT)
		return mu_config_fail(b, v, "expected %s, got %s", mu_config_expected(row, expected),
		                      mu_config_found(v, found));
	b->given[row].node = v;
	return walk(b, v, row);
}

static mural_status take(mu_config_build *b, size_t row, const mu_hjson_value *v)
{
	return mu_config_rows[row].type == MU_CONFIG_BLOCK ? take_block(b, row, v) : take_value(b, row, v);
}

/* cpu_offload: true is offload_optimizer.device "cpu". */
static mural_status take_old_switch(mu_config_build *b, const mu_config_old *old, const mu_hjson_value *v)
{
	size_t row = mu_config_find(old->now);
	char found[MU_CONFIG_WORDS];
	bool on = v->kind == MU_HJSON_BOOL ? v->boolean : v->kind == MU_HJSON_STRING && !strcmp(v->text, "true");
	if (v->kind == MU_HJSON_STRING && v->quoted && !strcmp(v->text, "auto"))
		return MURAL_OK;
	if (!on && v->kind != MU_HJSON_BOOL && !(v->kind == MU_HJSON_STRING && v->quoted && !strcmp(v->text, "false")))
		return mu_config_fail(b, v, "expected true or false, got %s", mu_config_found(v, found));
	MU_TRY(check_once(b, row, v));
	mu_config_from_text(&b->given[row].file, row, on ? old->when_true : mu_config_rows[row].fallback);
	b->given[row].node = v;
	return MURAL_OK;
}

static mural_status take_old(mu_config_build *b, const mu_config_old *old, const mu_hjson_value *v)
{
	const mu_hjson_value *new = old->sibling ? mu_hjson_member(v->parent, old->sibling) : NULL;
	if (new)
		return mu_config_fail(b, v, "expected either this old name or %s, got both: %s is on line %u", old->now,
		                      new->key, mu_hjson_line(b->tree, new));
	if (!old->now) {
		mu_config_warn(b, "W-DEPRECATED", v, MU_CONFIG_NO_ROW, "has no effect any more");
		return MURAL_OK;
	}
	size_t row = mu_config_find(old->now);
	if (old->when_true)
		MU_TRY(take_old_switch(b, old, v));
	else
		MU_TRY(take(b, row, v));
	char found[MU_CONFIG_WORDS];
	mu_config_warn(b, "W-DEPRECATED", v, row, "old name of %s, got %s, read as that", old->now,
	               mu_config_found(v, found));
	return MURAL_OK;
}

static const mu_config_old *find_old(const mu_hjson_value *v)
{
	char path[MU_HJSON_PATH];
	mu_hjson_path(v, path);
	for (size_t i = 0; i < mu_config_old_count; i++)
		if (!strcmp(mu_config_olds[i].key, path))
			return &mu_config_olds[i];
	return NULL;
}

/* The old top-level key that goes with a boolean zero_optimization. */
static bool read_with_zero(const mu_hjson_value *v)
{
	const mu_hjson_value *zero = mu_hjson_member(v->parent, "zero_optimization");
	return !v->parent->parent && !strcmp(v->key, "allgather_size") && zero && zero->kind == MU_HJSON_BOOL;
}

static mural_status walk(mu_config_build *b, const mu_hjson_value *object, size_t block)
{
	for (const mu_hjson_value *v = object->first; v; v = v->next) {
		size_t row = mu_config_find_in(block, v->key);
		const mu_config_old *old = find_old(v);
		if (read_with_zero(v))
			continue;
		if (row != MU_CONFIG_NO_ROW)
			MU_TRY(take(b, row, v));
		else if (old)
			MU_TRY(take_old(b, old, v));
		else
			MU_TRY(mu_config_unknown_key(b, block, v));
	}
	return MURAL_OK;
}

/* The kinds decide which parameters there are, and may stand below them in the file. */
static void find_kinds(mu_config_build *b)
{
	const mu_hjson_value *optimizer = mu_config_peek(b, "optimizer", "type");
	const mu_hjson_value *scheduler = mu_config_peek(b, "scheduler", "type"),
	                     *own = mu_config_peek(b, "mural", "schedule");
	size_t theirs = mu_config_find("scheduler.type"), ours = mu_config_find("mural.schedule");
	size_t type = mu_config_find("optimizer.type");
	const char *name = b->given[type].option ? b->given[type].argument.item[0].text
	                   : optimizer           ? optimizer->text
	                                         : "AdamW";
	const mu_config_optimizer *found = mu_config_find_optimizer(name);
	mu_config_verdict verdict;
	mu_config_items items;
	b->optimizer = found ? found : mu_config_find_optimizer("AdamW");
	if (b->given[theirs].option)
		b->schedule = MURAL_SCHEDULE_WARMUP + b->given[theirs].argument.item[0].choice;
	else if (b->given[ours].option)
		b->schedule = MURAL_SCHEDULE_CONSTANT + b->given[ours].argument.item[0].choice;
	else if (scheduler && mu_config_from_node(&items, theirs, scheduler, false, &verdict))
		b->schedule = MURAL_SCHEDULE_WARMUP + items.item[0].choice;
	else if (own && mu_config_from_node(&items, ours, own, false, &verdict))
		b->schedule = MURAL_SCHEDULE_CONSTANT + items.item[0].choice;
}

/* Parameters of what? */
static mural_status check_type_given(mu_config_build *b, const char *block, const char *example)
{
	const mu_hjson_value *object = mu_hjson_member(mu_hjson_root(b->tree), block);
	if (object && mu_hjson_member(object, "params") && !mu_hjson_member(object, "type"))
		return mu_config_fail(b, object, "expected a type such as \"%s\" beside params, got none", example);
	return MURAL_OK;
}

static mural_status check_schedules(mu_config_build *b)
{
	const mu_hjson_value *root = mu_hjson_root(b->tree), *scheduler = mu_hjson_member(root, "scheduler");
	const mu_hjson_value *mural = mu_hjson_member(root, "mural"),
	                     *own = mural ? mu_hjson_member(mural, "schedule") : NULL;
	if (scheduler && own)
		return mu_config_fail(b, own, "expected one schedule, got this one and a scheduler block on line %u",
		                      mu_hjson_line(b->tree, scheduler));
	MU_TRY(check_type_given(b, "optimizer", "AdamW"));
	return check_type_given(b, "scheduler", "WarmupLR");
}

mural_status mu_config_read_file(mu_config_build *b)
{
	if (!b->file) {
		find_kinds(b);
		return MURAL_OK;
	}
	size_t bytes;
	char found[MU_CONFIG_WORDS];
	MU_TRY(mu_file_read(b->file, "configuration file", MOST_BYTES, MURAL_USAGE, &b->text, &bytes, b->err));
	mu_hjson_source source = {b->file, b->text, bytes, false, MURAL_USAGE};
	MU_TRY(mu_hjson_read(&b->tree, &source, b->err));
	const mu_hjson_value *root = mu_hjson_root(b->tree);
	if (root->kind != MU_HJSON_OBJECT)
		return mu_config_fail(b, root, "expected an object { ... }, got %s", mu_config_found(root, found));
	MU_TRY(check_duplicates(b));
	find_kinds(b);
	MU_TRY(walk(b, root, MU_CONFIG_NO_ROW));
	MU_TRY(check_schedules(b));
	mu_config_warn_unsupported(b);
	return MURAL_OK;
}
