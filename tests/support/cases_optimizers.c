/* Cases of the optimizers beside AdamW, and of averages. Spans are loosely aligned; a narrow type has fp32 masters.
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "cases.h"

/* The largest number that trial_array draws. */
#define MOST 1.1

static bool is_narrow(const trial_side *s)
{
	return s->type == MU_BF16 || s->type == MU_F16;
}

static size_t draw_n(trial_side *s)
{
	return trial_size(s, "n", 768) * trial_size(s, "times", 31);
}

static void *gradient_of(trial_side *s, size_t n)
{
	return trial_array(s, TRIAL_INPUT | TRIAL_LOOSE, "gradient", s->type, n);
}

static void *changed(trial_side *s, const char *name, mu_dtype type, size_t n)
{
	return trial_array(s, TRIAL_ADDED | TRIAL_LOOSE, name, type, n);
}

/* What is written whole, or stays as it is in a skipped step. */
static void *direction_of(trial_side *s, mu_dtype type, size_t n, bool skip)
{
	return trial_array(s, (skip ? TRIAL_ADDED : TRIAL_OUTPUT) | TRIAL_LOOSE, "update", type, n);
}

static float *master_of(trial_side *s, size_t n)
{
	return is_narrow(s) ? changed(s, "master", MU_F32, n) : NULL;
}

static void expect_weights(trial_side *s, const void *parameter, const float *master, double magnitude)
{
	trial_expect(s, parameter, s->type, 3, magnitude);
	if (master)
		trial_expect(s, master, MU_F32, 3, magnitude);
}

void trial_case_accumulate(trial_side *s)
{
	mu_accumulate op = {.type = s->type, .n = draw_n(s)};
	op.x = changed(s, "x", s->type, op.n);
	op.sum = changed(s, "sum", MU_F32, op.n);
	trial_call(s, "accumulate", s->table->accumulate(s->context, &op, &s->err));
	trial_expect(s, op.sum, MU_F32, 2, 2 * MOST);
	trial_expect_bits(s, op.x);
}

void trial_case_sgd(trial_side *s)
{
	mu_sgd op = {.type = s->type, .n = draw_n(s)};
	op.momentum = trial_flag(s, "momentum") ? 0.9 : 0;
	op.nesterov = trial_flag(s, "nesterov") && op.momentum > 0;
	op.dampening = trial_flag(s, "dampening") ? 0.3 : 0;
	mu_decision at = {.number = trial_flag(s, "first") ? 1 : 2};
	op.decay = trial_flag(s, "decay") ? 0.05 : 0;
	op.lr_scale = trial_between(s, 0.5, 1);
	at.lr = trial_between(s, 1e-4, 1e-1);
	at.gradient_scale = trial_between(s, 0.3, 1);
	at.skip = trial_flag(s, "skip");
	op.at = trial_decision(s, &at);
	op.parameter = changed(s, "parameter", s->type, op.n);
	op.master = master_of(s, op.n);
	op.gradient = gradient_of(s, op.n);
	op.m = op.momentum > 0 ? changed(s, "m", trial_stat(s), op.n) : NULL;
	trial_call(s, "sgd", s->table->sgd(s->context, &op, &s->err));

	const double g = MOST + op.decay * MOST, m = op.momentum * MOST + g;
	if (op.m)
		trial_expect(s, op.m, trial_stat(s), 2, m);
	expect_weights(s, op.parameter, op.master, MOST + at.lr * (g + m));
}

void trial_case_lion(trial_side *s)
{
	mu_lion op = {.type = s->type, .n = draw_n(s)};
	mu_decision at = {.beta1 = 0.9, .beta2 = trial_flag(s, "beta2-0.999") ? 0.999 : 0.99};
	op.decay = trial_flag(s, "decay") ? 0.05 : 0;
	op.lr_scale = trial_between(s, 0.5, 1);
	at.lr = trial_between(s, 1e-4, 1e-1);
	at.gradient_scale = trial_between(s, 0.3, 1);
	at.skip = trial_flag(s, "skip");
	op.at = trial_decision(s, &at);
	op.parameter = changed(s, "parameter", s->type, op.n);
	op.master = master_of(s, op.n);
	op.gradient = gradient_of(s, op.n);
	op.m = changed(s, "m", trial_stat(s), op.n);
	trial_call(s, "lion", s->table->lion(s->context, &op, &s->err));
	trial_expect(s, op.m, trial_stat(s), 2, MOST);
	expect_weights(s, op.parameter, op.master, MOST);
}

