/* Unknown keys: nearest names, and the blocks where a misplaced key belongs. SPDX-License-Identifier: MIT */
#include "engine/config_unknown.h"

#include <stdio.h>
#include <string.h>

#include "base/nearest.h"

#define MOST_WARNINGS 100 /* then it is not a configuration, and hints for each key would take long */
#define MOST_LISTED 12 /* names in "expected one of ..."; a longer list helps nobody */

/* Names of the block that are valid now. */
static size_t names_in(const mu_config_build *b, size_t block, const char *names[MU_CONFIG_MAX_ROWS])
{
	size_t n = 0;
	for (size_t i = 0; i < mu_config_row_count; i++)
		if (mu_config_block_of(i) == block && mu_config_applies(i, b->optimizer->bit, b->schedule))
			names[n++] = mu_config_name(i);
	return n;
}

/* "one of enabled, immediate_grad_update", or "a known key" when there are too many. */
static const char *list_names(const char *const *names, size_t n, char text[MU_CONFIG_WORDS])
{
	if (n == 0)
		return strcpy(text, "no key here");
	if (n > MOST_LISTED)
		return strcpy(text, "a known key");
	size_t used = (size_t)snprintf(text, MU_CONFIG_WORDS, "one of ");
	for (size_t i = 0; i < n && used < MU_CONFIG_WORDS; i++) {
		int wrote = snprintf(text + used, MU_CONFIG_WORDS - used, "%s%s", i ? ", " : "", names[i]);
		used += wrote > 0 ? (size_t)wrote : 0;
	}
	return text;
}

static bool is_name_of(size_t row, const char *name)
{
	return !strcmp(mu_config_name(row), name) ||
	       (mu_config_rows[row].alias && !strcmp(mu_config_rows[row].alias, name));
}

/* Inside a block that Mural refuses? Nobody should be sent there. */
static bool is_in_refused(size_t row)
{
	for (size_t block = mu_config_block_of(row); block != MU_CONFIG_NO_ROW; block = mu_config_block_of(block))
		if (mu_config_rows[block].support == MU_CONFIG_CHANGES)
			return true;
	return false;
}

/* Blocks that have this very key: "fp16", "a or b", "a, b or c". Returns how many, and the first one's row. */
static size_t list_homes(const char *name, size_t not_in, char *text, size_t bytes, size_t *first)
{
	size_t homes[3], n = 0;
	for (size_t i = 0; i < mu_config_row_count && n < 3; i++)
		if (is_name_of(i, name) && mu_config_block_of(i) != not_in && !is_in_refused(i))
			homes[n++] = i;
	text[0] = '\0';
	for (size_t i = 0; i < n; i++) {
		size_t block = mu_config_block_of(homes[i]), used = strlen(text);
		snprintf(text + used, bytes - used, "%s%s",
		         i == 0      ? ""
		         : i + 1 < n ? ", "
		                     : " or ",
		         block == MU_CONFIG_NO_ROW ? "the top level" : mu_config_rows[block].key);
	}
	if (n)
		*first = homes[0];
	return n;
}

/* Row whose value answers "and what is in force?": for offload_optimizer, its device. */
static size_t telling_row(size_t row)
{
	if (mu_config_rows[row].type != MU_CONFIG_BLOCK)
		return row;
	size_t device = mu_config_find_in(row, "device");
	return device != MU_CONFIG_NO_ROW ? device : mu_config_find_in(row, "enabled");
}

/* Are all words of `name` in `candidate`, in order? micro_batch_per_gpu is in train_micro_batch_size_per_gpu. */
static bool is_shorter_form(const char *name, const char *candidate)
{
	size_t words = 0;
	while (*name) {
		size_t n = strcspn(name, "_"), found = 0;
		while (*candidate && !found) {
			size_t m = strcspn(candidate, "_");
			found = n > 0 && m == n && !memcmp(name, candidate, n);
			candidate += m + strspn(candidate + m, "_");
		}
		if (!found)
			return false;
		words++;
		name += n + strspn(name + n, "_");
	}
	return words > 1;
}

/* What may have been meant: a longer form with the same words, else the fewest edits; or NULL. */
static const char *nearest_key(const char *name, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (is_shorter_form(name, names[i]))
			return names[i];
	return mu_nearest(name, names, n);
}

