/* The command line: --option value, --option=value, --boolean, --no-boolean. The last of repeated options counts.
 * SPDX-License-Identifier: MIT */
#include "engine/config_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"

#define LONGEST_OPTION 64
#define MAX_NAMES (2 * MU_CONFIG_MAX_ROWS)

/* Options that no row has: the file's name, and one word for the two precision blocks. */
static const char *const file_options[] = {"config", "deepspeed_config"};
static const char precision_option[] = "precision";
static const char *const precisions[] = {"fp32", "bf16", "fp16"};

typedef struct option {
	const char *argument; /* as written */
	char name[LONGEST_OPTION]; /* without --, no- and =value */
	const char *value; /* behind =, or the next argument; NULL: none */
	bool negated;
	size_t used; /* arguments */
} option;

int mu_config_option_bytes(const char *argument)
{
	size_t bytes = strcspn(argument, "=");
	return (int)(bytes < LONGEST_OPTION ? bytes : LONGEST_OPTION);
}

static bool is_file_option(const char *name)
{
	return !strcmp(name, file_options[0]) || !strcmp(name, file_options[1]);
}

static size_t find_option_row(const char *name, size_t from)
{
	for (size_t i = from; i < mu_config_row_count; i++)
		if (mu_config_rows[i].option && !strcmp(mu_config_rows[i].option, name))
			return i;
	return MU_CONFIG_NO_ROW;
}

static const mu_config_short *find_short(const char *name)
{
	for (size_t i = 0; i < mu_config_short_count; i++)
		if (!strcmp(mu_config_shorts[i].option, name))
			return &mu_config_shorts[i];
	return NULL;
}

static bool is_switch(const char *name)
{
	size_t row = find_option_row(name, 0);
	return row != MU_CONFIG_NO_ROW && mu_config_rows[row].type == MU_CONFIG_BOOL;
}

static mural_status unknown_option(mu_config_build *b, const char *argument)
{
	const char *names[MAX_NAMES];
	size_t n = 0;
	for (size_t i = 0; i < mu_config_row_count; i++)
		if (mu_config_rows[i].option)
			names[n++] = mu_config_rows[i].option;
	for (size_t i = 0; i < mu_config_short_count; i++)
		names[n++] = mu_config_shorts[i].option;
	names[n++] = file_options[0];
	names[n++] = precision_option;
	char where[LONGEST_OPTION + 32], name[LONGEST_OPTION];
	snprintf(name, sizeof name, "%.*s", (int)strcspn(argument, "="), argument);
	snprintf(where, sizeof where, "argument %.*s", LONGEST_OPTION, argument);
	const char *bare = name + strspn(name, "-");
	const char *nearest = mu_nearest(bare, names, n);
	if (*argument != '-')
		return mu_fail(b->err, MURAL_USAGE, where, "unexpected argument '%.64s': options begin with --",
		               argument);
	return mu_fail(b->err, MURAL_USAGE, where, "unknown option '%.64s'%s%s%s", name,
	               nearest ? ": did you mean --" : "", nearest ? nearest : "", nearest ? "?" : "");
}

static mural_status bad_value(mu_config_build *b, const option *o, const char *expected)
{
	char where[LONGEST_OPTION + 32];
	snprintf(where, sizeof where, "argument --%s", o->name);
	if (!o->value)
		return mu_fail(b->err, MURAL_USAGE, where, "--%s: expected %s, got nothing", o->name, expected);
	return mu_fail(b->err, MURAL_USAGE, where, "--%s: expected %s, got '%.80s'", o->name, expected, o->value);
}

/* Reads name and value at argument i. */
static mural_status split(mu_config_build *b, size_t i, option *o)
{
	const char *argument = b->sources->argv[i];
	*o = (option){.argument = argument, .used = 1};
	size_t bytes = strcspn(argument, "=");
	if (strncmp(argument, "--", 2) || bytes < 3 || bytes - 2 >= sizeof o->name)
		return unknown_option(b, argument);
	snprintf(o->name, sizeof o->name, "%.*s", (int)bytes - 2, argument + 2);
	if (!strncmp(o->name, "no-", 3) && is_switch(o->name + 3) && !argument[bytes]) {
		memmove(o->name, o->name + 3, strlen(o->name + 3) + 1);
		o->negated = true;
	} else if (argument[bytes] == '=') {
		o->value = argument + bytes + 1;
	} else if (!is_switch(o->name) && i + 1 < (size_t)b->sources->argc &&
	           strncmp(b->sources->argv[i + 1], "--", 2)) {
		o->value = b->sources->argv[i + 1];
		o->used = 2;
	}
	return MURAL_OK;
}

static void give(mu_config_build *b, size_t row, const option *o, const mu_config_items *items)
{
	b->given[row].option = o->argument;
	b->given[row].argument = *items;
}

