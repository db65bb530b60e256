/* What a step decides: clipping, counts, counters, averages, and the loss scale against the sequences that DeepSpeed's ZeRO
 * optimizers go through (recorded from its dynamic scaler).
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "kernels/ops.h"

#define RATES 4

static const mu_rate rates[RATES] = {{0.1, 0.9, 0.99}, {0.2, 0.8, 0.99}, {0.3, 0.7, 0.99}, {0.4, 0.6, 0.99}};

typedef struct fixture {
	mu_micro micro;
	mu_step_record record;
	mu_settle op;
} fixture;

/* 8 of 10 planned images arrived; the summed gradient's norm is 4. */
static void begin(fixture *f)
{
	*f = (fixture){.micro = {2, 10}, .record = {.sums = {.count = 8}, .squares = 16, .carried = {.loss_scale = 1}}};
	f->op = (mu_settle){.bias_correction = true,
	                    .ema_decay = 0.9,
	                    .micro = &f->micro,
	                    .rates = rates,
	                    .n_rates = RATES,
	                    .record = &f->record};
}

static const mu_decision *settle(fixture *f)
{
	assert_int_equal(mu_ops_reference.settle(NULL, &f->op, NULL), MURAL_OK);
	return &f->record.decision;
}

static void numbers_of_a_plain_step(void **state)
{
	(void)state;
	fixture f;
	begin(&f);
	for (int n = 1; n <= 6; n++) {
		const mu_decision *d = settle(&f);
		const mu_rate *rate = &rates[(n - 1) % RATES]; /* a ring */
		assert_true(d->skip == 0 && d->number == n && f.record.carried.applied == n);
		assert_true(d->norm == 5 && d->gradient_scale == 1.25 && d->loss_scale == 1);
		assert_true(d->lr == rate->lr && d->beta1 == rate->beta1 && d->beta2 == rate->beta2);
		assert_true(d->bias1 == 1 - pow(rate->beta1, n) && d->bias2 == 1 - pow(rate->beta2, n));
	}
	f.op.bias_correction = false;
	assert_true(settle(&f)->bias1 == 1 && f.record.decision.bias2 == 1);
}

static void clipping(void **state)
{
	(void)state;
	fixture f;
	begin(&f);
	f.op.clipping = 6;
	assert_true(settle(&f)->gradient_scale == 1.25);
	f.op.clipping = 1; /* by the norm before clipping, which is what is told */
	assert_true(fabs(settle(&f)->gradient_scale - 1.25 / (5 + 1e-6)) < 1e-15);
	assert_true(f.record.decision.norm == 5);
	f.record.squares = 0;
	assert_true(settle(&f)->gradient_scale == 1.25 && f.record.decision.skip == 0);
}

/* The gradient is that of the loss times its scale, and is divided by the scale it was made with. */
static void the_scale_is_taken_out(void **state)
{
	(void)state;
	fixture f;
	begin(&f);
	f.record.carried.loss_scale = 64;
	f.op.scaling = (mu_loss_scaling){.dynamic = true, .window = 1, .hysteresis = 1, .floor = 1};
	f.record.carried.clean = 1;
	f.op.clipping = 0.01;
	const mu_decision *d = settle(&f);
	assert_true(d->norm == 5.0 / 64 && d->loss_scale == 64 && f.record.carried.loss_scale == 128);
	assert_true(fabs(d->gradient_scale - 1.25 / 64 * (0.01 / (5.0 / 64 + 1e-6))) < 1e-15);
}

/* Nothing of a step that is left out counts but that it was. */
static void what_is_skipped(void **state)
{
	(void)state;
	fixture f;
	begin(&f);
	f.record.carried.applied = 2;
	f.record.squares = (double)NAN;
	assert_true(settle(&f)->skip == 1);
	f.record.squares = (double)INFINITY;
	assert_true(settle(&f)->skip == 1 && f.record.decision.lr == 0.3);
	f.record.squares = 16, f.record.sums.non_finite = 1;
	assert_true(settle(&f)->skip == 1);
	f.record.sums.non_finite = 0, f.record.sums.failed = 1;
	assert_true(settle(&f)->skip == 1);
	f.record.sums.failed = 0, f.record.sums.label_range = 3;
	assert_true(settle(&f)->skip == 1);
	assert_true(f.record.carried.applied == 2 && f.record.carried.skipped == 5);
	f.record.sums.label_range = 0;
	assert_true(settle(&f)->skip == 0 && f.record.decision.number == 3 && f.record.carried.applied == 3);
}

