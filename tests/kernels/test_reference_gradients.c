/* Is the reference right? Every backward row in double against central differences of its forward row.
 *
 * The loss is the dot product of each output with a fixed random array, which is that output's gradient. Gradients of
 * activations start as NaN (they must be overwritten), those of parameters as random numbers (they must be added to).
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/ops.h"
#include "support/difference.h"

static const mu_ops *const ops = &mu_ops_reference;

/* Arrays come from one pool and are given back together when a test begins. */
static double pool[1 << 16];
static size_t used;

static int empty_pool(void **state)
{
	(void)state;
	used = 0;
	return 0;
}

static double *array(size_t n)
{
	double *p = pool + used;
	used += n;
	assert_true(used <= sizeof pool / sizeof *pool);
	return p;
}

/* Random numbers of magnitude 0.1 to 1.1 and either sign, never zero; others at each call. */
static double *numbers(size_t n)
{
	double *p = array(n);
	const mu_random_key key = mu_random_key_make(1, MU_PURPOSE_TEST, 0);
	for (size_t i = 0; i < n; i++) {
		const double u = 2 * mu_random_uniform(key, used, i) - 1;
		p[i] = u + copysign(0.1, u);
	}
	return p;
}

/* What an overwritten output holds before the call. */
static double *poison(size_t n)
{
	double *p = array(n);
	for (size_t i = 0; i < n; i++)
		p[i] = (double)NAN;
	return p;
}

static double *copy(const double *from, size_t n)
{
	return memcpy(array(n), from, n * sizeof *from);
}

static double dot(const double *a, const double *b, size_t n)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

static void check(const char *what, double *variable, const double *gradient, size_t n, difference_loss *loss,
                  void *self)
{
	const double error = difference_error(variable, gradient, n, loss, self);
	if (!(error <= DIFFERENCE_TOLERANCE))
		fail_msg("gradient of %s is off by %g", what, error);
}

/* For a gradient that was added to what stood in `before`. */
static void check_added(const char *what, double *variable, double *gradient, const double *before, size_t n,
                        difference_loss *loss, void *self)
{
	for (size_t i = 0; i < n; i++)
		gradient[i] -= before[i];
	check(what, variable, gradient, n, loss, self);
}

/* Drops about a third when on. */
static mu_dropout_rule rule(bool on, size_t images)
{
	static uint64_t stream_B[8];
	assert_true(images <= 8);
	for (size_t b = 0; b < images; b++)
		stream_B[b] = mu_stream(3, (uint32_t)(100 + b));
	if (!on)
		return (mu_dropout_rule){.scale = 1};
	return (mu_dropout_rule){.key = mu_random_key_make(2, MU_PURPOSE_TEST, 7),
	                         .threshold = mu_drop_threshold(1.0 / 3),
	                         .scale = 1.5f,
	                         .stream_B = stream_B};
}

static double embed_loss(void *self)
{
	const mu_embed *op = self;
	assert_int_equal(ops->embed_forward(NULL, op, NULL), MURAL_OK);
	const size_t tokens = op->patches + (op->class_token ? 1 : 0);
	return dot(op->x, op->d_x, op->images * tokens * op->width);
}

static void embed(bool class_token, bool dropout)
{
	const size_t B = 2, n = 3, D = 5, N = n + class_token;
	double *patch = numbers(B * n * D), *token = class_token ? numbers(D) : NULL, *position = numbers(N * D);
	double *d_patch = poison(B * n * D), *d_token = class_token ? numbers(D) : NULL, *d_position = numbers(N * D);
	const double *token_before = class_token ? copy(d_token, D) : NULL, *position_before = copy(d_position, N * D);
	mu_embed op = {.type = MU_F64, .images = B, .patches = n, .width = D, .dropout = rule(dropout, B)};
	op.patch = patch, op.class_token = token, op.position = position;
	op.x = poison(B * N * D), op.d_x = numbers(B * N * D);
	op.d_patch = d_patch, op.d_class_token = d_token, op.d_position = d_position;

	assert_int_equal(ops->embed_backward(NULL, &op, NULL), MURAL_OK);
	check("patch", patch, d_patch, B * n * D, embed_loss, &op);
	check_added("position", position, d_position, position_before, N * D, embed_loss, &op);
	if (class_token)
		check_added("class token", token, d_token, token_before, D, embed_loss, &op);
}