void trial_case_lamb(trial_side *s)
{
	mu_lamb op = {.type = s->type, .n = draw_n(s)};
	mu_decision at = {.beta1 = 0.9, .beta2 = 0.999};
	const mu_dtype stat = trial_stat(s);
	const bool corrected = trial_flag(s, "corrected"), alias = trial_flag(s, "update-on-gradient");
	const double step = 1 + (double)trial_below(s, 1000);
	op.eps_inside = trial_flag(s, "eps-inside");
	op.eps = op.eps_inside ? 1e-3 : 1e-8;
	op.decay = trial_flag(s, "decay") ? 0.05 : 0;
	at.bias1 = corrected ? 1 - pow(at.beta1, step) : 1;
	at.bias2 = corrected ? 1 - pow(at.beta2, step) : 1;
	at.gradient_scale = trial_between(s, 0.3, 1);
	at.skip = trial_below(s, 8) == 0;
	op.at = trial_decision(s, &at);
	op.parameter = trial_array(s, TRIAL_INPUT | TRIAL_LOOSE, "parameter", s->type, op.n);
	op.master = is_narrow(s) ? trial_array(s, TRIAL_INPUT | TRIAL_LOOSE, "master", MU_F32, op.n) : NULL;
	op.m = changed(s, "m", stat, op.n);
	op.v = trial_numbers(s, TRIAL_ADDED | TRIAL_LOOSE, "v", stat, op.n, 0.7, 0.5);
	if (alias && s->type == stat)
		op.gradient = op.update = changed(s, "gradient", stat, op.n);
	else
		op.gradient = gradient_of(s, op.n), op.update = direction_of(s, stat, op.n, at.skip != 0);
	trial_call(s, "lamb", s->table->lamb(s->context, &op, &s->err));

	/* m is at most 1.2, v at least 0.15 */
	trial_expect(s, op.m, stat, 2, 1.2);
	trial_expect(s, op.v, stat, 2, 1.3);
	trial_expect(s, op.update, stat, 2, 1.2 / at.bias1 / sqrt(0.15 / at.bias2) + 0.05 * MOST);
}

void trial_case_momentum(trial_side *s)
{
	mu_momentum op = {.type = s->type, .n = draw_n(s), .momentum = 0.95};
	const mu_dtype stat = trial_stat(s);
	const bool alias = trial_flag(s, "update-on-gradient");
	op.nesterov = trial_flag(s, "nesterov");
	const mu_decision at = {.gradient_scale = trial_between(s, 0.3, 1), .skip = trial_flag(s, "skip")};
	op.at = trial_decision(s, &at);
	op.m = changed(s, "m", stat, op.n);
	if (alias && s->type == stat)
		op.gradient = op.update = changed(s, "gradient", stat, op.n);
	else
		op.gradient = gradient_of(s, op.n), op.update = direction_of(s, stat, op.n, at.skip != 0);
	trial_call(s, "momentum", s->table->momentum(s->context, &op, &s->err));
	trial_expect(s, op.m, stat, 2, MOST);
	trial_expect(s, op.update, stat, 2, MOST);
}

/* A rounding of the normalised matrix, whose numbers are about 1 / sqrt(rows cols), grows with the polynomial's slope at
 * 0 in each step where it lies along a small singular value. */
