/* What the CPU table promises beyond the numbers, which the differential test checks: the same bits for any team size
 * and in every run, NaN that stays visible, and an error instead of a guess for a shape that was never prepared.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "kernels/cpu/cpu.h"
#include "kernels/reference/element.h"

#define IMAGES 5
#define TOKENS 37
#define HEADS 3
#define SIZE 20
#define WIDTH (HEADS * SIZE)
#define ROWS (IMAGES * TOKENS)
#define CLASSES 29
#define SPAN 70001 /* several blocks and a rest */

static const uint64_t streams[IMAGES] = {1, 2, 3, (uint64_t)7 << 32, UINT64_MAX};

/* Numbers in [-2, 2) that depend on `purpose` alone. */
static void *numbers(mu_dtype type, size_t n, uint32_t purpose)
{
	void *x = malloc(n * mu_dtype_bytes(type));
	assert_non_null(x);
	const mu_random_key key = mu_random_key_make(purpose, MU_PURPOSE_TEST, 0);
	for (size_t i = 0; i < n; i++)
		mu_element_store(type, x, i, 4 * mu_random_uniform(key, 0, i) - 2);
	return x;
}

static void *scratch_of(size_t bytes)
{
	void *scratch = aligned_alloc(64, (bytes + 64) / 64 * 64);
	assert_non_null(scratch);
	return scratch;
}

static mu_ops_context *open_team(int threads)
{
	mu_ops_context *context = NULL;
	assert_int_equal(mu_ops_cpu.open(NULL, threads, &context, NULL), MURAL_OK);
	return context;
}

/* Bytes of everything that a run of the rows below wrote, with room for the widest type. */
typedef struct outputs {
	mu_dtype type;
	float attention[4 * ROWS * WIDTH], lse[IMAGES * HEADS * TOKENS];
	float norm[3 * ROWS * WIDTH], statistics[2 * ROWS], d_w[WIDTH], d_b[WIDTH], d_gain[WIDTH];
	float gelu[ROWS * WIDTH], d_bias[WIDTH];
	float d_position[TOKENS * WIDTH], d_class[WIDTH], d_patch[ROWS * WIDTH];
	float d_logits[IMAGES * CLASSES];
	mu_step_sums sums;
	double squares;
} outputs;

static void run_attention(mu_ops_context *context, outputs *out)
{
	void *qkv = numbers(out->type, 3 * ROWS * WIDTH, 1), *d_o = numbers(out->type, ROWS * WIDTH, 2);
	mu_attention op = {.type = out->type, .images = IMAGES, .tokens = TOKENS, .heads = HEADS, .head_size = SIZE};
	op.dropout = (mu_dropout_rule){{1, 2}, mu_drop_threshold(0.3), 1 / 0.7f, streams};
	op.scratch = scratch_of(mu_ops_cpu.attention_workspace(context, &op));
	op.qkv = qkv, op.o = out->attention, op.lse = out->lse, op.d_o = d_o, op.d_qkv = out->attention + ROWS * WIDTH;
	assert_int_equal(mu_ops_cpu.attention_forward(context, &op, NULL), MURAL_OK);
	assert_int_equal(mu_ops_cpu.attention_backward(context, &op, NULL), MURAL_OK);
	free(op.scratch), free(qkv), free(d_o);
}

static void run_layernorm(mu_ops_context *context, outputs *out)
{
	const size_t n = ROWS * WIDTH;
	void *x = numbers(out->type, n, 3), *r = numbers(out->type, n, 4), *w = numbers(out->type, WIDTH, 5),
	     *d_y = numbers(out->type, n, 6);
	const float keep_B[IMAGES] = {1.25f, 0, 1.25f, 1.25f, 0};
	mu_layernorm op = {.type = out->type, .tokens = ROWS, .width = WIDTH, .tokens_per_image = TOKENS, .eps = 1e-6};
	op.scratch = scratch_of(mu_ops_cpu.layernorm_workspace(context, &op));
	op.x = x, op.r = r, op.w = w, op.b = w, op.keep_B = keep_B, op.gain = w;
	op.sum = out->norm, op.y = out->norm + n, op.mean = out->statistics, op.rstd = out->statistics + ROWS;
	op.d_y = d_y, op.d_sum = x, op.d_r = out->norm + 2 * n, op.d_x = d_y;
	op.d_w = out->d_w, op.d_b = out->d_b, op.d_gain = out->d_gain;
	assert_int_equal(mu_ops_cpu.layernorm_forward(context, &op, NULL), MURAL_OK);
	assert_int_equal(mu_ops_cpu.layernorm_backward(context, &op, NULL), MURAL_OK);
	free(op.scratch), free(x), free(r), free(w), free(d_y);
}