static mural_status refuse_key(mu_config_build *b, size_t block, const mu_hjson_value *v)
{
	const char *names[MU_CONFIG_MAX_ROWS];
	char expected[MU_CONFIG_WORDS], homes[MU_CONFIG_WORDS];
	size_t n = names_in(b, block, names), home = MU_CONFIG_NO_ROW;
	const char *nearest = nearest_key(v->key, names, n);
	bool elsewhere = list_homes(v->key, block, homes, sizeof homes, &home) > 0;
	if (!strcmp(v->key, "max_grad_norm"))
		return mu_config_fail(b, v, "not a parameter any more: use the top level's gradient_clipping");
	return mu_config_fail(b, v, "expected %s, got this unknown key%s%s%s%s%s", list_names(names, n, expected),
	                      nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "",
	                      elsewhere ? "; it belongs in " : "", elsewhere ? homes : "");
}

mural_status mu_config_unknown_key(mu_config_build *b, size_t block, const mu_hjson_value *v)
{
	unsigned flags = block == MU_CONFIG_NO_ROW ? 0 : mu_config_rows[block].flags;
	bool ours = block != MU_CONFIG_NO_ROW && !strncmp(mu_config_rows[block].key, "mural", 5);
	bool checked = flags & (MU_CONFIG_TYPED | MU_CONFIG_PARAMS);
	if (v->key[0] == '_' && (!checked || ours))
		return MURAL_OK; /* a comment by custom */
	if ((flags & MU_CONFIG_PARAMS) && b->optimizer->bit == MU_OPT_FOREIGN &&
	    block == mu_config_find("optimizer.params"))
		return MURAL_OK; /* parameters of a class that Mural does not know */
	if (checked)
		return refuse_key(b, block, v);
	if (b->n_notes >= MOST_WARNINGS)
		return mu_config_fail(b, v, "more than %d unknown keys: expected a configuration", MOST_WARNINGS);
	char homes[MU_CONFIG_WORDS], found[MU_CONFIG_WORDS];
	size_t row = MU_CONFIG_NO_ROW, n_homes = list_homes(v->key, block, homes, sizeof homes, &row);
	mu_config_found(v, found);
	if (n_homes > 0) {
		mu_config_warn(b, "W-MISPLACED", v, n_homes == 1 ? telling_row(row) : MU_CONFIG_NO_ROW,
		               "belongs in %s, ignored here, got %s", homes, found);
		return MURAL_OK;
	}
	const char *names[MU_CONFIG_MAX_ROWS];
	size_t n = names_in(b, block, names);
	const char *nearest = nearest_key(v->key, names, n);
	row = nearest ? mu_config_find_in(block, nearest) : MU_CONFIG_NO_ROW;
	mu_config_warn(b, "W-UNKNOWN", v, row, "not a known key, ignored, got %s%s%s%s", found,
	               nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
	return MURAL_OK;
}

mural_status mu_config_unknown_parameter(mu_config_build *b, size_t row, const mu_hjson_value *v)
{
	const char *names[MU_CONFIG_MAX_ROWS];
	char expected[MU_CONFIG_WORDS];
	size_t n = names_in(b, mu_config_block_of(row), names);
	bool of_optimizer = !strncmp(mu_config_rows[row].key, "optimizer.", 10);
	const mu_hjson_value *type = mu_config_peek(b, of_optimizer ? "optimizer" : "scheduler", "type");
	if (!strcmp(v->key, "max_grad_norm"))
		return mu_config_fail(b, v, "not a parameter any more: use the top level's gradient_clipping");
	if (n == 0 && !type) {
		mu_config_expected(mu_config_find("scheduler.type"), expected);
		return mu_config_fail(b, v,
		                      "belongs to no schedule: expected scheduler.type (%s) beside params, got nothing",
		                      expected);
	}
	return mu_config_fail(b, v, "not a parameter of %s: expected %s",
	                      of_optimizer ? b->optimizer->name
	                      : type       ? type->text
	                                   : "this schedule",
	                      list_names(names, n, expected));
}

mural_status mu_config_unknown_optimizer(mu_config_build *b, const mu_hjson_value *node, const char *name)
{
	const char *names[32];
	char expected[MU_CONFIG_WORDS];
	size_t n = 0;
	for (; n < mu_config_optimizer_count && n < sizeof names / sizeof *names; n++)
		names[n] = mu_config_optimizers[n].name;
	const char *nearest = mu_nearest(name, names, n);
	list_names(names, MOST_LISTED, expected);
	if (!node)
		return mu_fail(b->err, MURAL_USAGE, "argument --optimizer",
		               "--optimizer: expected %s, got '%.40s'%s%s%s", expected, name,
		               nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
	return mu_config_fail(b, node, "expected %s, got the string \"%.40s\"%s%s%s", expected, name,
	                      nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
}