static void test_embed(void **state)
{
	(void)state;
	for (int flags = 0; flags < 4; flags++)
		embed(flags & 1, flags & 2);
}

static double layernorm_loss(void *self)
{
	const mu_layernorm *op = self;
	const size_t n = op->tokens * op->width;
	double loss = 0;
	assert_int_equal(ops->layernorm_forward(NULL, op, NULL), MURAL_OK);
	if (op->d_y)
		loss += dot(op->y, op->d_y, n);
	if (op->d_sum)
		loss += dot(op->sum ? op->sum : op->x, op->d_sum, n);
	return loss;
}

enum { RESIDUAL = 1, KEEP = 2, GAIN = 4, NORM = 8, LATER = 16, LAYERNORM_FLAGS = 32 };

static void layernorm(unsigned flags, size_t images, size_t N, size_t D)
{
	const size_t n = images * N * D;
	double *x = numbers(n), *r = numbers(n), *w = numbers(D), *b = numbers(D);
	double *keep = numbers(images), *gain = numbers(D);
	double *d_w = numbers(D), *d_b = numbers(D), *d_gain = numbers(D), *d_r = poison(n), *d_x = poison(n);
	const double *d_w_before = copy(d_w, D), *d_b_before = copy(d_b, D), *d_gain_before = copy(d_gain, D);
	const bool scaled = flags & (KEEP | GAIN), norm = flags & NORM;
	mu_layernorm op = {.type = MU_F64, .tokens = images * N, .width = D, .tokens_per_image = N, .eps = 0.05};
	op.x = x, op.r = flags & RESIDUAL ? r : NULL;
	op.keep_B = flags & KEEP ? keep : NULL, op.gain = flags & GAIN ? gain : NULL;
	op.sum = poison(n);
	if (norm) {
		op.w = w, op.b = b, op.y = poison(n);
		op.mean = poison(images * N), op.rstd = poison(images * N);
		op.d_y = numbers(n), op.d_w = d_w, op.d_b = d_b;
	}
	op.d_sum = flags & LATER ? numbers(n) : NULL;
	op.d_r = d_r, op.d_x = scaled ? d_x : NULL, op.d_gain = flags & GAIN ? d_gain : NULL;
	op.scratch = poison(ops->layernorm_workspace(NULL, &op) / sizeof(double));

	assert_int_equal(ops->layernorm_forward(NULL, &op, NULL), MURAL_OK);
	assert_int_equal(ops->layernorm_backward(NULL, &op, NULL), MURAL_OK);
	check("x", x, scaled ? d_x : d_r, n, layernorm_loss, &op);
	if (flags & RESIDUAL)
		check("r", r, d_r, n, layernorm_loss, &op);
	if (flags & GAIN)
		check_added("gain", gain, d_gain, d_gain_before, D, layernorm_loss, &op);
	if (norm) {
		check_added("w", w, d_w, d_w_before, D, layernorm_loss, &op);
		check_added("b", b, d_b, d_b_before, D, layernorm_loss, &op);
	}
}

static void test_layernorm(void **state)
{
	for (unsigned flags = 0; flags < LAYERNORM_FLAGS; flags++) {
		empty_pool(state);
		layernorm(flags, 2, 3, 5);
		layernorm(flags, 3, 1, 2);
		layernorm(flags, 1, 2, 1);
	}
}

static void test_layernorm_without_sum(void **state)
{
	(void)state;
	const size_t T = 3, D = 4;
	double *x = numbers(T * D), *d_r = poison(T * D);
	mu_layernorm op = {.type = MU_F64, .tokens = T, .width = D, .tokens_per_image = 1, .eps = 0.05};
	op.x = x, op.w = numbers(D), op.b = numbers(D), op.y = poison(T * D);
	op.mean = poison(T), op.rstd = poison(T), op.scratch = poison(3 * D);
	op.d_y = numbers(T * D), op.d_r = d_r, op.d_w = numbers(D), op.d_b = numbers(D);
	assert_int_equal(ops->layernorm_forward(NULL, &op, NULL), MURAL_OK);
	assert_int_equal(ops->layernorm_backward(NULL, &op, NULL), MURAL_OK);
	check("x", x, d_r, T * D, layernorm_loss, &op);
}

