/* bf16 and fp16 inside the engine: masters, tracking of fp32, loss scaling, sets that go on bit for bit.
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "engine/checkpoint.h"
#include "kernels/reference/element.h"
#include "support/data_files.h"
#include "support/small_run.h"

static char *folder;

static int enter(void **state)
{
	(void)state;
	folder = test_folder_create();
	return !folder;
}

static int leave(void **state)
{
	(void)state;
	mu_checkpoint_clear(folder);
	test_folder_remove(folder);
	return 0;
}

/* "--config PATH" of a file with this text and the batch of small runs. */
static const char *with_file(const char *text, const char *more)
{
	static char options[512];
	char path[256];
	snprintf(path, sizeof path, "%s/run.json", folder);
	FILE *out = fopen(path, "w");
	assert_non_null(out);
	fprintf(out, "%s\n", text);
	assert_int_equal(fclose(out), 0);
	snprintf(options, sizeof options, "--config %s %s", path, more);
	return options;
}

static const char *save(small_run *t)
{
	static char set[MURAL_CHECKPOINT_PATH];
	assert_int_equal(mural_checkpoint_save(t->engine, folder, 1, NULL), MURAL_OK);
	assert_int_equal(mu_checkpoint_path(set, folder, mural_engine_steps_done(t->engine), NULL), MURAL_OK);
	return set;
}

/* Parameters are their masters, rounded. */
static void expect_rounded(const mu_store *store)
{
	for (size_t i = 0; i < store->elements; i++) {
		uint16_t want[4] = {0}; /* as large as any element: compilers look at all of them */
		mu_element_store(store->type, want, 0, (double)store->master[i]);
		assert_int_equal(((const uint16_t *)store->parameters)[i], want[0]);
	}
}

/* The first losses are those of fp32 up to the type's rounding, and training goes on like it. */
static void narrow_types_track_fp32(void **state)
{
	static const struct {
		const char *text;
		mu_dtype type, gradients;
		double first, last; /* relative distance of losses */
	} cases[] = {
	        {"bf16: {enabled: true}", MU_BF16, MU_BF16, 0.01, 0.05},
	        {"bf16: {enabled: true}\ndata_types: {grad_accum_dtype: \"fp32\"}", MU_BF16, MU_F32, 0.01, 0.05},
	        {"fp16: {enabled: true, initial_scale_power: 8}", MU_F16, MU_F16, 0.002, 0.02},
	        {"fp16: {enabled: true, loss_scale: 64}\ndata_types: {grad_accum_dtype: \"fp32\"}", MU_F16, MU_F32,
	         0.002, 0.02},
	};
	enum { STEPS = 24 };
	(void)state;
	small_run wide;
	double expected[STEPS];
	small_run_start(&wide, "--lr 3e-3", NULL, NULL);
	for (int n = 0; n < STEPS; n++)
		expected[n] = small_run_step(&wide).loss;
	const double tested = small_run_evaluate(&wide).loss;
	small_run_stop(&wide);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		small_run t;
		double apart = 0;
		small_run_start(&t, with_file(cases[i].text, "--lr 3e-3 --weight-decay 0.01"), NULL, NULL);
		const mu_store *store = &t.engine->store;
		assert_true(store->type == cases[i].type && store->settings.gradient_type == cases[i].gradients);
		expect_rounded(store);
		for (int n = 0; n < STEPS; n++) {
			const mural_step_facts facts = small_run_step(&t);
			const double off = fabs(facts.loss - expected[n]) / expected[n];
			assert_false(facts.skipped);
			apart = fmax(apart, off);
			if (off > (n < 3 ? cases[i].first : cases[i].last))
				fail_msg("%s: the loss of step %d is %g, in fp32 %g", cases[i].text, n + 1, facts.loss,
				         expected[n]);
		}
		expect_rounded(store);
		assert_true(apart > 0);
		assert_true(fabs(small_run_evaluate(&t).loss - tested) < cases[i].last * tested);
		small_run_stop(&t);
	}
}

static const char *const kinds[] = {
        "bf16: {enabled: true}",
        "bf16: {enabled: true}\ndata_types: {grad_accum_dtype: \"fp32\"}\nmural: {ema: {decay: 0.9, evaluate: true}}",
        "bf16: {enabled: true}\noptimizer: {type: \"Lamb\"}\nmural: {ema: {decay: 0.9, evaluate: true}}",
        "bf16: {enabled: true}\noptimizer: {type: \"Muon\"}\ndata_types: {grad_accum_dtype: \"fp32\"}",
        "fp16: {enabled: true, initial_scale_power: 24, loss_scale_window: 2, hysteresis: 1}",
        "fp16: {enabled: true, loss_scale: 256}\noptimizer: {type: \"SGD\", params: {momentum: 0.9}}",
};