/* Only what the table computes itself: the products are oneDNN's, which may cut them by team size. */
static void run_linear(mu_ops_context *context, outputs *out)
{
	void *x = numbers(out->type, ROWS, 7), *w = numbers(out->type, WIDTH, 8),
	     *pre = numbers(out->type, ROWS * WIDTH, 9);
	float d_w[WIDTH] = {0};
	mu_linear op = {.type = out->type,
	                .rows = ROWS,
	                .in = 1,
	                .out = WIDTH,
	                .activation = MU_ACTIVATION_GELU_ERF,
	                .x = x,
	                .w = w};
	op.scratch = scratch_of(mu_ops_cpu.linear_workspace(context, &op));
	op.pre = pre, op.d_y = memcpy(out->gelu, pre, ROWS * WIDTH * mu_dtype_bytes(out->type)), op.d_w = d_w,
	op.d_b = out->d_bias;
	assert_int_equal(mu_ops_cpu.linear_backward(context, &op, NULL), MURAL_OK);
	free(op.scratch), free(x), free(w), free(pre);
}

static void run_rest(mu_ops_context *context, outputs *out)
{
	void *x = numbers(out->type, SPAN, 10);
	int32_t labels[IMAGES] = {0, CLASSES - 1, 3, 4, 5};
	mu_embed embed = {.type = out->type, .images = IMAGES, .patches = TOKENS - 1, .width = WIDTH, .d_x = x};
	embed.dropout = (mu_dropout_rule){{3, 4}, mu_drop_threshold(0.5), 2, streams};
	embed.d_patch = out->d_patch, embed.d_class_token = out->d_class, embed.d_position = out->d_position;
	assert_int_equal(mu_ops_cpu.embed_backward(context, &embed, NULL), MURAL_OK);
	mu_cross_entropy entropy = {.type = out->type, .images = IMAGES, .classes = CLASSES};
	entropy.smoothing = 0.1, entropy.micro = &(const mu_micro){IMAGES, IMAGES}, entropy.logits = x,
	entropy.labels = labels;
	entropy.d_logits = out->d_logits, entropy.sums = &out->sums;
	assert_int_equal(mu_ops_cpu.cross_entropy(context, &entropy, NULL), MURAL_OK);
	mu_sum_squares squares = {.type = out->type, .n = SPAN, .x = x, .sum = &out->squares};
	squares.scratch = scratch_of(mu_ops_cpu.sum_squares_workspace(context, &squares));
	assert_int_equal(mu_ops_cpu.sum_squares(context, &squares, NULL), MURAL_OK);
	free(squares.scratch), free(x);
}

static outputs *run_all(mu_dtype type, int threads)
{
	outputs *out = calloc(1, sizeof *out);
	assert_non_null(out);
	out->type = type;
	mu_ops_context *context = open_team(threads);
	run_attention(context, out);
	run_layernorm(context, out);
	run_linear(context, out);
	run_rest(context, out);
	mu_ops_cpu.close(context);
	return out;
}

static void same_bits_for_any_team(mu_dtype type)
{
	outputs *one = run_all(type, 1);
	assert_true(one->squares > 0 && mu_element_load(type, one->d_gain, 0) != 0);
	assert_true(mu_element_load(type, one->d_bias, WIDTH - 1) != 0);
	for (int threads = 1; threads <= 5; threads++) {
		outputs *other = run_all(type, threads);
		assert_memory_equal(one, other, sizeof *one);
		free(other);
	}
	free(one);
}

static void test_same_bits_for_any_team(void **state)
{
	(void)state;
	same_bits_for_any_team(MU_F32);
	same_bits_for_any_team(MU_BF16);
}

/* 256 has neighbours 2 apart in bf16: 1200 rows that bring 1/1024 each must be summed before they are rounded. */
static void parameter_gradient_rounds_once(bool bf16_products)
{
	enum { GRADIENT_ROWS = 1200 };
	static uint16_t x[GRADIENT_ROWS], d_y[GRADIENT_ROWS];
	uint16_t d_w, d_b;
	mu_ops_context *context = open_team(2);
	context->bf16_products = bf16_products;
	for (size_t i = 0; i < GRADIENT_ROWS; i++) {
		mu_element_store(MU_BF16, x, i, 1);
		mu_element_store(MU_BF16, d_y, i, 1.0 / 1024);
	}
	mu_element_store(MU_BF16, &d_w, 0, 256);
	mu_element_store(MU_BF16, &d_b, 0, 256);
	mu_linear op = {.type = MU_BF16, .rows = GRADIENT_ROWS, .in = 1, .out = 1};
	op.x = x, op.d_y = d_y, op.d_w = &d_w, op.d_b = &d_b;
	op.scratch = scratch_of(mu_ops_cpu.linear_workspace(context, &op));
	assert_int_equal(mu_ops_cpu.linear_backward(context, &op, NULL), MURAL_OK);
	assert_true(mu_element_load(MU_BF16, &d_w, 0) == 258);
	assert_true(mu_element_load(MU_BF16, &d_b, 0) == 258);
	free(op.scratch);
	mu_ops_cpu.close(context);
}

static void test_parameter_gradients_round_once(void **state)
{
	(void)state;
	parameter_gradient_rounds_once(false);
	if (mu_dnnl_bf16_products() != MU_DNNL_BF16_NONE)
		parameter_gradient_rounds_once(true);
}

