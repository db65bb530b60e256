/* mural.balance: its values, and the batch triangle where shares are not equal.
 *
 * There the product of micro-batch, accumulation and ranks says nothing: a rank takes its share in as many micro-batches as it
 * needs, none larger than the bound. So the batch need not be a multiple of anything, and of the three sides the batch is what
 * counts, the micro-batch is a bound, and the accumulation follows.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "engine/config_build.h"
#include "engine/shares.h"

void mu_config_shares_text(const mu_config_items *items, char *text, size_t bytes)
{
	size_t used = 0;
	if (!items->list) {
		snprintf(text, bytes, "%s", items->item[0].text);
		return;
	}
	text[0] = '\0';
	for (const mu_hjson_value *v = items->list->first; v && used < bytes; v = v->next)
		used += (size_t)snprintf(text + used, bytes - used, "%s%llu", used ? "," : "",
		                         (unsigned long long)v->number.magnitude);
}

bool mu_config_shares_from_text(mu_config_items *items, const mu_config_row *row, const char *text)
{
	mu_shares_kind kind;
	items->n = 1;
	items->list = NULL;
	items->item[0].text = text;
	return strlen(text) < row->size && mu_shares_kind_of(text, &kind) &&
	       (kind != MU_SHARES_GIVEN || mu_shares_read(text, NULL, 0) <= MURAL_BALANCE_RANKS);
}

bool mu_config_shares_from_node(mu_config_items *items, const mu_config_row *row, const mu_hjson_value *node)
{
	char text[sizeof((mural_balance_config *)0)->shares];
	size_t n = 0;
	if (node->kind == MU_HJSON_STRING)
		return mu_config_shares_from_text(items, row, node->text);
	if (node->kind != MU_HJSON_ARRAY)
		return false;
	for (const mu_hjson_value *v = node->first; v; v = v->next)
		if (v->kind != MU_HJSON_NUMBER || !v->number.whole || v->number.negative || ++n > MURAL_BALANCE_RANKS ||
		    v->number.magnitude > MU_SHARES_LARGEST)
			return false;
	items->list = node;
	items->n = 1;
	mu_config_shares_text(items, text, sizeof text);
	return n > 0 && mu_shares_read(text, NULL, 0) == (int)n; /* all of them found room */
}

void mu_config_shares_write(FILE *out, const char *text)
{
	mu_shares_kind kind;
	const bool numbers = mu_shares_kind_of(text, &kind) && kind == MU_SHARES_GIVEN;
	mu_json json;
	if (numbers) {
		fprintf(out, "[%s]", text);
		return;
	}
	mu_json_init(&json, out, MU_JSON_COMPACT);
	mu_json_string(&json, NULL, text);
}

enum { TRAIN, MICRO, ACCUMULATION, SIDES };

typedef struct sides {
	size_t row[SIDES];
	bool given[SIDES];
	mural_batch_config *batch;
	uint64_t ranks, sum, largest; /* of explicit shares */
} sides;

static sides begin(mu_config_build *b)
{
	sides s = {.row = {mu_config_find("train_batch_size"), mu_config_find("train_micro_batch_size_per_gpu"),
	                   mu_config_find("gradient_accumulation_steps")},
	           .batch = &b->values.config.batch,
	           .ranks = (uint64_t)b->sources->ranks};
	for (int i = 0; i < SIDES; i++)
		s.given[i] = b->given[s.row[i]].from == MU_FROM_FILE || b->given[s.row[i]].from == MU_FROM_ARGUMENT;
	return s;
}

static uint64_t divide_up(uint64_t a, uint64_t b)
{
	return a / b + (a % b != 0);
}

/* "5 + 1 = 6"; long lists are cut. */
static void write_sum(const int *share_R, int n, uint64_t sum, char *text, size_t bytes)
{
	size_t used = 0;
	for (int r = 0; r < n && used + 40 < bytes; r++)
		used += (size_t)snprintf(text + used, bytes - used, "%s%d", r ? " + " : "", share_R[r]);
	snprintf(text + used, bytes - used, " = %llu", (unsigned long long)sum);
}