void trial_case_newton_schulz(trial_side *s)
{
	mu_newton_schulz op = {.type = s->type, .a = 3.4445, .b = -4.7750, .c = 2.0315};
	const bool turned = trial_flag(s, "tall");
	const size_t some = trial_size(s, "rows", 65), others = trial_size(s, "cols", 197);
	op.rows = turned ? others : some;
	op.cols = turned ? some : others;
	op.steps = trial_flag(s, "five") ? 5 : 2;
	const size_t n = op.rows * op.cols;
	op.x = changed(s, "x", trial_stat(s), n);
	if (trial_flag(s, "zero")) {
		static const double zeros[197 * 65];
		trial_fill(s, op.x, zeros); /* read as fp32 too */
	}
	op.scratch = trial_scratch(s, s->table->newton_schulz_workspace(s->context, &op));
	trial_call(s, "newton_schulz", s->table->newton_schulz(s->context, &op, &s->err));
	trial_expect(s, op.x, trial_stat(s), some > others ? some : others,
	             pow(op.a, (double)op.steps) / sqrt((double)n));
}

void trial_case_tensor_norms(trial_side *s)
{
	mu_tensor_norms op = {.type = s->type, .n_tensors = 1 + trial_below(s, 5)};
	mu_extent extents[5];
	size_t n = 0, most = 0;
	for (size_t t = op.n_tensors; t-- > 0;) { /* the last one lies first */
		n += trial_below(s, 3); /* between tensors lies what is nobody's */
		extents[t] = (mu_extent){n, trial_size(s, "n", 768) * trial_size(s, "times", 31)};
		n += extents[t].elements;
		most = extents[t].elements > most ? extents[t].elements : most;
	}
	op.extents = extents;
	op.x = trial_array(s, TRIAL_INPUT | TRIAL_LOOSE, "x", s->type, n);
	op.squares = trial_array(s, TRIAL_OUTPUT, "squares", MU_F64, op.n_tensors);
	op.scratch = trial_scratch(s, s->table->tensor_norms_workspace(s->context, &op));
	trial_call(s, "tensor_norms", s->table->tensor_norms(s->context, &op, &s->err));
	trial_expect(s, op.squares, MU_F64, most, (double)most);
}

void trial_case_apply_update(trial_side *s)
{
	mu_apply_update op = {.type = s->type, .n = draw_n(s), .min_ratio = 0.01, .max_ratio = 10};
	const bool trust = trial_flag(s, "trust"), none = trial_flag(s, "zero-norm"), high = trial_flag(s, "high");
	op.decay = trial_flag(s, "decay") ? 0.05 : 0;
	op.max_ratio = high ? 10 : 0.9;
	const mu_decision at = {.lr = trial_between(s, 1e-4, 1e-1), .skip = trial_below(s, 8) == 0};
	op.at = trial_decision(s, &at);
	op.lr_scale = trial_between(s, 0.5, 1);
	op.scale = trial_between(s, 1, 2);
	op.parameter = changed(s, "parameter", s->type, op.n);
	op.master = master_of(s, op.n);
	op.update = trial_array(s, TRIAL_INPUT | TRIAL_LOOSE, "update", trial_stat(s), op.n);
	if (trust) {
		double *weight = trial_numbers(s, TRIAL_INPUT, "weight_square", MU_F64, 1, 4, 3);
		double *update = trial_numbers(s, TRIAL_INPUT, "update_square", MU_F64, 1, 3, 2);
		if (none)
			trial_fill(s, weight, &(double){0});
		op.weight_square = weight, op.update_square = update;
	}
	trial_call(s, "apply_update", s->table->apply_update(s->context, &op, &s->err));
	expect_weights(s, op.parameter, op.master, MOST + at.lr * op.scale * 10 * MOST);
}

void trial_case_ema(trial_side *s)
{
	mu_ema op = {.type = s->type, .n = draw_n(s)};
	const mu_decision at = {.ema_decay = trial_between(s, 0.3, 1), .skip = trial_flag(s, "skip")};
	op.at = trial_decision(s, &at);
	op.parameter = trial_array(s, TRIAL_INPUT | TRIAL_LOOSE, "parameter", s->type, op.n);
	op.master = is_narrow(s) ? trial_array(s, TRIAL_INPUT | TRIAL_LOOSE, "master", MU_F32, op.n) : NULL;
	op.average = changed(s, "average", trial_stat(s), op.n);
	trial_call(s, "ema", s->table->ema(s->context, &op, &s->err));
	trial_expect(s, op.average, trial_stat(s), 2, MOST);
}
