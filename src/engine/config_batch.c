/* The batch triangle: train_batch_size = micro-batch x accumulation x ranks, as DeepSpeed derives it, but with every
 * remainder told. SPDX-License-Identifier: MIT */
#include "engine/config_build.h"
#include "engine/shares.h"

#include <stdio.h>
#include <string.h>

enum { TRAIN, MICRO, ACCUMULATION, SIDES };

#define PLACE 96 /* bytes for " (--micro-batch)" */
#define EVALUATION_BATCH 64 /* images at once when nothing is trained */

typedef struct triangle {
	size_t row[SIDES];
	bool given[SIDES];
	uint64_t value[SIDES], ranks;
} triangle;

static triangle begin(const mu_config_build *b)
{
	const mural_batch_config *batch = &b->values.config.batch;
	triangle t = {.row = {mu_config_find("train_batch_size"), mu_config_find("train_micro_batch_size_per_gpu"),
	                      mu_config_find("gradient_accumulation_steps")},
	              .value = {batch->train_batch, batch->micro_batch, batch->accumulation},
	              .ranks = (uint64_t)b->sources->ranks};
	for (int i = 0; i < SIDES; i++)
		t.given[i] = b->given[t.row[i]].from == MU_FROM_FILE || b->given[t.row[i]].from == MU_FROM_ARGUMENT;
	return t;
}

/* " (line 3)", " (--batch)", "". */
static const char *place(const mu_config_build *b, size_t row, char text[PLACE])
{
	const mu_config_given *given = &b->given[row];
	text[0] = '\0';
	if (given->from == MU_FROM_ARGUMENT)
		snprintf(text, PLACE, " (%.*s)", mu_config_option_bytes(given->option), given->option);
	else if (given->from == MU_FROM_FILE)
		snprintf(text, PLACE, " (line %u)", mu_hjson_line(b->tree, given->node));
	return text;
}

/* Neither of the two sizes. Names what is there instead: "auto", or the accumulation alone. */
static mural_status fail_missing(mu_config_build *b, const triangle *t)
{
	char where[3 * MU_HJSON_WHERE] = "", one[MU_HJSON_WHERE], at[PLACE], only[96] = "";
	bool automatic = false;
	for (int i = 0; i < SIDES; i++) {
		const mu_hjson_value *v = b->given[t->row[i]].automatic;
		if (!v || t->given[i])
			continue;
		size_t used = strlen(where);
		snprintf(where + used, sizeof where - used, "%s%s = \"auto\"", used ? "\n" : "",
		         mu_hjson_where(b->tree, v, one));
		automatic = true;
	}
	if (automatic)
		return mu_fail(b->err, MURAL_USAGE, where,
		               "train_batch_size, train_micro_batch_size_per_gpu, gradient_accumulation_steps: "
		               "expected numbers in the "
		               "file or on the command line (--batch, --micro-batch, --accumulation), got \"auto\", "
		               "which the others "
		               "do not settle");
	if (t->given[ACCUMULATION])
		snprintf(only, sizeof only, " (only gradient_accumulation_steps %llu%s)",
		         (unsigned long long)t->value[ACCUMULATION], place(b, t->row[ACCUMULATION], at));
	return mu_fail(b->err, MURAL_USAGE, b->file ? b->file : "command line",
	               "expected train_batch_size or train_micro_batch_size_per_gpu%s, got neither%s",
	               b->file ? " in the file, or --batch or --micro-batch" : " (--batch or --micro-batch)", only);
}

/* "; the nearest are 48 and 72" multiples of the divisor. */
static void list_nearest(uint64_t train, uint64_t divisor, char *text, size_t bytes)
{
	uint64_t below = train / divisor * divisor, above;
	if (__builtin_add_overflow(below, divisor, &above))
		snprintf(text, bytes, "; the nearest is %llu", (unsigned long long)below);
	else if (below == 0)
		snprintf(text, bytes, "; the smallest is %llu", (unsigned long long)above);
	else
		snprintf(text, bytes, "; the nearest are %llu and %llu", (unsigned long long)below,
		         (unsigned long long)above);
}

/* train is not a multiple of `side` x ranks, where side is micro or accumulation (or neither was given). */
static mural_status fail_multiple(mu_config_build *b, const triangle *t, int side)
{
	char at[PLACE], by[128] = "", product[32] = "2^64 or more", nearest[80] = "";
	uint64_t divisor = t->ranks;
	bool small = !t->given[side] || !__builtin_mul_overflow(t->ranks, t->value[side], &divisor);
	if (t->given[side])
		snprintf(by, sizeof by, "%s %llu%s x ", side == MICRO ? "micro-batch" : "accumulation",
		         (unsigned long long)t->value[side], place(b, t->row[side], at));
	if (small) {
		snprintf(product, sizeof product, "%llu", (unsigned long long)divisor);
		list_nearest(t->value[TRAIN], divisor, nearest, sizeof nearest);
	}
	return mu_config_fail_row(b, t->row[TRAIN], "expected a multiple of %sranks (world size) %llu = %s, got %llu%s",
	                          by, (unsigned long long)t->ranks, product, (unsigned long long)t->value[TRAIN],
	                          nearest);
}