static mural_status read_given(mu_config_build *b, sides *s)
{
	int share_R[MURAL_BALANCE_RANKS];
	char sum[240];
	const int n = mu_shares_read(b->values.config.balance.shares, share_R, MURAL_BALANCE_RANKS);
	const size_t row = mu_config_find("mural.balance");
	for (int r = 0; r < n; r++) {
		s->sum += (uint64_t)share_R[r];
		if ((uint64_t)share_R[r] > s->largest)
			s->largest = (uint64_t)share_R[r];
	}
	write_sum(share_R, n, s->sum, sum, sizeof sum);
	if ((uint64_t)n != s->ranks)
		return mu_config_fail_row(b, row, "expected a share for each of the %llu ranks, got %d share%s (%s)",
		                          (unsigned long long)s->ranks, n, n == 1 ? "" : "s", sum);
	if (s->sum == 0)
		return mu_config_fail_row(b, row, "expected shares that sum to train_batch_size, got %s", sum);
	if (s->given[TRAIN] && s->sum != s->batch->train_batch)
		return mu_config_fail_row(b, row, "expected shares that sum to train_batch_size %llu, got %s",
		                          (unsigned long long)s->batch->train_batch, sum);
	return MURAL_OK;
}

/* Of all ranks, from what is given. */
static mural_status find_batch(mu_config_build *b, sides *s)
{
	const size_t row = mu_config_find("mural.balance");
	uint64_t each = s->batch->micro_batch;
	if (s->sum > 0) {
		s->batch->train_batch = s->sum;
	} else if (!s->given[TRAIN]) {
		if (!s->given[MICRO])
			return mu_config_fail_row(b, row,
			                          "expected train_batch_size or train_micro_batch_size_per_gpu "
			                          "(--batch or --micro-batch) with it, got neither");
		if ((s->given[ACCUMULATION] && __builtin_mul_overflow(each, s->batch->accumulation, &each)) ||
		    __builtin_mul_overflow(each, s->ranks, &s->batch->train_batch))
			s->batch->train_batch = UINT64_MAX;
	}
	if (s->batch->train_batch > MU_SHARES_LARGEST)
		return mu_config_fail_row(b, row, "expected a batch of at most %d images with it, got %llu",
		                          MU_SHARES_LARGEST, (unsigned long long)s->batch->train_batch);
	if (s->sum == 0 && s->batch->train_batch < s->ranks)
		return mu_config_fail_row(b, s->row[TRAIN],
		                          "expected at least an image for each of the %llu ranks, got %llu",
		                          (unsigned long long)s->ranks, (unsigned long long)s->batch->train_batch);
	return MURAL_OK;
}

static void derive(mu_config_build *b, const sides *s, int side, uint64_t value)
{
	mu_config_given *given = &b->given[s->row[side]];
	uint64_t *at[SIDES] = {&s->batch->train_batch, &s->batch->micro_batch, &s->batch->accumulation};
	if (s->given[side] && *at[side] == value)
		return;
	if (s->given[side])
		mu_config_warn(b, "W-NOEFFECT", given->node, s->row[side],
		               "with unequal shares a rank accumulates as many micro-batches as its share needs");
	*at[side] = value;
	given->from = MU_FROM_DERIVED;
	snprintf(given->derived, sizeof given->derived, "derived from mural.balance with %llu ranks",
	         (unsigned long long)s->ranks);
}

/* The largest share at the beginning, and the bound for those to come: twice an equal share leaves a fast rank room to take over
 * a slow one's images in as many micro-batches. */
static void find_others(mu_config_build *b, const sides *s)
{
	const uint64_t first = s->sum > 0 ? s->largest : divide_up(s->batch->train_batch, s->ranks);
	const uint64_t accumulation = s->given[ACCUMULATION] ? s->batch->accumulation : 1;
	uint64_t micro = divide_up(s->sum > 0 ? first : 2 * first, accumulation);
	if (micro > s->batch->train_batch)
		micro = s->batch->train_batch;
	if (!s->given[TRAIN])
		derive(b, s, TRAIN, s->batch->train_batch);
	if (!s->given[MICRO])
		derive(b, s, MICRO, micro);
	derive(b, s, ACCUMULATION, divide_up(first, s->batch->micro_batch));
}

mural_status mu_config_settle_shares(mu_config_build *b)
{
	sides s = begin(b);
	mu_shares_kind kind = MU_SHARES_EQUAL;
	mu_shares_kind_of(b->values.config.balance.shares, &kind);
	if (s.ranks > MURAL_BALANCE_RANKS)
		return mu_config_fail_row(b, mu_config_find("mural.balance"),
		                          "expected \"equal\" with more than %d ranks, got %llu ranks",
		                          MURAL_BALANCE_RANKS, (unsigned long long)s.ranks);
	if (kind == MU_SHARES_GIVEN)
		MU_TRY(read_given(b, &s));
	MU_TRY(find_batch(b, &s));
	find_others(b, &s);
	return MURAL_OK;
}
