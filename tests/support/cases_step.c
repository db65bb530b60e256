/* Cases of the rows at the ends of a step: loss, optimizer, norm of gradients, cast. SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>

#include "cases.h"
#include "kernels/reference/element.h"

#define MAX_IMAGES 31

const mu_decision *trial_decision(trial_side *s, const mu_decision *decision)
{
	void *array = trial_array(s, TRIAL_INPUT, "decision", MU_F64, sizeof *decision / sizeof(double));
	trial_fill(s, array, decision);
	return array;
}

const mu_micro *trial_micro(trial_side *s, size_t count, size_t planned)
{
	void *array = trial_array(s, TRIAL_INPUT, "micro", MU_I64, sizeof(mu_micro) / sizeof(uint64_t));
	trial_fill(s, array, &(mu_micro){count, planned});
	return array;
}

/* Labels in range, but for one in 16 when `bad`. */
static const int32_t *draw_labels(trial_side *s, size_t images, size_t classes, bool bad)
{
	int32_t labels[MAX_IMAGES];
	for (size_t b = 0; b < images; b++) {
		labels[b] = (int32_t)trial_below(s, classes);
		if (bad && trial_below(s, 16) == 0)
			labels[b] = trial_below(s, 2) ? -1 - labels[b] : labels[b] + (int32_t)classes;
	}
	void *array = trial_array(s, TRIAL_INPUT | TRIAL_LOOSE, "labels", MU_I32, images);
	trial_fill(s, array, labels);
	return array;
}

typedef struct logit_flags {
	bool ties, broken;
	double center;
} logit_flags;

