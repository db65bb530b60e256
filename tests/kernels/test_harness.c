/* Does the differential harness see what it is there for? The reference with one row broken, each in another way; every
 * sabotage must be found and named. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/reference/element.h"
#include "support/differential.h"

static const mu_ops *const right = &mu_ops_reference;

/* Runs the table that `sabotage` made, on one row; what is said must contain `words`. */
static void expect(const mu_ops *table, const char *row, const char *words)
{
	char *said = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&said, &length);
	assert_non_null(out);
	const differential_options options = {.seed = 1, .trials = 64, .only = row, .out = out};
	const size_t failures = differential_run(table, &options);
	fclose(out);
	const bool found = strstr(said, words) != NULL, replays = strstr(said, "replay: MURAL_TEST_SEED=") != NULL;
	if (failures == 0 || !found || !replays)
		print_message("%s\n", said);
	free(said);
	assert_true(failures > 0);
	assert_true(found);
	assert_true(replays);
}

static void multiply(mu_dtype type, void *p, size_t i, double factor)
{
	mu_element_store(type, p, i, mu_element_load(type, p, i) * factor);
}

static mural_status wrong_patchify(mu_ops_context *c, const mu_patchify *op, mural_error *err)
{
	mu_patchify other = *op;
	other.cut_B = NULL;
	return right->patchify(c, &other, err);
}

static mural_status wrong_embed_forward(mu_ops_context *c, const mu_embed *op, mural_error *err)
{
	mu_embed other = *op;
	other.dropout.key.seed++;
	return right->embed_forward(c, &other, err);
}

static mural_status layernorm_does_not_add(mu_ops_context *c, const mu_layernorm *op, mural_error *err)
{
	for (size_t d = 0; d < op->width && op->d_w; d++)
		mu_element_store(op->type, op->d_w, d, 0);
	return right->layernorm_backward(c, op, err);
}

static mural_status linear_adds_to_output(mu_ops_context *c, const mu_linear *op, mural_error *err)
{
	const size_t n = op->rows * op->in;
	double *before = malloc(n * sizeof *before);
	for (size_t i = 0; i < n && op->d_x && before; i++)
		before[i] = mu_element_load(op->type, op->d_x, i);
	const mural_status status = right->linear_backward(c, op, err);
	for (size_t i = 0; i < n && op->d_x && before; i++)
		mu_element_add(op->type, op->d_x, i, before[i]);
	free(before);
	return status;
}

static mural_status linear_is_a_little_off(mu_ops_context *c, const mu_linear *op, mural_error *err)
{
	const mural_status status = right->linear_forward(c, op, err);
	for (size_t i = 0; i < op->rows * op->out; i++)
		multiply(op->type, op->y, i, 1 + 1e-5);
	return status;
}

static mural_status attention_changes_input(mu_ops_context *c, const mu_attention *op, mural_error *err)
{
	const mural_status status = right->attention_forward(c, op, err);
	multiply(op->type, (void *)op->qkv, 3, 2);
	return status;
}

static mural_status dropout_fails(mu_ops_context *c, const mu_dropout *op, mural_error *err)
{
	(void)c;
	(void)op;
	return mu_fail(err, MURAL_FAILED, NULL, "no more water");
}

static mural_status drop_path_keeps_all(mu_ops_context *c, const mu_drop_path *op, mural_error *err)
{
	mu_drop_path other = *op;
	other.rule.threshold = 0;
	return right->drop_path(c, &other, err);
}

static mural_status pool_forgets_the_last(mu_ops_context *c, const mu_pool *op, mural_error *err)
{
	const mural_status status = right->pool_forward(c, op, err);
	mu_element_store(op->type, op->y, op->images * op->width - 1, (double)NAN);
	return status;
}

static mural_status cross_entropy_forgets_labels(mu_ops_context *c, const mu_cross_entropy *op, mural_error *err)
{
	const double before = op->sums->label_range;
	const mural_status status = right->cross_entropy(c, op, err);
	op->sums->label_range = before;
	return status;
}

static mural_status settle_forgets_the_skipped(mu_ops_context *c, const mu_settle *op, mural_error *err)
{
	const double before = op->record->carried.skipped;
	const mural_status status = right->settle(c, op, err);
	op->record->carried.skipped = before;
	return status;
}

