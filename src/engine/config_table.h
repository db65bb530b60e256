/* The table of configuration keys: the only place that knows a key's name in the file, its option, type, range, default,
 * place in mural_config and who obeys it. The reader, the command line, --show-config, the help and
 * docs/configuration.md are all made from it.
 *
 * Rows are grouped by block, a block's row before those inside it. To add a key: add a row (and a field).
 * SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_CONFIG_TABLE_H
#define MU_ENGINE_CONFIG_TABLE_H

#include "mural/config.h"

typedef enum mu_config_type {
	MU_CONFIG_BLOCK, /* an object whose keys have rows */
	MU_CONFIG_ANY, /* known, but its inside is not looked at */
	MU_CONFIG_BOOL, /* bool */
	MU_CONFIG_WHOLE, /* 4 or 8 bytes, unsigned (or never negative) */
	MU_CONFIG_REAL, /* double */
	MU_CONFIG_TEXT, /* char array */
	MU_CONFIG_CHOICE, /* int: index into `range`, "a|b|c" */
	MU_CONFIG_REALS, /* doubles, as many as fit */
	MU_CONFIG_FLOATS, /* floats, up to as many as fit */
	MU_CONFIG_SIDES, /* two size_t; one number stands for both */
	MU_CONFIG_SET, /* unsigned: a bit for each word of `range`, "a|b|c", that the list has; [] is none */
	MU_CONFIG_SHARES /* char array: a word of shares.h, or whole numbers, which stand there as "5,1" */
} mu_config_type;

enum { /* flags of a row */
       MU_CONFIG_TYPED = 1, /* block: an unknown key is an error, a string may hold a number or boolean */
       MU_CONFIG_PARAMS = 2, /* block: constructor parameters; an unknown key is an error */
       MU_CONFIG_NULL = 4, /* null means the default */
       MU_CONFIG_FOLD = 8, /* a choice or name in any letter case */
       MU_CONFIG_INTEGER = 16, /* a REAL that must be whole */
       MU_CONFIG_SHAPE = 32, /* part of a model preset */
       MU_CONFIG_EVAL = 64, /* an evaluation obeys it, too */
       MU_CONFIG_NAME = 128, /* a text that does not read as a number: its option belongs to a row of numbers as well */
       MU_CONFIG_EACH =
	       256 /* a text of words of `range` between commas, one for each rank; a word may have a number, "cuda:1" */
};

typedef enum mu_config_support {
	MU_CONFIG_OBEYED, /* done, or there is nothing to do in Mural */
	MU_CONFIG_TUNES, /* only tunes or logs, not in Mural: W-UNSUPPORTED when it is not the default */
	MU_CONFIG_CHANGES /* changes the result, not in Mural: refused when it is not the default */
} mu_config_support;

/* Optimizer types, one bit each, for rows of optimizer.params. */
enum {
	MU_OPT_ADAM = 1 << 0,
	MU_OPT_ADAMW = 1 << 1,
	MU_OPT_ADAGRAD = 1 << 2,
	MU_OPT_LAMB = 1 << 3,
	MU_OPT_LION = 1 << 4,
	MU_OPT_ONEBIT_ADAM = 1 << 5,
	MU_OPT_ZERO_ONE_ADAM = 1 << 6,
	MU_OPT_ONEBIT_LAMB = 1 << 7,
	MU_OPT_MUON = 1 << 8,
	MU_OPT_SGD = 1 << 9,
	MU_OPT_FOREIGN = 1 << 10 /* a class of the framework: its parameters are not checked */
};

typedef struct mu_config_optimizer {
	const char *name; /* as DeepSpeed spells it */
	unsigned bit;
	const char *lr, *beta2, *eps; /* defaults that differ from Adam's, or NULL */
	bool exact; /* letter case matters */
} mu_config_optimizer;

extern const mu_config_optimizer mu_config_optimizers[];
extern const size_t mu_config_optimizer_count;

/* What rows point into: the public struct, and values that only lead to one of its fields. */
typedef struct mu_config_values {
	mural_config config;
	bool fp16, bf16; /* to engine.precision */
	bool adam_w_mode; /* to optimizer.kind */
	int param_type; /* must be the precision's */
	double muon_lr; /* to optimizer.lr */
	char optimizer_type[32]; /* as in the file */
	int scheduler; /* index of scheduler.type */
	int own_schedule; /* index of mural.schedule */
	char model[32]; /* mural.model */
} mu_config_values;

typedef struct mu_config_row {
	const char *key; /* dotted, in the file */
	const char *alias; /* DeepSpeed's other name of the last part, or NULL */
	const char *option; /* without --, or NULL. Several rows may share one: `kinds` tells them apart */
	mu_config_type type;
	unsigned flags;
	mu_config_support support;
	unsigned kinds; /* optimizer types (rows of optimizer.params) or 1 << schedule kinds; 0: all */
	const char *range; /* "[0, 1)", "(0, inf)", or the choices "a|b|c" */
	const char *fallback; /* the default as text; NULL: none, or told by `help` */
	size_t offset, size; /* in mu_config_values; size 0: kept as text only */
	const char *help;
} mu_config_row;

extern const mu_config_row mu_config_rows[];
extern const size_t mu_config_row_count;
#define MU_CONFIG_MAX_ROWS 600

/* An option that is not simply its row's name: one item of a list, or the negation of a boolean. */
typedef struct mu_config_short {
	const char *option, *key;
	size_t item; /* of the list */
	const char *help;
} mu_config_short;

extern const mu_config_short mu_config_shorts[];
extern const size_t mu_config_short_count;

/* A key that DeepSpeed renamed. A boolean `value` "cpu" means: true becomes that value, false none. */
typedef struct mu_config_old {
	const char *key; /* dotted */
	const char *now; /* dotted row that takes it, or NULL: it does nothing any more */
	const char *sibling; /* new key in the same object that must not be there as well, or NULL */
	const char *when_true; /* value that `true` stands for, or NULL: the value is taken as it is */
} mu_config_old;

extern const mu_config_old mu_config_olds[];
extern const size_t mu_config_old_count;

#define MU_CONFIG_NO_ROW ((size_t)-1)

/* Row of a dotted key; MU_CONFIG_NO_ROW if there is none. Aliases count. */
size_t mu_config_find(const char *key);
/* Row of `name` inside the block of row `block` (MU_CONFIG_NO_ROW: the top level). */
size_t mu_config_find_in(size_t block, const char *name);
/* Row of the block that holds this row; MU_CONFIG_NO_ROW: the top level. */
size_t mu_config_block_of(size_t row);
/* Last part of a row's key. */
const char *mu_config_name(size_t row);
/* Optimizer by name, or NULL. */
const mu_config_optimizer *mu_config_find_optimizer(const char *name);

#endif