static void test_nan_reaches_the_loss(void **state)
{
	(void)state;
	mu_ops_context *context = open_team(2);
	float qkv[3 * 2 * 4] = {[9] = NAN}, o[2 * 4], lse[2];
	mu_attention attention = {.type = MU_F32, .images = 1, .tokens = 2, .heads = 1, .head_size = 4};
	attention.scratch = scratch_of(mu_ops_cpu.attention_workspace(context, &attention));
	attention.qkv = qkv, attention.o = o, attention.lse = lse;
	qkv[4] = 1; /* the broken key 0 . query 0 */
	qkv[5] = NAN;
	assert_int_equal(mu_ops_cpu.attention_forward(context, &attention, NULL), MURAL_OK);
	assert_true(isnan(o[0]) && isnan(lse[0]));

	float logits[2 * 3] = {1, 2, 3, 1, NAN, 3}, loss_B[2];
	int32_t labels[2] = {2, 2};
	mu_step_sums sums = {0};
	mu_cross_entropy entropy = {.type = MU_F32, .images = 2, .micro = &(const mu_micro){2, 2}, .classes = 3};
	entropy.logits = logits, entropy.labels = labels, entropy.loss_B = loss_B;
	entropy.sums = &sums;
	assert_int_equal(mu_ops_cpu.cross_entropy(context, &entropy, NULL), MURAL_OK);
	assert_true(isfinite(loss_B[0]) && isnan(loss_B[1]) && isnan(sums.loss));
	assert_true(sums.non_finite == 1 && sums.top1 == 1);
	free(attention.scratch);
	mu_ops_cpu.close(context);
}

static void test_gelu_of_special_numbers(void **state)
{
	(void)state;
	mu_ops_context *context = open_team(1);
	for (int activation = MU_ACTIVATION_GELU_ERF; activation <= MU_ACTIVATION_GELU_TANH; activation++) {
		const float x[] = {0, 1000, -1000, 1e30f, INFINITY, NAN, -5};
		enum { COUNT = sizeof x / sizeof *x };
		float pre[COUNT], y[COUNT], w = 1;
		mu_linear op = {
		        .type = MU_F32, .rows = COUNT, .in = 1, .out = 1, .activation = (mu_activation)activation};
		op.scratch = scratch_of(mu_ops_cpu.linear_workspace(context, &op));
		op.x = x, op.w = &w, op.pre = pre, op.y = y;
		assert_int_equal(mu_ops_cpu.linear_forward(context, &op, NULL), MURAL_OK);
		assert_true(y[0] == 0 && y[1] == 1000 && fabsf(y[2]) < 1e-30f && y[3] == 1e30f);
		assert_true(isinf(y[4]) && y[4] > 0 && isnan(y[5]));
		/* The left tail keeps its digits: -5 Phi(-5) = -1.4333e-6, and -2.2918e-7 for the tanh form. */
		const float tail = activation == MU_ACTIVATION_GELU_ERF ? -1.43325787e-6f : -2.29179e-7f;
		assert_true(fabsf(y[6] / tail - 1) < 1e-4f);
		free(op.scratch);
	}
	mu_ops_cpu.close(context);
}

static void test_unprepared_shape_is_an_error(void **state)
{
	(void)state;
	const mu_dnnl_shape shape = {.type = MU_F32, .m = 2, .n = 2, .k = 2};
	float a[4] = {1, 2, 3, 4}, b[4] = {1, 0, 0, 1}, c[4] = {0};
	mu_dnnl *dnnl = NULL;
	mural_error err = {0};
	assert_int_equal(mu_dnnl_create(&dnnl, 1, &err), MURAL_OK);
	if (strncmp(mu_dnnl_text(), "oneDNN", 6) == 0) { /* plain loops need no preparation */
		assert_int_equal(mu_dnnl_run(dnnl, &shape, a, b, NULL, c, NULL, &err), MURAL_BUG);
		assert_non_null(strstr(err.message, "not prepared"));
	}
	void *scratch = scratch_of(mu_dnnl_prepare(dnnl, &shape));
	assert_int_equal(mu_dnnl_run(dnnl, &shape, a, b, NULL, c, scratch, NULL), MURAL_OK);
	assert_memory_equal(a, c, sizeof a);
	free(scratch);
	mu_dnnl_free(dnnl);
}

static void test_bad_team_is_refused(void **state)
{
	(void)state;
	mu_ops_context *context = NULL;
	mural_error err = {0};
	assert_int_equal(mu_ops_cpu.open(NULL, -1, &context, &err), MURAL_USAGE);
	assert_non_null(strstr(err.message, "-1 threads"));
	mu_ops_cpu.close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_same_bits_for_any_team),
	        cmocka_unit_test(test_parameter_gradients_round_once),
	        cmocka_unit_test(test_nan_reaches_the_loss),
	        cmocka_unit_test(test_gelu_of_special_numbers),
	        cmocka_unit_test(test_unprepared_shape_is_an_error),
	        cmocka_unit_test(test_bad_team_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
