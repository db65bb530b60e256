/* Is the reference right? Values worked out by hand or by another formula. Those of PyTorch: tests/golden/test_ops.c.
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "kernels/ops.h"
#include "support/close.h"

static const mu_ops *const ops = &mu_ops_reference;

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* s = x keep gain + r with powers of two, and a row whose norm is plain: (-1, 1) has mean 0 and variance 1. */
static void test_layernorm_adds_the_residual(void **state)
{
	(void)state;
	const double x[] = {1, 2, 4, 8}, r[] = {-1.5, 0, 0.5, 3}, keep_B[] = {0.5, 0}, gain[] = {1, 1};
	const double w[] = {3, 3}, b[] = {10, 20}, eps = 3;
	double sum[4], y[4], mean[2], rstd[2];
	const mu_layernorm op = {.type = MU_F64,
	                         .tokens = 2,
	                         .width = 2,
	                         .tokens_per_image = 1,
	                         .eps = eps,
	                         .x = x,
	                         .r = r,
	                         .w = w,
	                         .b = b,
	                         .keep_B = keep_B,
	                         .gain = gain,
	                         .sum = sum,
	                         .y = y,
	                         .mean = mean,
	                         .rstd = rstd};
	assert_int_equal(ops->layernorm_forward(NULL, &op, NULL), MURAL_OK);
	assert_close("sum", sum, (double[]){-1, 1, 0.5, 3}, 4);
	assert_close("mean", mean, (double[]){0, 1.75}, 2);
	assert_close("rstd", rstd, (double[]){0.5, 1 / sqrt(1.25 * 1.25 + 3)}, 2);
	assert_close("y", y, (double[]){8.5, 21.5}, 2);
}

static void test_linear(void **state)
{
	(void)state;
	const double x[] = {1, 2, 3, -1, 0, 1}, w[] = {1, 0, -1, 2, 1, 0.5}, b[] = {10, 20}; /* w is [out, in] */
	double y[4], d_y[] = {1, 2, -1, 0.5}, d_x[6], d_w[] = {1, 1, 1, 1, 1, 1}, d_b[] = {100, 100};
	const mu_linear op = {.type = MU_F64,
	                      .rows = 2,
	                      .in = 3,
	                      .out = 2,
	                      .x = x,
	                      .w = w,
	                      .b = b,
	                      .y = y,
	                      .d_y = d_y,
	                      .d_x = d_x,
	                      .d_w = d_w,
	                      .d_b = d_b};
	assert_int_equal(ops->linear_forward(NULL, &op, NULL), MURAL_OK);
	assert_int_equal(ops->linear_backward(NULL, &op, NULL), MURAL_OK);
	assert_close("y", y, (double[]){8, 25.5, 8, 18.5}, 4);
	assert_close("d_x", d_x, (double[]){5, 2, 0, 0, 0.5, 1.25}, 6);
	assert_close("d_w", d_w, (double[]){3, 3, 3, 2.5, 5, 7.5}, 6);
	assert_close("d_b", d_b, (double[]){100, 102.5}, 2);
}

/* Queries are 0, so every key weighs 1/2: o is the mean of the values, and lse = log 2. */
static void test_attention_without_preference(void **state)
{
	(void)state;
	const double qkv[] = {0, 5, 1, 0, 7, 4};
	double o[2], lse[2], scratch[10];
	const mu_attention op = {.type = MU_F64,
	                         .images = 1,
	                         .tokens = 2,
	                         .heads = 1,
	                         .head_size = 1,
	                         .qkv = qkv,
	                         .o = o,
	                         .lse = lse,
	                         .scratch = scratch};
	assert_int_equal(ops->attention_forward(NULL, &op, NULL), MURAL_OK);
	assert_close("o", o, (double[]){2.5, 2.5}, 2);
	assert_close("lse", lse, (double[]){log(2), log(2)}, 2);
}

typedef struct loss_result {
	mu_step_sums sums;
	int32_t best;
	double gradient[7];
} loss_result;

static loss_result loss_of(const double *logits, size_t classes, int32_t label)
{
	loss_result r = {0};
	const mu_cross_entropy op = {.type = MU_F64,
	                             .images = 1,
	                             .micro = &(const mu_micro){1, 1},
	                             .classes = classes,
	                             .logits = logits,
	                             .labels = &label,
	                             .d_logits = r.gradient,
	                             .best_B = &r.best,
	                             .sums = &r.sums};
	assert_int_equal(ops->cross_entropy(NULL, &op, NULL), MURAL_OK);
	return r;
}

static void test_top_k_with_ties(void **state)
{
	(void)state;
	const double equal[7] = {1, 1, 1, 1, 1, 1, 1}, rising[7] = {1, 2, 3, 4, 5, 6, 7};
	for (int32_t label = 0; label < 7; label++) {
		const loss_result tie = loss_of(equal, 7, label), order = loss_of(rising, 7, label);
		assert_true(tie.sums.top1 == (label < 1) && tie.sums.top5 == (label < 5));
		assert_true(order.sums.top1 == (label > 5) && order.sums.top5 == (label > 1));
		assert_int_equal(tie.best, 0);
		assert_int_equal(order.best, 6);
		assert_close("loss of equal logits", &tie.sums.loss, (double[]){log(7)}, 1);
	}
}