static mural_status adamw_without_bias2(mu_ops_context *c, const mu_adamw *op, mural_error *err)
{
	mu_adamw other = *op;
	mu_decision at = *op->at;
	at.bias2 = 1;
	other.at = &at;
	return right->adamw(c, &other, err);
}

static mural_status sum_squares_in_float(mu_ops_context *c, const mu_sum_squares *op, mural_error *err)
{
	const mural_status status = right->sum_squares(c, op, err);
	*op->sum = (float)*op->sum;
	return status;
}

/* Cuts instead of rounding. */
static mural_status cast_truncates(mu_ops_context *c, const mu_cast *op, mural_error *err)
{
	const mural_status status = right->cast(c, op, err);
	for (size_t i = 0; i < op->n && op->from_type == MU_F32 && op->to_type == MU_BF16; i++)
		((uint16_t *)op->to)[i] = (uint16_t)(((const uint32_t *)op->from)[i] >> 16);
	return status;
}

static mural_status accumulate_leaves_x(mu_ops_context *c, const mu_accumulate *op, mural_error *err)
{
	const double before = mu_element_load(op->type, op->x, 0);
	const mural_status status = right->accumulate(c, op, err);
	mu_element_store(op->type, op->x, 0, before);
	return status;
}

static mural_status sgd_without_nesterov(mu_ops_context *c, const mu_sgd *op, mural_error *err)
{
	mu_sgd other = *op;
	other.nesterov = false;
	return right->sgd(c, &other, err);
}

static mural_status lion_with_one_beta(mu_ops_context *c, const mu_lion *op, mural_error *err)
{
	mu_lion other = *op;
	mu_decision at = *op->at;
	at.beta2 = at.beta1;
	other.at = &at;
	return right->lion(c, &other, err);
}

static mural_status lamb_without_decay(mu_ops_context *c, const mu_lamb *op, mural_error *err)
{
	mu_lamb other = *op;
	other.decay = 0;
	return right->lamb(c, &other, err);
}

static mural_status momentum_without_nesterov(mu_ops_context *c, const mu_momentum *op, mural_error *err)
{
	mu_momentum other = *op;
	other.nesterov = false;
	return right->momentum(c, &other, err);
}

static mural_status newton_schulz_off_by_a_digit(mu_ops_context *c, const mu_newton_schulz *op, mural_error *err)
{
	mu_newton_schulz other = *op;
	other.b = op->b + 0.001;
	return right->newton_schulz(c, &other, err);
}

static mural_status tensor_norms_adds(mu_ops_context *c, const mu_tensor_norms *op, mural_error *err)
{
	const double before = op->squares[0];
	const mural_status status = right->tensor_norms(c, op, err);
	op->squares[0] += before;
	return status;
}

static mural_status apply_update_without_limit(mu_ops_context *c, const mu_apply_update *op, mural_error *err)
{
	mu_apply_update other = *op;
	other.max_ratio = 1e9;
	return right->apply_update(c, &other, err);
}

static mural_status ema_of_another_decay(mu_ops_context *c, const mu_ema *op, mural_error *err)
{
	mu_ema other = *op;
	mu_decision at = *op->at;
	at.ema_decay = 1 - at.ema_decay;
	other.at = &at;
	return right->ema(c, &other, err);
}

#define SABOTAGE(row, member, how, words)        \
	static void test_##how(void **state)     \
	{                                        \
		(void)state;                     \
		mu_ops table = mu_ops_reference; \
		table.name = "sabotage";         \
		table.member = how;              \
		expect(&table, row, words);      \
	}