static mural_status take_precision(mu_config_build *b, const option *o)
{
	static const char *const keys[] = {NULL, "bf16.enabled", "fp16.enabled"};
	size_t chosen = 3;
	for (size_t i = 0; i < 3; i++)
		if (o->value && !strcmp(precisions[i], o->value))
			chosen = i;
	if (chosen == 3)
		return bad_value(b, o, "fp32, bf16 or fp16");
	for (size_t i = 1; i < 3; i++) {
		mu_config_items items = {.n = 1, .item = {{.boolean = i == chosen}}};
		give(b, mu_config_find(keys[i]), o, &items);
	}
	return MURAL_OK;
}

static mural_status take_file(mu_config_build *b, const option *o)
{
	if (!o->value || !*o->value)
		return bad_value(b, o, "a configuration file");
	if (b->sources->file && strcmp(b->sources->file, o->value))
		return mu_fail(b->err, MURAL_USAGE, "argument --config",
		               "expected one configuration file, got '%.200s' and '%.200s'", b->sources->file,
		               o->value);
	b->file = o->value;
	return MURAL_OK;
}

/* --beta1 and the like: one item of a list. */
static mural_status take_item(mu_config_build *b, const option *o, const mu_config_short *one)
{
	size_t row = mu_config_find(one->key);
	char text[2 * LONGEST_OPTION], expected[MU_CONFIG_WORDS];
	mu_config_items both;
	snprintf(text, sizeof text, "%.60s,%.60s", o->value ? o->value : "", o->value ? o->value : "");
	if (!mu_config_from_text(&both, row, text)) {
		mu_config_expected(row, expected);
		const char *range = strstr(expected, " in ");
		char single[MU_CONFIG_WORDS + 16];
		snprintf(single, sizeof single, "a number%s", range ? range : "");
		return bad_value(b, o, single);
	}
	b->item_argument[one - mu_config_shorts] = (mu_config_item_argument){o->argument, both};
	return MURAL_OK;
}

/* Gives the value to every row of this option that takes it: --schedule belongs to two rows with different choices,
 * --min-lr to one per kind of schedule. */
static mural_status take_rows(mu_config_build *b, const option *o)
{
	char expected[2 * MU_CONFIG_WORDS] = "", more[MU_CONFIG_WORDS];
	bool taken = false, typed = is_switch(o->name);
	const char *text = o->value ? o->value : typed ? o->negated ? "false" : "true" : NULL;
	for (size_t row = find_option_row(o->name, 0); row != MU_CONFIG_NO_ROW;
	     row = find_option_row(o->name, row + 1)) {
		mu_config_items items;
		b->given[row].option = NULL; /* an earlier --schedule was of the other family */
		if (text && mu_config_from_text(&items, row, text)) {
			give(b, row, o, &items);
			taken = true;
		}
		mu_config_expected(row, more);
		char *quotes = strstr(more, " in quotes"); /* the shell takes them away */
		if (quotes)
			memmove(quotes, quotes + strlen(" in quotes"), strlen(quotes + strlen(" in quotes")) + 1);
		if (!strstr(expected, more)) {
			size_t used = strlen(expected);
			snprintf(expected + used, sizeof expected - used, "%s%s", used ? ", or " : "", more);
		}
	}
	return taken ? MURAL_OK : bad_value(b, o, expected);
}

/* Training options are welcome in the file that the training had; written by hand they are a misunderstanding. */
static mural_status refuse_training_option(mu_config_build *b, const option *o)
{
	char where[LONGEST_OPTION + 32];
	snprintf(where, sizeof where, "argument --%s", o->name);
	return mu_fail(b->err, MURAL_USAGE, where,
	               "--%s: does nothing in an evaluation; leave it out (`mural eval --help` lists what counts)",
	               o->name);
}

/* Does an evaluation look at this option? Those of no row, unknown ones included, are judged elsewhere. */
static bool counts_in_evaluation(const option *o, const mu_config_short *one)
{
	size_t row = one ? mu_config_find(one->key) : find_option_row(o->name, 0);
	return row == MU_CONFIG_NO_ROW || (mu_config_rows[row].flags & MU_CONFIG_EVAL);
}

mural_status mu_config_read_options(mu_config_build *b)
{
	b->file = b->sources->file;
	for (size_t i = 0; i < (size_t)b->sources->argc;) {
		option o;
		MU_TRY(split(b, i, &o));
		const mu_config_short *one = find_short(o.name);
		if (b->sources->evaluation && !counts_in_evaluation(&o, one))
			return refuse_training_option(b, &o);
		if (is_file_option(o.name))
			MU_TRY(take_file(b, &o));
		else if (!strcmp(o.name, precision_option))
			MU_TRY(take_precision(b, &o));
		else if (one)
			MU_TRY(take_item(b, &o, one));
		else if (find_option_row(o.name, 0) != MU_CONFIG_NO_ROW)
			MU_TRY(take_rows(b, &o));
		else
			return unknown_option(b, b->sources->argv[i]);
		i += o.used;
	}
	return MURAL_OK;
}