static void test_loss_of_strange_rows(void **state)
{
	(void)state;
	const double huge[] = {1000, 0}, broken[] = {(double)NAN, 1}, barred[] = {-(double)INFINITY, 2, 2};
	const loss_result right = loss_of(huge, 2, 0), wrong = loss_of(huge, 2, 1);
	assert_close("loss", (double[]){right.sums.loss, wrong.sums.loss}, (double[]){0, 1000}, 2);
	assert_close("gradient", wrong.gradient, (double[]){1, -1}, 2);
	assert_true(right.sums.non_finite == 0 && wrong.sums.label_range == 0);

	const loss_result nan = loss_of(broken, 2, 1);
	assert_true(nan.sums.non_finite == 1 && nan.sums.top1 == 0);

	const loss_result bar = loss_of(barred, 3, 2); /* a class at -inf is impossible, which is no trouble */
	assert_close("loss", &bar.sums.loss, (double[]){log(2)}, 1);
	assert_true(bar.sums.non_finite == 0);

	const loss_result outside = loss_of(huge, 2, 2);
	assert_true(outside.sums.label_range == 1 && outside.sums.non_finite == 0);
	assert_true(outside.sums.count == 0 && outside.sums.loss == 0);
	assert_close("gradient", outside.gradient, (double[]){0, 0}, 2);
}

/* A step too small for bf16 adds up in the master: 40 steps of 2^-10 on 1 are 5 units of bf16 there. */
static void test_adamw_master(void **state)
{
	(void)state;
	uint16_t parameter = 0x3f80, gradient = 0xbf80; /* 1, -1 */
	float master = 1, m = 0, v = 0;
	const mu_decision at = {.lr = 1.0 / 1024, .bias1 = 1, .bias2 = 1, .gradient_scale = 1};
	for (int t = 1; t <= 40; t++) {
		const mu_adamw op = {.type = MU_BF16,
		                     .n = 1,
		                     .at = &at,
		                     .lr_scale = 1,
		                     .decoupled = true,
		                     .parameter = &parameter,
		                     .master = &master,
		                     .gradient = &gradient,
		                     .m = &m,
		                     .v = &v};
		assert_int_equal(ops->adamw(NULL, &op, NULL), MURAL_OK);
	}
	assert_true(master == 1 + 40.0f / 1024);
	assert_int_equal(parameter, 0x3f85);
}

/* 2 x 4 pixels in two patches; pixel value 10 y + x, so that each can be told. */
static void test_patchify(void **state)
{
	(void)state;
	uint8_t pixels[3][8];
	for (size_t b = 0; b < 3; b++)
		for (size_t i = 0; i < 8; i++)
			pixels[b][i] = (uint8_t)(10 * (i / 4) + i % 4);
	const mu_image_cut cut_B[3] = {{0}, {.dx = 1, .flip = 1}, {0}};
	double patches[3 * 8];
	mu_patchify op = {.type = MU_F64,
	                  .images = 3,
	                  .micro = &(const mu_micro){2, 2},
	                  .channels = 1,
	                  .height = 2,
	                  .width = 4,
	                  .patch = 2,
	                  .mean = {-1},
	                  .std = {1.0f / 255},
	                  .pixels = pixels[0],
	                  .cut_B = cut_B,
	                  .patches = patches};
	assert_int_equal(ops->patchify(NULL, &op, NULL), MURAL_OK);
	/* (pixel / 255 + 1) * 255; second image: column 3 - x + 1, so its first lies outside; third: past the count */
	const double want[3 * 8] = {0, 1, 10, 11, 2, 3, 12, 13, 0, 3, 0, 13, 2, 1, 12, 11};
	for (size_t i = 0; i < COUNT(want); i++)
		assert_float_equal(patches[i], i < 16 ? want[i] + 255 : 0, 1e-4); /* std is a float */
}

static void test_embed(void **state)
{
	(void)state;
	const double patch[] = {1, 2, 3, 4}, class_token[] = {100}, position[] = {0.1, 0.2, 0.3};
	double x[6];
	mu_embed op = {.type = MU_F64,
	               .images = 2,
	               .patches = 2,
	               .width = 1,
	               .patch = patch,
	               .class_token = class_token,
	               .position = position,
	               .x = x};
	assert_int_equal(ops->embed_forward(NULL, &op, NULL), MURAL_OK);
	assert_close("x", x, (double[]){100.1, 1.2, 2.3, 100.1, 3.2, 4.3}, 6);
	op.class_token = NULL;
	assert_int_equal(ops->embed_forward(NULL, &op, NULL), MURAL_OK);
	assert_close("x", x, (double[]){1.1, 2.2, 3.1, 4.2}, 4);
}