/* pre and y are functions of x, w and b; the gradient of y is kept aside, because backward overwrites it. */
typedef struct linear_trial {
	mu_linear op;
	const double *d_y;
} linear_trial;

static double linear_loss(void *self)
{
	const linear_trial *t = self;
	assert_int_equal(ops->linear_forward(NULL, &t->op, NULL), MURAL_OK);
	return dot(t->op.y, t->d_y, t->op.rows * t->op.out);
}

static void linear(mu_activation activation, bool bias, bool input_gradient)
{
	const size_t rows = 3, in = 5, out = 7;
	double *x = numbers(rows * in), *w = numbers(out * in), *b = numbers(out);
	double *d_x = poison(rows * in), *d_w = numbers(out * in), *d_b = numbers(out);
	const double *d_w_before = copy(d_w, out * in), *d_b_before = copy(d_b, out);
	linear_trial t = {.d_y = numbers(rows * out)};
	t.op = (mu_linear){.type = MU_F64, .rows = rows, .in = in, .out = out, .activation = activation};
	t.op.x = x, t.op.w = w, t.op.b = bias ? b : NULL, t.op.y = poison(rows * out);
	t.op.pre = activation == MU_ACTIVATION_NONE ? NULL : poison(rows * out);
	t.op.d_y = copy(t.d_y, rows * out);
	t.op.d_x = input_gradient ? d_x : NULL, t.op.d_w = d_w, t.op.d_b = bias ? d_b : NULL;

	assert_int_equal(ops->linear_forward(NULL, &t.op, NULL), MURAL_OK);
	assert_int_equal(ops->linear_backward(NULL, &t.op, NULL), MURAL_OK);
	if (input_gradient)
		check("x", x, d_x, rows * in, linear_loss, &t);
	check_added("w", w, d_w, d_w_before, out * in, linear_loss, &t);
	if (bias)
		check_added("b", b, d_b, d_b_before, out, linear_loss, &t);
}

static void test_linear(void **state)
{
	(void)state;
	const mu_activation kinds[] = {MU_ACTIVATION_NONE, MU_ACTIVATION_GELU_ERF, MU_ACTIVATION_GELU_TANH};
	for (int kind = 0; kind < 3; kind++)
		for (int flags = 0; flags < 4; flags++)
			linear(kinds[kind], flags & 1, flags & 2);
}

static double attention_loss(void *self)
{
	const mu_attention *op = self;
	assert_int_equal(ops->attention_forward(NULL, op, NULL), MURAL_OK);
	return dot(op->o, op->d_o, op->images * op->tokens * op->heads * op->head_size);
}

static void attention(size_t B, size_t N, size_t H, size_t K, bool dropout)
{
	const size_t n = B * N * H * K;
	double *qkv = numbers(3 * n), *d_qkv = poison(3 * n);
	mu_attention op = {.type = MU_F64, .images = B, .tokens = N, .heads = H, .head_size = K};
	op.dropout = rule(dropout, B);
	op.qkv = qkv, op.o = poison(n), op.lse = poison(B * H * N), op.d_o = numbers(n), op.d_qkv = d_qkv;
	op.scratch = poison(ops->attention_workspace(NULL, &op) / sizeof(double));
	assert_int_equal(ops->attention_forward(NULL, &op, NULL), MURAL_OK);
	assert_int_equal(ops->attention_backward(NULL, &op, NULL), MURAL_OK);
	check("qkv", qkv, d_qkv, 3 * n, attention_loss, &op);
}

static void test_attention(void **state)
{
	for (int dropout = 0; dropout < 2; dropout++) {
		empty_pool(state);
		attention(2, 3, 2, 5, dropout);
		attention(1, 7, 3, 2, dropout);
		attention(3, 1, 1, 4, dropout);
	}
}