SABOTAGE("patchify", patchify, wrong_patchify, "'patches' differs")
SABOTAGE("embed", embed_forward, wrong_embed_forward, "'x' differs")
SABOTAGE("layernorm", layernorm_backward, layernorm_does_not_add, "'d_w' differs")
SABOTAGE("linear", linear_backward, linear_adds_to_output, "'d_x' differs")
SABOTAGE("linear", linear_forward, linear_is_a_little_off, "'y' differs")
SABOTAGE("attention", attention_forward, attention_changes_input, "attention_forward changed its input 'qkv'")
SABOTAGE("dropout", dropout, dropout_fails, "dropout failed: no more water")
SABOTAGE("drop_path", drop_path, drop_path_keeps_all, "'keep_B' differs")
SABOTAGE("pool", pool_forward, pool_forgets_the_last, "'y' differs")
SABOTAGE("cross_entropy", cross_entropy, cross_entropy_forgets_labels, "'sums' differs")
SABOTAGE("settle", settle, settle_forgets_the_skipped, "'record' differs")
SABOTAGE("adamw", adamw, adamw_without_bias2, "'parameter' differs")
SABOTAGE("sum_squares", sum_squares, sum_squares_in_float, "'sum' differs")
SABOTAGE("accumulate", accumulate, accumulate_leaves_x, "'x' differs")
SABOTAGE("sgd", sgd, sgd_without_nesterov, "'parameter' differs")
SABOTAGE("lion", lion, lion_with_one_beta, "'m' differs")
SABOTAGE("lamb", lamb, lamb_without_decay, "'update' differs")
SABOTAGE("momentum", momentum, momentum_without_nesterov, "'update' differs")
SABOTAGE("newton_schulz", newton_schulz, newton_schulz_off_by_a_digit, "'x' differs")
SABOTAGE("tensor_norms", tensor_norms, tensor_norms_adds, "'squares' differs")
SABOTAGE("apply_update", apply_update, apply_update_without_limit, "'parameter' differs")
SABOTAGE("ema", ema, ema_of_another_decay, "'average' differs")
SABOTAGE("cast", cast, cast_truncates, "'BF16' differs")

/* AddressSanitizer, where it is on, stops these two where they happen. */
#if !defined(TRIAL_ASAN)
static mural_status layernorm_writes_outside(mu_ops_context *c, const mu_layernorm *op, mural_error *err)
{
	const mural_status status = right->layernorm_forward(c, op, err);
	if (op->y)
		mu_element_store(op->type, op->y, op->tokens * op->width, 1);
	return status;
}

static size_t attention_asks_for_too_little(mu_ops_context *c, const mu_attention *op)
{
	return right->attention_workspace(c, op) - sizeof(double);
}

SABOTAGE("layernorm", layernorm_forward, layernorm_writes_outside, "into the guard after 'y'")
SABOTAGE("attention", attention_workspace, attention_asks_for_too_little, "into the guard after 'scratch'")
#endif

static mural_status facts_of_a_card(mu_device_handle *device, mu_device_facts *facts, mural_error *err)
{
	MU_TRY(mu_device_host.facts(device, facts, err));
	facts->shares_host_memory = false;
	return MURAL_OK;
}

/* A device whose memory the host may not read: everything travels by copy, and all is as before. */
static void test_memory_of_its_own(void **state)
{
	(void)state;
	mu_device_table card = mu_device_host;
	card.facts = facts_of_a_card;
	mu_ops table = mu_ops_reference;
	table.name = "card";
	table.device = &card;
	const differential_options options = {.seed = 1, .trials = 8, .out = stdout};
	assert_int_equal(differential_run(&table, &options), 0);
	table.pool_forward = pool_forgets_the_last;
	expect(&table, "pool", "'y' differs");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wrong_patchify),
		cmocka_unit_test(test_wrong_embed_forward),
		cmocka_unit_test(test_layernorm_does_not_add),
		cmocka_unit_test(test_linear_adds_to_output),
		cmocka_unit_test(test_linear_is_a_little_off),
		cmocka_unit_test(test_attention_changes_input),
		cmocka_unit_test(test_dropout_fails),
		cmocka_unit_test(test_drop_path_keeps_all),
		cmocka_unit_test(test_pool_forgets_the_last),
		cmocka_unit_test(test_cross_entropy_forgets_labels),
		cmocka_unit_test(test_settle_forgets_the_skipped),
		cmocka_unit_test(test_adamw_without_bias2),
		cmocka_unit_test(test_sum_squares_in_float),
		cmocka_unit_test(test_accumulate_leaves_x),
		cmocka_unit_test(test_sgd_without_nesterov),
		cmocka_unit_test(test_lion_with_one_beta),
		cmocka_unit_test(test_lamb_without_decay),
		cmocka_unit_test(test_momentum_without_nesterov),
		cmocka_unit_test(test_newton_schulz_off_by_a_digit),
		cmocka_unit_test(test_tensor_norms_adds),
		cmocka_unit_test(test_apply_update_without_limit),
		cmocka_unit_test(test_ema_of_another_decay),
		cmocka_unit_test(test_cast_truncates),
		cmocka_unit_test(test_memory_of_its_own),
#if !defined(TRIAL_ASAN)
		cmocka_unit_test(test_layernorm_writes_outside),
		cmocka_unit_test(test_attention_asks_for_too_little),
#endif
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