/* fp32 masters are what a set holds, with the loss scale and its counters. */
static void each_goes_on_bit_for_bit(void **state)
{
	enum { BEFORE = 6, AFTER = 5 };
	(void)state;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		small_run a, b;
		small_run_start(&a, with_file(kinds[i], ""), NULL, NULL);
		for (int n = 0; n < BEFORE; n++)
			small_run_step(&a);
		const char *set = save(&a);
		small_run_start(&b, with_file(kinds[i], ""), NULL, set);
		const mu_store *x = &a.engine->store, *y = &b.engine->store;
		assert_memory_equal(x->parameters, y->parameters, x->elements * 2);
		assert_memory_equal(&a.engine->ledger.seen->carried, &b.engine->ledger.seen->carried,
		                    sizeof(mu_carried));
		for (int n = 0; n < AFTER; n++) {
			const mural_step_facts one = small_run_step(&a), other = small_run_step(&b);
			assert_true(one.loss == other.loss && one.loss_scale == other.loss_scale);
			assert_true(one.skipped == other.skipped && one.skipped_steps == other.skipped_steps);
		}
		assert_memory_equal(x->master, y->master, x->elements * sizeof(float));
		assert_true(small_run_evaluate(&a).loss == small_run_evaluate(&b).loss);
		small_run_stop(&a);
		small_run_stop(&b);
	}
}

/* A scale so large that the first steps overflow: they change nothing, and neither schedule nor bias correction go on. */
static void overflows_are_left_out(void **state)
{
	(void)state;
	small_run t, calm;
	const char *text = "fp16: {enabled: true, initial_scale_power: 40, hysteresis: 2}\n"
	                   "scheduler: {type: \"WarmupLR\", params: {warmup_num_steps: 4, warmup_max_lr: 1e-3, "
	                   "warmup_type: \"linear\"}}";
	small_run_start(&t, with_file(text, ""), NULL, NULL);
	const mu_store *store = &t.engine->store;
	float *before = malloc(store->elements * sizeof *before);
	assert_non_null(before);
	memcpy(before, store->master, store->elements * sizeof *before);
	uint64_t skipped = 0;
	double scale = 0x1p40;
	mural_step_facts facts = small_run_step(&t);
	for (; facts.skipped; facts = small_run_step(&t)) {
		skipped++;
		assert_true(facts.loss_scale == scale && facts.skipped_steps == skipped && isfinite(facts.loss));
		assert_true(!isfinite(facts.gradient_norm) && facts.learning_rate == 0);
		assert_memory_equal(before, store->master, store->elements * sizeof *before);
		scale = skipped == 1 ? scale : scale / 2; /* the first is forgiven */
	}
	assert_true(skipped > 10 && facts.loss_scale == scale && isfinite(facts.gradient_norm));
	assert_int_equal(facts.step, skipped + 1);
	assert_int_equal(facts.applied_steps, 1);
	assert_true(t.engine->ledger.seen->carried.applied == 1 && facts.learning_rate == 0);
	const mu_step_record *seen = t.engine->ledger.seen;
	const double norm = facts.gradient_norm;
	while (seen->carried.applied < 3)
		facts = small_run_step(&t);
	assert_true(facts.learning_rate == 0.25e-3); /* of update 3, whatever its step is */
	small_run_start(&calm, with_file("fp16: {enabled: true, loss_scale: 16}", ""), NULL, NULL);
	assert_true(fabs(small_run_step(&calm).gradient_norm / norm - 1) < 0.5); /* no scale in it */
	small_run_stop(&calm);
	small_run_stop(&t);
	free(before);
}

/* What is divided more before the sum is multiplied by as much in the update: a scale that overflows alone does not with it,
 * and by a power of two everything is what a smaller scale gives, bit for bit. */
static void a_factor_moves_the_range(void **state)
{
	enum { STEPS = 6 };
	(void)state;
	small_run large, divided, small;
	small_run_start(&large, with_file("fp16: {enabled: true, loss_scale: 16777216}", ""), NULL, NULL);
	assert_true(small_run_step(&large).skipped);
	small_run_stop(&large);
	small_run_start(&divided,
	                with_file("fp16: {enabled: true, loss_scale: 16777216}\ngradient_predivide_factor: 65536", ""),
	                NULL, NULL);
	small_run_start(&small, with_file("fp16: {enabled: true, loss_scale: 256}\nprescale_gradients: true", ""), NULL,
	                NULL);
	for (int n = 0; n < STEPS; n++) {
		const mural_step_facts one = small_run_step(&divided), other = small_run_step(&small);
		assert_false(one.skipped || other.skipped);
		assert_true(one.loss == other.loss && one.gradient_norm == other.gradient_norm);
	}
	const mu_store *x = &divided.engine->store, *y = &small.engine->store;
	assert_memory_equal(x->master, y->master, x->elements * sizeof(float));
	small_run_stop(&divided);
	small_run_stop(&small);
}