/* "; 4 ranks would fit, or gradient_accumulation_steps 12": what makes the three agree, one change each. */
static void list_choices(const triangle *t, uint64_t product, char *text, size_t bytes)
{
	const uint64_t train = t->value[TRAIN], micro = t->value[MICRO], steps = t->value[ACCUMULATION];
	const struct {
		const char *before, *after;
		uint64_t from, by;
	} choices[] = {{"", train == micro * steps ? " rank" : " ranks", train, micro * steps},
	               {"gradient_accumulation_steps ", "", train, micro * t->ranks},
	               {"train_micro_batch_size_per_gpu ", "", train, steps * t->ranks},
	               {"train_batch_size ", "", product, 1}};
	for (size_t i = 0, used = 0; i < sizeof choices / sizeof *choices && used < bytes; i++)
		if (choices[i].from % choices[i].by == 0)
			used += (size_t)snprintf(text + used, bytes - used, "%s%s%llu%s%s", used ? ", or " : "; ",
			                         choices[i].before,
			                         (unsigned long long)(choices[i].from / choices[i].by),
			                         choices[i].after, used ? "" : " would fit");
}

static mural_status fail_product(mu_config_build *b, const triangle *t, uint64_t product)
{
	char micro[PLACE], steps[PLACE], fits[256] = "";
	list_choices(t, product, fits, sizeof fits);
	return mu_config_fail_row(
	        b, t->row[TRAIN],
	        "expected train_micro_batch_size_per_gpu %llu%s x gradient_accumulation_steps %llu%s x ranks "
	        "(world size) %llu = %llu, got %llu%s",
	        (unsigned long long)t->value[MICRO], place(b, t->row[MICRO], micro),
	        (unsigned long long)t->value[ACCUMULATION], place(b, t->row[ACCUMULATION], steps),
	        (unsigned long long)t->ranks, (unsigned long long)product, (unsigned long long)t->value[TRAIN], fits);
}

static mural_status multiply(mu_config_build *b, const triangle *t, uint64_t *product)
{
	if (__builtin_mul_overflow(t->value[MICRO], t->value[ACCUMULATION], product) ||
	    __builtin_mul_overflow(*product, t->ranks, product))
		return mu_config_fail_row(b, t->row[MICRO],
		                          "expected a batch of less than 2^64 images, got %llu x %llu x %llu ranks",
		                          (unsigned long long)t->value[MICRO],
		                          (unsigned long long)t->value[ACCUMULATION], (unsigned long long)t->ranks);
	return MURAL_OK;
}

/* train / (side x ranks), which must leave no remainder. */
static mural_status divide(mu_config_build *b, triangle *t, int side, int result)
{
	uint64_t divisor;
	if (__builtin_mul_overflow(t->value[side], t->ranks, &divisor) || t->value[TRAIN] % divisor)
		return fail_multiple(b, t, side);
	t->value[result] = t->value[TRAIN] / divisor;
	return MURAL_OK;
}

static mural_status solve(mu_config_build *b, triangle *t)
{
	if (!t->given[TRAIN] && !t->given[MICRO])
		return fail_missing(b, t);
	if (!t->given[ACCUMULATION] && !(t->given[TRAIN] && t->given[MICRO]))
		t->value[ACCUMULATION] = 1;
	if (!t->given[TRAIN])
		return multiply(b, t, &t->value[TRAIN]);
	if (!t->given[MICRO])
		return divide(b, t, ACCUMULATION, MICRO);
	if (!t->given[ACCUMULATION])
		return divide(b, t, MICRO, ACCUMULATION);
	uint64_t product;
	MU_TRY(multiply(b, t, &product));
	return product == t->value[TRAIN] ? MURAL_OK : fail_product(b, t, product);
}

/* How a side came about. An "auto" that was settled by the others is said aloud. */
static void tell_derived(mu_config_build *b, const triangle *t, int side)
{
	mu_config_given *given = &b->given[t->row[side]];
	bool one = side == ACCUMULATION && !(t->given[TRAIN] && t->given[MICRO]);
	if (one && !given->automatic)
		return; /* 1 is the default */
	given->from = MU_FROM_DERIVED;
	if (one)
		snprintf(given->derived, sizeof given->derived, "derived: nothing else asks for more");
	else
		snprintf(given->derived, sizeof given->derived, "derived from %s with %llu rank%s",
		         side == TRAIN   ? "micro-batch x accumulation"
		         : side == MICRO ? "train_batch_size / accumulation"
		                         : "train_batch_size / micro-batch",
		         (unsigned long long)t->ranks, t->ranks == 1 ? "" : "s");
	if (given->automatic)
		mu_config_warn(b, "W-AUTO", given->automatic, t->row[side], "\"auto\" was %s", given->derived);
}

/* Nothing is trained: images at once per rank are all that counts. */
static mural_status settle_evaluation(mu_config_build *b, triangle *t)
{
	if (!t->given[MICRO])
		t->value[MICRO] = EVALUATION_BATCH;
	t->value[ACCUMULATION] = 1;
	MU_TRY(multiply(b, t, &t->value[TRAIN]));
	for (int i = 0; i < SIDES; i++)
		if (i != MICRO || !t->given[i]) {
			mu_config_given *given = &b->given[t->row[i]];
			given->from = MU_FROM_DERIVED;
			snprintf(given->derived, sizeof given->derived, "derived: nothing is trained");
		}
	b->values.config.batch = (mural_batch_config){t->value[TRAIN], t->value[MICRO], 1};
	return MURAL_OK;
}

mural_status mu_config_resolve_batch(mu_config_build *b)
{
	triangle t = begin(b);
	mu_shares_kind kind = MU_SHARES_EQUAL;
	mu_shares_kind_of(b->values.config.balance.shares, &kind);
	if (b->sources->evaluation)
		return settle_evaluation(b, &t);
	if (kind != MU_SHARES_EQUAL)
		return mu_config_settle_shares(b);
	MU_TRY(solve(b, &t));
	for (int i = 0; i < SIDES; i++)
		if (!t.given[i])
			tell_derived(b, &t, i);
	b->values.config.batch = (mural_batch_config){t.value[TRAIN], t.value[MICRO], t.value[ACCUMULATION]};
	return MURAL_OK;
}
