/* Is the reference PyTorch? The values come from tests/golden/make_ops.py. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "golden/ops.h"
#include "kernels/ops.h"
#include "support/close.h"

static const mu_ops *const ops = &mu_ops_reference;

/* As in tests/golden/make_ops.py. */
static void wave(double *to, size_t n, double phase)
{
	for (size_t i = 0; i < n; i++)
		to[i] = 2 * sin(1.7 * (double)i + phase);
}

static void test_layernorm(void **state)
{
	(void)state;
	double x[10], w[5], b[5], d_y[10], y[10], mean[2], rstd[2], d_x[10], d_w[5] = {0}, d_b[5] = {0}, scratch[15];
	wave(x, 10, 0.1), wave(w, 5, 0.2), wave(b, 5, 0.3), wave(d_y, 10, 0.4);
	const mu_layernorm op = {.type = MU_F64,
	                         .tokens = 2,
	                         .width = 5,
	                         .tokens_per_image = 1,
	                         .eps = 1e-5,
	                         .x = x,
	                         .w = w,
	                         .b = b,
	                         .y = y,
	                         .mean = mean,
	                         .rstd = rstd,
	                         .d_y = d_y,
	                         .d_r = d_x,
	                         .d_w = d_w,
	                         .d_b = d_b,
	                         .scratch = scratch};
	assert_int_equal(ops->layernorm_forward(NULL, &op, NULL), MURAL_OK);
	assert_int_equal(ops->layernorm_backward(NULL, &op, NULL), MURAL_OK);
	assert_close("y", y, torch_layernorm_y, 10);
	assert_close("d_x", d_x, torch_layernorm_d_x, 10);
	assert_close("d_w", d_w, torch_layernorm_d_w, 5);
	assert_close("d_b", d_b, torch_layernorm_d_b, 5);
}

static void gelu(mu_activation activation, const double *value, const double *slope)
{
	double x[9], w = 1, pre[9], y[9], d_y[9], d_w = 0;
	wave(x, 9, 0.5);
	for (size_t i = 0; i < 9; i++) {
		x[i] *= 4;
		d_y[i] = 1;
	}
	const mu_linear op = {.type = MU_F64,
	                      .rows = 9,
	                      .in = 1,
	                      .out = 1,
	                      .activation = activation,
	                      .x = x,
	                      .w = &w,
	                      .pre = pre,
	                      .y = y,
	                      .d_y = d_y,
	                      .d_w = &d_w};
	assert_int_equal(ops->linear_forward(NULL, &op, NULL), MURAL_OK);
	assert_int_equal(ops->linear_backward(NULL, &op, NULL), MURAL_OK);
	assert_close("pre", pre, x, 9);
	assert_close("gelu", y, value, 9);
	assert_close("slope", d_y, slope, 9);
}

static void test_gelu(void **state)
{
	(void)state;
	gelu(MU_ACTIVATION_GELU_ERF, torch_gelu_erf, torch_gelu_erf_slope);
	gelu(MU_ACTIVATION_GELU_TANH, torch_gelu_tanh, torch_gelu_tanh_slope);
}

static void test_attention(void **state)
{
	(void)state;
	double qkv[72], o[24], lse[6], d_o[24], d_qkv[72], scratch[2 * 3 + 3 * 3 * 4];
	wave(qkv, 72, 0.6), wave(d_o, 24, 0.7);
	const mu_attention op = {.type = MU_F64,
	                         .images = 1,
	                         .tokens = 3,
	                         .heads = 2,
	                         .head_size = 4,
	                         .qkv = qkv,
	                         .o = o,
	                         .lse = lse,
	                         .d_o = d_o,
	                         .d_qkv = d_qkv,
	                         .scratch = scratch};
	assert_true(ops->attention_workspace(NULL, &op) <= sizeof scratch);
	assert_int_equal(ops->attention_forward(NULL, &op, NULL), MURAL_OK);
	assert_int_equal(ops->attention_backward(NULL, &op, NULL), MURAL_OK);
	assert_close("o", o, torch_attention_o, 24);
	assert_close("d_qkv", d_qkv, torch_attention_d_qkv, 72);
}

static void test_cross_entropy(void **state)
{
	(void)state;
	double logits[12], d_logits[12], loss = 0;
	float loss_B[3];
	mu_step_sums sums = {.loss = 100, .count = 10, .top1 = 5, .top5 = 5};
	wave(logits, 12, 0.8);
	const mu_cross_entropy op = {.type = MU_F64,
	                             .images = 3,
	                             .micro = &(const mu_micro){3, 3},
	                             .classes = 4,
	                             .smoothing = 0.1,
	                             .logits = logits,
	                             .labels = (const int32_t[]){2, 0, 3},
	                             .d_logits = d_logits,
	                             .loss_B = loss_B,
	                             .sums = &sums};
	assert_int_equal(ops->cross_entropy(NULL, &op, NULL), MURAL_OK);
	assert_close("d_logits", d_logits, torch_cross_entropy_d_logits, 12);
	for (size_t b = 0; b < 3; b++) {
		assert_float_equal(loss_B[b], torch_cross_entropy_loss[b], 1e-6);
		loss += torch_cross_entropy_loss[b];
	}
	loss += 100;
	assert_close("sum of losses", &sums.loss, &loss, 1);
	assert_close("counts", &sums.count, (double[]){13, 6, 8}, 3); /* four classes: all are in the top five */
	assert_true(sums.non_finite == 0 && sums.label_range == 0);
}

static void adam(bool decoupled, const double *want)
{
	double p[5], g[5], m[5] = {0}, v[5] = {0};
	wave(p, 5, 0.9);
	for (int t = 1; t <= 3; t++) {
		wave(g, 5, t);
		const mu_decision at = {.lr = 0.01,
		                        .beta1 = 0.9,
		                        .beta2 = 0.95,
		                        .bias1 = 1 - pow(0.9, t),
		                        .bias2 = 1 - pow(0.95, t),
		                        .gradient_scale = 1};
		const mu_adamw op = {.type = MU_F64,
		                     .n = 5,
		                     .at = &at,
		                     .lr_scale = 1,
		                     .eps = 1e-8,
		                     .decay = 0.1,
		                     .decoupled = decoupled,
		                     .parameter = p,
		                     .gradient = g,
		                     .m = m,
		                     .v = v};
		assert_int_equal(ops->adamw(NULL, &op, NULL), MURAL_OK);
	}
	assert_close("parameter", p, want, 5);
}

static void test_adamw(void **state)
{
	(void)state;
	adam(true, torch_adamw);
	adam(false, torch_adam);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_layernorm),     cmocka_unit_test(test_gelu),  cmocka_unit_test(test_attention),
	        cmocka_unit_test(test_cross_entropy), cmocka_unit_test(test_adamw),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