/* In fp32 a factor is rounding; one that would go below a single image counts as that. */
static void a_factor_changes_no_fp32_result(void **state)
{
	static const char *const factors[] = {"3", "0.7", "1e-9", "4294967296"};
	enum { STEPS = 8 };
	(void)state;
	for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
		char text[64];
		small_run plain, divided;
		snprintf(text, sizeof text, "gradient_predivide_factor: %s", factors[i]);
		small_run_start(&plain, "--optimizer SGD --lr 1e-2", NULL, NULL);
		small_run_start(&divided, with_file(text, "--optimizer SGD --lr 1e-2 --weight-decay 0.01"), NULL, NULL);
		for (int n = 0; n < STEPS; n++) {
			const mural_step_facts one = small_run_step(&plain), other = small_run_step(&divided);
			if (fabs(other.gradient_norm / one.gradient_norm - 1) > 1e-5 ||
			    fabs(other.loss / one.loss - 1) > 1e-5)
				fail_msg("%s, step %d: loss %.9g, norm %.9g, without %.9g, %.9g", text, n + 1,
				         other.loss, other.gradient_norm, one.loss, one.gradient_norm);
		}
		small_run_stop(&plain);
		small_run_stop(&divided);
	}
}

static mural_status endless_squares(mu_ops_context *context, const mu_sum_squares *op, mural_error *err)
{
	(void)context;
	(void)err;
	*op->sum = (double)INFINITY;
	return MURAL_OK;
}

/* In bf16, a gradient that is not finite beside a loss that is: left out, or the end where nobody wants that checked. */
static void bf16_skips_unless_told_not_to(void **state)
{
	(void)state;
	small_run t;
	mural_step_facts facts;
	mural_error err = {0};
	mu_ops endless = mu_ops_cpu;
	endless.sum_squares = endless_squares;
	small_run_start(&t, "--bf16", &endless, NULL);
	facts = small_run_step(&t);
	assert_true(facts.skipped && facts.applied_steps == 0 && facts.skipped_steps == 1 && facts.loss_scale == 1);
	small_run_stop(&t);
	small_run_start(&t, with_file("bf16: {enabled: true, check_grad_overflow: false}", ""), &endless, NULL);
	assert_int_equal(mural_engine_step(t.engine, &facts, &err), MURAL_FAILED);
	assert_non_null(strstr(err.message, "the gradient is not finite at step 1 (epoch 1)"));
	small_run_stop(&t);
}

static void hopeless_overflows_end_the_run(void **state)
{
	(void)state;
	small_run t;
	mural_error err = {0};
	mural_step_facts facts;
	mural_status status = MURAL_OK;
	int steps = 0;
	small_run_start(&t,
	                with_file("fp16: {enabled: true, initial_scale_power: 40, hysteresis: 1, min_loss_scale: "
	                          "1073741824}",
	                          ""),
	                NULL, NULL);
	for (; status == MURAL_OK && steps < 20; steps++)
		status = mural_engine_step(t.engine, &facts, &err);
	assert_int_equal(status, MURAL_FAILED);
	assert_int_equal(steps, 11); /* 40 to 30, and once more */
	assert_non_null(
	        strstr(err.message, "overflows fp16 at step 11 (epoch 3) though the loss scale is at its floor"));
	small_run_stop(&t);
}

/* The earliest place is named: what comes later is not finite because of it. */
static void a_fault_is_found(void **state)
{
	static const struct {
		const char *options;
		size_t unit;
		bool weights; /* a weight is NaN; otherwise some are so large that the output overflows */
		const char *words;
	} cases[] = {
	        {"--depth 3", 2, true,
	         "the loss is not finite at step 3 (epoch 1); it began in the weights of block 1;"},
	        {"--depth 3 --bf16", 0, true, "it began in the weights of the patch embedding;"},
	        {"--depth 3", 1, false, "it began in the output of block 0;"},
	        {"--depth 3 --bf16", 1, false, "it began in the output of block 0;"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		small_run t;
		mural_step_facts facts;
		mural_error err = {0};
		small_run_start(&t, cases[i].options, NULL, NULL);
		small_run_step(&t);
		small_run_step(&t);
		const mu_store *store = &t.engine->store;
		const mu_unit *unit = &store->units[cases[i].unit];
		const mu_tensor *tensor =
		        mu_unit_tensor(unit, cases[i].weights ? unit->tensors[0].role : MU_ROLE_FC2_B);
		char *at = (char *)mu_store_parameters(store, cases[i].unit) +
		           tensor->offset * mu_dtype_bytes(store->type);
		for (size_t e = 0; e < (cases[i].weights ? 1 : tensor->elements); e++)
			mu_element_store(store->type, at, e, cases[i].weights ? (double)NAN : 3.38e38);
		assert_int_equal(mural_engine_step(t.engine, &facts, &err), MURAL_FAILED);
		if (!strstr(err.message, cases[i].words))
			fail_msg("%s", err.message);
		small_run_stop(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(narrow_types_track_fp32),       cmocka_unit_test(each_goes_on_bit_for_bit),
	        cmocka_unit_test(overflows_are_left_out),        cmocka_unit_test(hopeless_overflows_end_the_run),
	        cmocka_unit_test(a_factor_moves_the_range),      cmocka_unit_test(a_factor_changes_no_fp32_result),
	        cmocka_unit_test(bf16_skips_unless_told_not_to), cmocka_unit_test(a_fault_is_found),
	};
	return cmocka_run_group_tests(tests, enter, leave);
}
