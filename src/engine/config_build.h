/* A configuration while it is being made, and the report that stays of it. Shared by src/engine/config*.c only.
 *
 * mural_config_resolve runs these steps; each file is one of them:
 *     config_options.c   arguments to items per row
 *     config_file.c      tree to items per row; unknown, misplaced, duplicate, old keys; types and ranges
 *     config_resolve.c   default < preset < file < argument, into mu_config_values; fields that follow from others
 *     config_weights.c   rows that weights tell
 *     config_batch.c     the batch triangle
 *     config_shares.c    unequal shares: their values, and the triangle with them
 *     config_check.c     what does not go together; of a schedule: config_check_schedule.c
 *     config_support.c   what Mural does not have
 *     config_report.c    warnings, origins
 * config_print.c and config_edit.c write configurations.
 * SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_CONFIG_BUILD_H
#define MU_ENGINE_CONFIG_BUILD_H

#include "base/hjson.h"
#include "engine/config_table.h"

#define MU_CONFIG_WORDS 512 /* bytes for an expectation or a found value in a message */

/* A value, checked: one item, or several for a list. */
typedef struct mu_config_items {
	size_t n;
	struct {
		bool boolean;
		int choice;
		mu_hjson_number number;
		const char *text; /* in the tree, the arguments or the table */
	} item[MURAL_MAX_CHANNELS];
	const mu_hjson_value *list; /* SHARES: whole numbers in the file; NULL: item[0].text */
} mu_config_items;

typedef enum mu_config_from {
	MU_FROM_DEFAULT,
	MU_FROM_PRESET,
	MU_FROM_FILE,
	MU_FROM_ARGUMENT,
	MU_FROM_DERIVED
} mu_config_from;

/* What was said about one row. */
typedef struct mu_config_given {
	const mu_hjson_value *node; /* in the file, or NULL */
	const mu_hjson_value *automatic; /* in the file with the value "auto", or NULL */
	mu_config_items file; /* valid when node is set and the row has a value */
	const char *option; /* argument as written, perhaps with =value, or NULL */
	mu_config_items argument; /* valid when option is set */
	mu_config_from from;
	char derived[192]; /* MU_FROM_DERIVED: from what */
} mu_config_given;

typedef struct mu_config_note {
	const char *code; /* "W-UNKNOWN" */
	const mu_hjson_value *node; /* NULL: `text` has its own place */
	size_t in_force; /* row whose final value is told, or MU_CONFIG_NO_ROW */
	char text[MU_CONFIG_WORDS];
} mu_config_note;

/* One item of a list from an option such as --beta1. */
typedef struct mu_config_item_argument {
	const char *option; /* as written, or NULL */
	mu_config_items items;
} mu_config_item_argument;

typedef struct mu_config_build {
	const mural_config_sources *sources;
	const char *file; /* from sources or --config, or NULL */
	char *text;
	mu_hjson *tree;
	mu_config_values values;
	mu_config_given given[MU_CONFIG_MAX_ROWS];
	mu_config_item_argument item_argument[4]; /* as mu_config_shorts */
	const mu_config_optimizer *optimizer; /* type in force */
	mural_schedule_kind schedule; /* kind in force */
	mu_config_note *notes;
	size_t n_notes;
	bool no_memory; /* a note was lost */
	mural_error *err;
} mu_config_build;

/* Resolved rows as text, for those who ask later. */
struct mural_config_report {
	char *origin[MU_CONFIG_MAX_ROWS];
	char *value
	        [MU_CONFIG_MAX_ROWS]; /* JSON of rows that the file gives and mural_config has no field for, or NULL */
	bool refused[MU_CONFIG_MAX_ROWS]; /* MU_CONFIG_CHANGES, and not the default */
	char **warnings;
	size_t n_warnings;
};

/* config_value.c */
typedef struct mu_config_verdict {
	bool coerced; /* accepted, but of another type */
	const char *hint; /* "" or what may help, for a message */
} mu_config_verdict;

bool mu_config_from_node(mu_config_items *items, size_t row, const mu_hjson_value *node, bool typed,
                         mu_config_verdict *verdict);