/* timm's values. */
static void decay_of_averages(void **state)
{
	(void)state;
	static const struct {
		double n, decay;
	} cases[] = {{1, .370039}, {10, .797820}, {100, .953891}, {1000, .990007}, {10000, .997846}};
	fixture f;
	begin(&f);
	f.op.ema_decay = 0.9998;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		f.record.carried.applied = cases[i].n - 1;
		f.op.ema_warm_up = true;
		assert_true(fabs(settle(&f)->ema_decay - cases[i].decay) < 5e-7);
		f.op.ema_warm_up = false;
		assert_true(settle(&f)->ema_decay == 0.9998);
	}
	f.op.ema_decay = 0.95, f.op.ema_warm_up = true, f.record.carried.applied = 1000;
	assert_true(settle(&f)->ema_decay == 0.95);
}

typedef struct scale_trace {
	mu_loss_scaling scaling;
	double first;
	const char *pattern; /* '1' is an overflow */
	double after[16]; /* the scale after each update */
	double skipped, exhausted;
} scale_trace;

static const scale_trace traces[] = {
        /* hysteresis 2: the first overflow is forgiven; growth gives it back */
        {{true, false, 4, 2, 1},
         65536,
         "11100000000011",
         {65536, 32768, 16384, 16384, 16384, 16384, 16384, 32768, 32768, 32768, 32768, 65536, 65536, 32768},
         5,
         0},
        /* always clean: doubles after window + 1 updates, then every window */
        {{true, false, 3, 1, 1}, 2, "0000000000", {2, 2, 2, 4, 4, 4, 8, 8, 8, 16}, 0, 0},
        /* at the floor */
        {{true, false, 4, 2, 1}, 4, "1111", {4, 2, 1, 1}, 4, 1},
        /* consecutive: every clean update refills */
        {{true, true, 8, 2, 1}, 16, "101010110", {16, 16, 16, 16, 16, 16, 16, 8, 8}, 5, 0},
        {{true, false, 8, 2, 1}, 16, "10101", {16, 16, 8, 8, 4}, 3, 0},
        /* a floor that is no power of two */
        {{true, false, 8, 1, 3}, 8, "111", {4, 3, 3}, 3, 1},
        /* static */
        {{false, false, 1, 1, 1}, 128, "1100011", {128, 128, 128, 128, 128, 128, 128}, 4, 0},
};

static void loss_scale_as_deepspeed_has_it(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof traces / sizeof *traces; i++) {
		const scale_trace *t = &traces[i];
		fixture f;
		double exhausted = 0;
		begin(&f);
		f.op.scaling = t->scaling;
		f.record.carried.loss_scale = t->first;
		f.record.carried.hysteresis = t->scaling.hysteresis;
		for (size_t n = 0; t->pattern[n]; n++) {
			f.record.squares = t->pattern[n] == '1' ? (double)INFINITY : 16;
			exhausted = settle(&f)->exhausted;
			if (f.record.carried.loss_scale != t->after[n])
				fail_msg("trace %zu, update %zu: the scale is %g, expected %g", i, n + 1,
				         f.record.carried.loss_scale, t->after[n]);
		}
		assert_true(f.record.carried.skipped == t->skipped && exhausted == t->exhausted);
	}
}

/* A failure elsewhere says nothing about the scale. */
static void failures_are_no_overflow(void **state)
{
	(void)state;
	fixture f;
	begin(&f);
	f.op.scaling = (mu_loss_scaling){.dynamic = true, .window = 1, .hysteresis = 1, .floor = 1};
	f.record.carried = (mu_carried){.loss_scale = 8, .hysteresis = 1, .clean = 3};
	f.record.sums.failed = 1;
	settle(&f);
	assert_true(f.record.carried.loss_scale == 8 && f.record.carried.clean == 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(numbers_of_a_plain_step),  cmocka_unit_test(clipping),
	        cmocka_unit_test(the_scale_is_taken_out),   cmocka_unit_test(what_is_skipped),
	        cmocka_unit_test(decay_of_averages),        cmocka_unit_test(loss_scale_as_deepspeed_has_it),
	        cmocka_unit_test(failures_are_no_overflow),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