/* x is changed in place, so the loss works on a copy. */
typedef struct dropout_trial {
	double *x;
	const double *d_y;
	mu_dropout op;
} dropout_trial;

static double dropout_loss(void *self)
{
	const dropout_trial *t = self;
	double y[2 * 7];
	mu_dropout op = t->op;
	memcpy(y, t->x, sizeof y);
	op.x = y;
	assert_int_equal(ops->dropout(NULL, &op, NULL), MURAL_OK);
	return dot(y, t->d_y, 2 * 7);
}

static void test_dropout(void **state)
{
	(void)state;
	for (int on = 0; on < 2; on++) {
		dropout_trial t = {.x = numbers(2 * 7), .d_y = numbers(2 * 7)};
		double *gradient = copy(t.d_y, 2 * 7);
		t.op = (mu_dropout){.type = MU_F64, .images = 2, .elements_per_image = 7, .rule = rule(on, 2)};
		mu_dropout backward = t.op;
		backward.x = gradient;
		assert_int_equal(ops->dropout(NULL, &backward, NULL), MURAL_OK);
		check("x", t.x, gradient, 2 * 7, dropout_loss, &t);
	}
}

static double pool_loss(void *self)
{
	const mu_pool *op = self;
	assert_int_equal(ops->pool_forward(NULL, op, NULL), MURAL_OK);
	return dot(op->y, op->d_y, op->images * op->width);
}

static void test_pool(void **state)
{
	(void)state;
	const size_t B = 2, N = 5, D = 3, ranges[][2] = {{0, 1}, {1, 5}, {0, 5}, {2, 4}};
	for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
		double *x = numbers(B * N * D), *d_x = poison(B * N * D);
		mu_pool op = {.type = MU_F64, .images = B, .tokens = N, .width = D};
		op.first = ranges[i][0], op.last = ranges[i][1];
		op.x = x, op.y = poison(B * D), op.d_y = numbers(B * D), op.d_x = d_x;
		assert_int_equal(ops->pool_backward(NULL, &op, NULL), MURAL_OK);
		check("x", x, d_x, B * N * D, pool_loss, &op);
	}
}

/* The scaled sum of losses, whose gradient the row gives. */
static double cross_entropy_loss(void *self)
{
	mu_step_sums sums = {0};
	mu_cross_entropy op = *(const mu_cross_entropy *)self;
	op.d_logits = NULL, op.sums = &sums;
	assert_int_equal(ops->cross_entropy(NULL, &op, NULL), MURAL_OK);
	return sums.loss * *op.loss_scale / (double)op.micro->planned;
}

static void test_cross_entropy(void **state)
{
	(void)state;
	const size_t B = 4, C = 5;
	const int32_t labels[] = {4, 9, 0, 2}; /* the second is out of range, the fourth past the count */
	for (int smoothing = 0; smoothing < 2; smoothing++) {
		double *logits = numbers(B * C), *d_logits = poison(B * C);
		mu_step_sums sums = {0};
		const mu_micro micro = {.count = 3, .planned = 7};
		const double loss_scale = 4;
		mu_cross_entropy op = {.type = MU_F64, .images = B, .micro = &micro, .classes = C};
		op.smoothing = 0.3 * smoothing, op.loss_scale = &loss_scale;
		op.logits = logits, op.labels = labels, op.d_logits = d_logits, op.sums = &sums;
		assert_int_equal(ops->cross_entropy(NULL, &op, NULL), MURAL_OK);
		check("logits", logits, d_logits, B * C, cross_entropy_loss, &op);
		assert_true(sums.label_range == 1 && sums.count == 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup(test_embed, empty_pool),
	        cmocka_unit_test_setup(test_layernorm, empty_pool),
	        cmocka_unit_test_setup(test_layernorm_without_sum, empty_pool),
	        cmocka_unit_test_setup(test_linear, empty_pool),
	        cmocka_unit_test_setup(test_attention, empty_pool),
	        cmocka_unit_test_setup(test_dropout, empty_pool),
	        cmocka_unit_test_setup(test_pool, empty_pool),
	        cmocka_unit_test_setup(test_cross_entropy, empty_pool),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