/* An argument, or a default. Lists are separated by commas. The text must outlive the items. */
bool mu_config_from_text(mu_config_items *items, size_t row, const char *text);
void mu_config_store(mu_config_values *values, size_t row, const mu_config_items *items);
bool mu_config_same(size_t row, const mu_config_items *a, const mu_config_items *b);
/* Does the value have a place in mu_config_values? */
bool mu_config_stored(size_t row);

/* config_shares.c */
bool mu_config_shares_from_node(mu_config_items *items, const mu_config_row *row, const mu_hjson_value *node);
bool mu_config_shares_from_text(mu_config_items *items, const mu_config_row *row, const char *text);
/* As they are kept: "5,1". */
void mu_config_shares_text(const mu_config_items *items, char *text, size_t bytes);
void mu_config_shares_write(FILE *out, const char *text);
/* Which shares are meant, checked against the ranks; MURAL_USAGE with the arithmetic. */
mural_status mu_config_settle_shares(mu_config_build *build);

/* config_words.c */
/* "a whole number above 0". */
const char *mu_config_expected(size_t row, char text[MU_CONFIG_WORDS]);
/* What the file has, as written: `False`, the string "1e-4", an object. */
const char *mu_config_found(const mu_hjson_value *node, char text[MU_CONFIG_WORDS]);
/* What may help with a value that does not fit, to follow it: "; drop the quotes". */
const char *mu_config_hint(const mu_config_row *row, const mu_hjson_value *node);
/* Splits "[0, 1)" into its bounds; above and below: the bound itself is outside. */
void mu_config_range(const char *range, double *low, bool *above, double *high, bool *below);
/* How many items a list may hold. */
size_t mu_config_room(const mu_config_row *row);
/* A bare text where a string is wanted is fine unless it took along the comma or brace that was meant to end it. */
bool mu_config_bare_is_whole(const mu_hjson_value *node);

/* config_print.c: a value as JSON on one line. */
void mu_config_write_value(FILE *out, const mu_config_values *values, size_t row);
mu_config_values mu_config_values_of(const mural_config *config);
void mu_config_write_node(FILE *out, const mu_hjson_value *node);
/* Is the row a parameter of the optimizer and schedule in force? */
bool mu_config_applies(size_t row, unsigned optimizer_bit, mural_schedule_kind schedule);

/* config_options.c */
mural_status mu_config_read_options(mu_config_build *build);
/* Bytes of an argument before its =value, for "%.*s". */
int mu_config_option_bytes(const char *option);

/* config_file.c */
mural_status mu_config_read_file(mu_config_build *build);
/* The text of a value given in the file, or NULL. */
const mu_hjson_value *mu_config_peek(const mu_config_build *build, const char *block, const char *name);

/* config_weights.c: rows that nobody gave, out of the weights that are to be used */
mural_status mu_config_take_weights(mu_config_build *build);

/* config_support.c */
void mu_config_warn_unsupported(mu_config_build *build);
/* Is this block in use: not disabled, and not all defaults? */
bool mu_config_active(const mu_config_build *build, size_t row);
/* The row's value in the file is not its default. */
bool mu_config_differs(const mu_config_build *build, size_t row);

/* config_batch.c */
mural_status mu_config_resolve_batch(mu_config_build *build);

/* config_check.c */
mural_status mu_config_check(mu_config_build *build);
/* config_check_schedule.c */
mural_status mu_config_check_schedule(mu_config_build *build);

/* config_report.c */
MU_PRINTF(5, 6)
void mu_config_warn(mu_config_build *build, const char *code, const mu_hjson_value *node, size_t in_force,
                    const char *format, ...);
/* A failure at a value of the file; the text begins with its key. */
MU_PRINTF(3, 4)
mural_status mu_config_fail(mu_config_build *build, const mu_hjson_value *node, const char *format, ...);
/* A failure about a row as it was given: argument, place in the file, or the file alone. */
MU_PRINTF(3, 4)
mural_status mu_config_fail_row(mu_config_build *build, size_t row, const char *format, ...);
/* Where a row's value comes from: "run.json:3:3: train_batch_size", "argument --lr", ... */
const char *mu_config_origin_text(const mu_config_build *build, size_t row, char text[MU_HJSON_WHERE]);
mural_status mu_config_make_report(mural_config_report **report, mu_config_build *build);

#endif