/* Ordinary numbers; or halves, so that many are equal; and in a broken model some that are not finite. */
static void *draw_logits(trial_side *s, size_t n, logit_flags f)
{
	static const double broken[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
	void *array = trial_array(s, TRIAL_INPUT, "logits", s->type, n);
	unsigned char *logits = malloc(n * mu_dtype_bytes(s->type));
	for (size_t i = 0; logits && i < n; i++) {
		double logit = trial_between(s, -3, 3);
		if (f.ties)
			logit = ceil(2 * logit) / 2;
		if (f.broken && trial_below(s, 20) == 0)
			logit = broken[trial_below(s, 3)];
		mu_element_store(s->type, logits, i, f.center + logit);
	}
	trial_fill(s, array, logits);
	free(logits);
	return array;
}

void trial_case_cross_entropy(trial_side *s)
{
	mu_cross_entropy op = {.type = s->type, .images = trial_size(s, "B", MAX_IMAGES)};
	const bool gradient = trial_flag(s, "d_logits"), alias = trial_flag(s, "d_logits-on-logits") && gradient;
	const bool smooth = trial_flag(s, "smooth"), far = trial_flag(s, "far"), bad = trial_flag(s, "bad-labels");
	logit_flags f = {.ties = trial_flag(s, "ties"), .broken = trial_below(s, 4) == 0};
	f.center = far ? 1000 : 0; /* exp of it overflows */
	const size_t count = trial_flag(s, "full") ? op.images : trial_below(s, op.images + 1);
	const size_t planned = 1 + trial_below(s, 64);
	const bool scaled = trial_flag(s, "loss-scale");
	op.micro = trial_micro(s, count, planned);
	op.loss_scale = scaled ? trial_numbers(s, TRIAL_INPUT, "loss_scale", MU_F64, 1, 4, 3) : NULL;
	op.classes = trial_size(s, "C", 768);
	trial_note(s, "count=%zu %s", count, f.broken ? "broken " : "");
	op.smoothing = smooth ? 0.1 : 0;
	const size_t B = op.images, C = op.classes, n = B * C;
	void *logits = draw_logits(s, n, f);
	if (alias)
		trial_release(s, logits);
	op.logits = logits;
	op.labels = draw_labels(s, B, C, bad);
	op.d_logits = alias ? logits : gradient ? trial_array(s, TRIAL_OUTPUT, "d_logits", s->type, n) : NULL;
	op.loss_B = trial_flag(s, "loss_B") ? trial_array(s, TRIAL_OUTPUT, "loss_B", MU_F32, B) : NULL;
	op.best_B = trial_flag(s, "best_B") ? trial_array(s, TRIAL_OUTPUT, "best_B", MU_I32, B) : NULL;
	void *sums = trial_array(s, TRIAL_ADDED, "sums", MU_F64, MU_STEP_SUMS);
	op.sums = sums;
	trial_call(s, "cross_entropy", s->table->cross_entropy(s->context, &op, &s->err));

	const double size = f.center + 3 + log((double)C);
	trial_expect(s, sums, trial_stat(s), C, size * (double)B);
	if (gradient)
		trial_expect(s, op.d_logits, s->type, C, (scaled ? 8.0 : 1.0) / (double)planned * (far ? size : 1));
	if (op.loss_B)
		trial_expect(s, op.loss_B, MU_F32, C, size);
	if (op.best_B)
		trial_expect_bits(s, op.best_B);
}

/* Numbers are exact or a few functions deep: the same in every table but for what pow and sqrt round differently. */
void trial_case_settle(trial_side *s)
{
	static const double scales[] = {1, 4, 65536};
	mu_settle op = {.bias_correction = trial_flag(s, "corrected"), .ema_decay = 0.99};
	const bool clips = trial_flag(s, "clip"), bad = trial_flag(s, "overflow");
	op.ema_warm_up = trial_flag(s, "ema-warm-up");
	op.scaling = (mu_loss_scaling){.dynamic = trial_flag(s, "dynamic"),
	                               .consecutive = trial_flag(s, "consecutive"),
	                               .window = 1 + (double)trial_below(s, 4),
	                               .hysteresis = 1 + (double)trial_below(s, 3),
	                               .floor = 1};
	mu_step_record record = {.sums = {.loss = 3, .count = 1 + (double)trial_below(s, 9)}};
	record.sums.failed = trial_below(s, 8) == 0;
	record.sums.label_range = trial_below(s, 8) == 0;
	record.sums.non_finite = trial_below(s, 8) == 0;
	record.squares = bad ? (double)INFINITY : trial_between(s, 0, 50);
	record.carried = (mu_carried){.loss_scale = scales[trial_below(s, 3)],
	                              .clean = (double)trial_below(s, 9),
	                              .hysteresis = 1 + (double)trial_below(s, (size_t)op.scaling.hysteresis),
	                              .applied = (double)trial_below(s, 20),
	                              .skipped = 7};
	op.clipping = clips ? trial_between(s, 0.1, 3) : 0;
	op.n_rates = 5;
	op.rates = trial_numbers(s, TRIAL_INPUT, "rates", MU_F64, 5 * sizeof(mu_rate) / sizeof(double), 0.8, 0.15);
	op.micro = trial_micro(s, trial_below(s, 9), 9);
	void *array = trial_array(s, TRIAL_ADDED, "record", MU_F64, sizeof record / sizeof(double));
	trial_fill(s, array, &record);
	op.record = array;
	trial_call(s, "settle", s->table->settle(s->context, &op, &s->err));
	trial_expect(s, array, MU_F64, 4, 100);
}

void trial_case_adamw(trial_side *s)
{
	mu_adamw op = {.type = s->type, .n = trial_size(s, "n", 768) * trial_size(s, "times", 31)};
	op.decoupled = trial_flag(s, "decoupled");
	const bool corrected = trial_flag(s, "corrected");
	const double step = 1 + (double)trial_below(s, 1000);
	mu_decision at = {.lr = trial_between(s, 1e-4, 1e-1), .beta1 = 0.9};
	at.beta2 = trial_flag(s, "beta2-0.95") ? 0.95 : 0.999;
	op.eps = 1e-8;
	op.decay = trial_flag(s, "decay") ? 0.05 : 0;
	op.lr_scale = trial_between(s, 0.5, 1);
	at.bias1 = corrected ? 1 - pow(at.beta1, step) : 1;
	at.bias2 = corrected ? 1 - pow(at.beta2, step) : 1;
	at.gradient_scale = trial_between(s, 0.3, 1);
	at.skip = trial_flag(s, "skip");
	op.at = trial_decision(s, &at);
	const mu_dtype stat = trial_stat(s);
	const bool narrow = s->type == MU_BF16 || s->type == MU_F16;
	op.parameter = trial_array(s, TRIAL_ADDED | TRIAL_LOOSE, "parameter", s->type, op.n);
	op.master = narrow ? trial_array(s, TRIAL_ADDED | TRIAL_LOOSE, "master", MU_F32, op.n) : NULL;
	op.gradient = trial_array(s, TRIAL_INPUT | TRIAL_LOOSE, "gradient", s->type, op.n);
	op.m = trial_array(s, TRIAL_ADDED | TRIAL_LOOSE, "m", stat, op.n);
	op.v = trial_numbers(s, TRIAL_ADDED | TRIAL_LOOSE, "v", stat, op.n, 0.7, 0.5);
	trial_call(s, "adamw", s->table->adamw(s->context, &op, &s->err));

	/* m is at most 1.2, v at least 0.15 */
	const double update = at.lr / at.bias1 * 1.2 / sqrt(0.15 / at.bias2);
	trial_expect(s, op.m, stat, 2, 1.2);
	trial_expect(s, op.v, stat, 2, 1.3);
	trial_expect(s, op.parameter, s->type, 3, 1.1 + update);
	if (op.master)
		trial_expect(s, op.master, MU_F32, 3, 1.1 + update);
}

void trial_case_sum_squares(trial_side *s)
{
	mu_sum_squares op = {.type = s->type, .n = trial_size(s, "n", 768) * trial_size(s, "times", 65)};
	op.x = trial_array(s, TRIAL_INPUT | TRIAL_LOOSE, "x", s->type, op.n);
	op.sum = trial_array(s, TRIAL_ADDED, "sum", MU_F64, 1);
	op.scratch = trial_scratch(s, s->table->sum_squares_workspace(s->context, &op));
	trial_call(s, "sum_squares", s->table->sum_squares(s->context, &op, &s->err));
	trial_expect(s, op.sum, MU_F64, op.n, (double)op.n);
}

/* Rounding's corners among ordinary numbers: halfway between neighbours in bf16 and f16, subnormals, overflow, signs. */
static void put_corners(trial_side *s, void *array, size_t n)
{
	static const double corners[] = {
	        0.0,
	        -0.0,
	        1 + 0x1p-8, /* halfway in bf16, down to even */
	        1 + 0x3p-8, /* halfway in bf16, up to even */
	        1 + 0x1p-8 + 0x1p-23, /* just above halfway */
	        -1 - 0x1p-11, /* halfway in f16 */
	        65519,
	        65520, /* the first that overflows f16 */
	        0x1p-25, /* half of f16's smallest subnormal */
	        0x1.8p-24,
	        0x1.ffep-15,
	        0x1p-126,
	        0x1.fp-134,
	        0x1.fffffep127,
	        (double)INFINITY,
	        -(double)INFINITY,
	        (double)NAN,
	};
	const size_t n_corners = sizeof corners / sizeof *corners;
	unsigned char *numbers = malloc(n * mu_dtype_bytes(s->type));
	for (size_t i = 0; numbers && i < n; i++) {
		const double ordinary = trial_between(s, -2, 2) * ldexp(1, (int)trial_below(s, 40) - 20);
		const bool corner = trial_below(s, 2);
		mu_element_store(s->type, numbers, i, corner ? corners[trial_below(s, n_corners)] : ordinary);
	}
	trial_fill(s, array, numbers);
	free(numbers);
}

void trial_case_cast(trial_side *s)
{
	static const mu_dtype floating[] = {MU_F32, MU_BF16, MU_F16, MU_F64};
	mu_cast op = {.n = trial_size(s, "n", 768), .from_type = s->type, .to_type = floating[trial_below(s, 4)]};
	if (!(s->types >> op.to_type & 1))
		op.to_type = s->type;
	void *from = trial_array(s, TRIAL_INPUT | TRIAL_LOOSE, "from", op.from_type, op.n);
	put_corners(s, from, op.n);
	op.from = from;
	op.to = trial_array(s, TRIAL_OUTPUT | TRIAL_LOOSE, mu_dtype_text(op.to_type), op.to_type, op.n);
	trial_call(s, "cast", s->table->cast(s->context, &op, &s->err));
	trial_expect_bits(s, op.to);
}