static void test_pool(void **state)
{
	(void)state;
	const double x[] = {1, 2, 3, 4, 5, 9}, d_y[] = {6, 8};
	double y[2], d_x[6];
	mu_pool op = {.type = MU_F64,
	              .images = 1,
	              .tokens = 3,
	              .width = 2,
	              .first = 1,
	              .last = 3,
	              .x = x,
	              .y = y,
	              .d_y = d_y,
	              .d_x = d_x};
	assert_int_equal(ops->pool_forward(NULL, &op, NULL), MURAL_OK);
	assert_int_equal(ops->pool_backward(NULL, &op, NULL), MURAL_OK);
	assert_close("y", y, (double[]){4, 6.5}, 2);
	assert_close("d_x", d_x, (double[]){0, 0, 3, 4, 3, 4}, 6);
}

/* The mask is the one that ops.h states, and it keeps as many as it should: 40000 draws have a standard deviation of
 * sqrt(p (1 - p) / 40000), of which 4 are allowed. */
static void test_dropout(void **state)
{
	(void)state;
	static float x[4 * 10000];
	const uint64_t stream_B[] = {mu_stream(0, 0), mu_stream(0, 1), mu_stream(7, 0), mu_stream(7, 123456)};
	const double p = 0.3;
	for (size_t i = 0; i < COUNT(x); i++)
		x[i] = 1;
	const mu_dropout op = {.type = MU_F32,
	                       .images = 4,
	                       .elements_per_image = 10000,
	                       .x = x,
	                       .rule = {.key = mu_random_key_make(5, MU_PURPOSE_HIDDEN_DROPOUT, 2),
	                                .threshold = mu_drop_threshold(p),
	                                .scale = (float)(1 / (1 - p)),
	                                .stream_B = stream_B}};
	assert_int_equal(ops->dropout(NULL, &op, NULL), MURAL_OK);
	size_t kept = 0;
	for (size_t i = 0; i < COUNT(x); i++) {
		const bool keep = mu_random_u32(op.rule.key, stream_B[i / 10000], i % 10000) >= op.rule.threshold;
		assert_true(x[i] == (keep ? op.rule.scale : 0));
		kept += keep;
	}
	assert_float_equal((double)kept / COUNT(x), 1 - p, 4 * sqrt(p * (1 - p) / COUNT(x)));
}

static void test_drop_path(void **state)
{
	(void)state;
	uint64_t stream_B[1000];
	double keep_B[1000];
	for (size_t b = 0; b < 1000; b++)
		stream_B[b] = mu_stream(1, (uint32_t)b);
	mu_drop_path op = {.type = MU_F64,
	                   .images = 1000,
	                   .keep_B = keep_B,
	                   .rule = {.key = mu_random_key_make(5, MU_PURPOSE_DROP_PATH, 3),
	                            .threshold = mu_drop_threshold(0.2),
	                            .scale = 1.25f,
	                            .stream_B = stream_B}};
	assert_int_equal(ops->drop_path(NULL, &op, NULL), MURAL_OK);
	double sum = 0;
	for (size_t b = 0; b < 1000; b++) {
		assert_true(keep_B[b] == 0 || keep_B[b] == 1.25);
		sum += keep_B[b];
	}
	assert_float_equal(sum / 1000, 1, 4 * 1.25 * sqrt(0.2 * 0.8 / 1000));
	op.rule = (mu_dropout_rule){.scale = 1};
	assert_int_equal(ops->drop_path(NULL, &op, NULL), MURAL_OK);
	assert_true(keep_B[0] == 1 && keep_B[999] == 1);
}

static void test_sum_squares_adds(void **state)
{
	(void)state;
	const float x[] = {3, 4, 1e-3f};
	double sum = 100;
	const mu_sum_squares op = {.type = MU_F32, .n = 3, .x = x, .sum = &sum};
	assert_int_equal(ops->sum_squares(NULL, &op, NULL), MURAL_OK);
	assert_true(sum == 100 + (9.0 + 16.0 + (double)1e-3f * (double)1e-3f));
}

static void test_tables_by_name(void **state)
{
	(void)state;
	assert_ptr_equal(mu_ops_find("reference"), &mu_ops_reference);
	assert_null(mu_ops_find("abacus"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_layernorm_adds_the_residual),
	        cmocka_unit_test(test_linear),
	        cmocka_unit_test(test_attention_without_preference),
	        cmocka_unit_test(test_top_k_with_ties),
	        cmocka_unit_test(test_loss_of_strange_rows),
	        cmocka_unit_test(test_adamw_master),
	        cmocka_unit_test(test_patchify),
	        cmocka_unit_test(test_embed),
	        cmocka_unit_test(test_pool),
	        cmocka_unit_test(test_dropout),
	        cmocka_unit_test(test_drop_path),
	        cmocka_unit_test(test_sum_squares_adds),
	        cmocka_unit_test(test_tables_by_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
