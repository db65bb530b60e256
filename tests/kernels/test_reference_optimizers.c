/* Is the reference right in the rows of optimizers? Values worked out by hand, with powers of two where it goes.
 * Whole runs against PyTorch and timm: tests/golden/test_optimizers.c.
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

/* g = gradient / 2 + p / 8: 1.25 and -0.5. */
static void test_sgd(void **state)
{
	(void)state;
	double p[] = {2, -4};
	const double gradient[] = {2, 0};
	mu_decision at = {.number = 2, .lr = 1, .gradient_scale = 0.5};
	mu_sgd op = {.type = MU_F64,
	             .n = 2,
	             .at = &at,
	             .lr_scale = 0.5,
	             .decay = 0.125,
	             .parameter = p,
	             .gradient = gradient};
	assert_int_equal(ops->sgd(NULL, &op, NULL), MURAL_OK);
	assert_close("plain", p, (double[]){2 - 0.625, -4 + 0.25}, 2);

	double m[] = {0, 8};
	p[0] = 2, p[1] = -4;
	op.momentum = 0.5, op.dampening = 0.75, op.m = m;
	assert_int_equal(ops->sgd(NULL, &op, NULL), MURAL_OK);
	assert_close("m", m, (double[]){0.3125, 4 - 0.125}, 2);
	assert_close("momentum", p, (double[]){2 - 0.15625, -4 - 1.9375}, 2);

	p[0] = 2, p[1] = -4, m[0] = 0, m[1] = 0;
	at.number = 1, op.nesterov = true; /* the first gradient is not dampened */
	assert_int_equal(ops->sgd(NULL, &op, NULL), MURAL_OK);
	assert_close("m", m, (double[]){1.25, -0.5}, 2);
	assert_close("nesterov", p, (double[]){2 - 0.5 * 1.875, -4 + 0.5 * 0.75}, 2);
}

static void test_lion(void **state)
{
	(void)state;
	double p[] = {2, -4, 1, 3, 1}, m[] = {1, -1, 0, 4, NAN};
	const double gradient[] = {8, -8, 0, -16, 1};
	const mu_decision at = {.lr = 0.5, .beta1 = 0.5, .beta2 = 0.75, .gradient_scale = 0.5};
	const mu_lion op = {.type = MU_F64,
	                    .n = 5,
	                    .at = &at,
	                    .lr_scale = 0.5,
	                    .decay = 0.5,
	                    .parameter = p,
	                    .gradient = gradient,
	                    .m = m};
	assert_int_equal(ops->lion(NULL, &op, NULL), MURAL_OK);
	assert_close("p", p, (double[]){1.75 - 0.25, -3.5 + 0.25, 0.875, 2.625 + 0.25}, 4);
	assert_close("m", m, (double[]){1.75, -1.75, 0, 1}, 4);
	assert_true(isnan(p[4]) && isnan(m[4])); /* what is broken stays visible */
}

static void test_lamb_and_its_step(void **state)
{
	(void)state;
	double p[] = {3, 4}, gradient[] = {1, -1}, m[] = {1, 1}, v[] = {3.25, 15.25};
	mu_decision at = {.lr = 2, .beta1 = 0.5, .beta2 = 0.75, .bias1 = 0.5, .bias2 = 0.25, .gradient_scale = 5};
	mu_lamb op = {.type = MU_F64,
	              .n = 2,
	              .at = &at,
	              .eps = 1,
	              .decay = 0.5,
	              .parameter = p,
	              .gradient = gradient,
	              .m = m,
	              .v = v,
	              .update = gradient};
	assert_int_equal(ops->lamb(NULL, &op, NULL), MURAL_OK);
	assert_close("m", m, (double[]){3, -2}, 2);
	assert_close("v", v, (double[]){8.6875, 17.6875}, 2);
	const double u[] = {6 / (sqrt(34.75) + 1) + 1.5, -4 / (sqrt(70.75) + 1) + 2};
	assert_close("update", gradient, u, 2);
	op.eps_inside = true, at.beta1 = at.beta2 = 1, op.decay = 0;
	assert_int_equal(ops->lamb(NULL, &op, NULL), MURAL_OK);
	assert_close("inside", gradient, (double[]){6 / sqrt(35.75), -4 / sqrt(71.75)}, 2);

	const mu_extent extents[] = {{0, 2}, {1, 1}, {1, 0}};
	double squares[] = {NAN, NAN, NAN};
	const mu_tensor_norms norms = {.type = MU_F64, .n_tensors = 3, .extents = extents, .x = p, .squares = squares};
	assert_int_equal(ops->tensor_norms(NULL, &norms, NULL), MURAL_OK);
	assert_close("squares", squares, (double[]){25, 16, 0}, 3);

	const double update[] = {1, 2}, four = 4;
	mu_apply_update step = {.type = MU_F64,
	                        .n = 2,
	                        .at = &at,
	                        .lr_scale = 0.25,
	                        .scale = 0.5,
	                        .decay = 0.5,
	                        .min_ratio = 0,
	                        .max_ratio = 10,
	                        .parameter = p,
	                        .update = update};
	assert_int_equal(ops->apply_update(NULL, &step, NULL), MURAL_OK);
	assert_close("without a ratio", p, (double[]){2.25 - 0.25, 3 - 0.5}, 2);
	step.decay = 0, step.weight_square = &squares[0], step.update_square = &four; /* 5 / 2 */
	assert_int_equal(ops->apply_update(NULL, &step, NULL), MURAL_OK);
	assert_close("ratio", p, (double[]){2 - 0.625, 2.5 - 1.25}, 2);
	step.max_ratio = 2;
	assert_int_equal(ops->apply_update(NULL, &step, NULL), MURAL_OK);
	assert_close("at most", p, (double[]){1.375 - 0.5, 1.25 - 1}, 2);
	step.max_ratio = 8, step.min_ratio = 4;
	assert_int_equal(ops->apply_update(NULL, &step, NULL), MURAL_OK);
	assert_close("at least", p, (double[]){0.875 - 1, 0.25 - 2}, 2);
	step.weight_square = &squares[2];
	assert_int_equal(ops->apply_update(NULL, &step, NULL), MURAL_OK);
	assert_close("zero", p, (double[]){-0.125 - 0.25, -1.75 - 0.5}, 2);
}

static void test_momentum(void **state)
{
	(void)state;
	double m[] = {4, 0}, update[2];
	const double gradient[] = {-8, 1};
	mu_momentum op = {.type = MU_F64,
	                  .n = 2,
	                  .momentum = 0.75,
	                  .at = &(const mu_decision){.gradient_scale = 2},
	                  .gradient = gradient,
	                  .m = m,
	                  .update = update};
	assert_int_equal(ops->momentum(NULL, &op, NULL), MURAL_OK);
	assert_close("m", m, (double[]){-1, 0.5}, 2);
	assert_close("update", update, m, 2);
	op.nesterov = true;
	assert_int_equal(ops->momentum(NULL, &op, NULL), MURAL_OK);
	assert_close("m", m, (double[]){-4.75, 0.875}, 2);
	assert_close("nesterov", update, (double[]){-3.5625 - 4, 0.65625 + 0.5}, 2);
}

/* A matrix with one number in each column and no two in a row has those as singular values: each goes through the
 * polynomial by itself. */
static void test_newton_schulz(void **state)
{
	(void)state;
	double wide[] = {0, 3, 0, 0, 0, -4}, tall[] = {0, 0, 3, 0, 0, -4}, scratch[2 * 6 + 2 * 4], want[] = {0.6, -0.8};
	mu_newton_schulz op = {.type = MU_F64,
	                       .rows = 2,
	                       .cols = 3,
	                       .steps = 2,
	                       .a = 2,
	                       .b = -1.5,
	                       .c = 0.5,
	                       .x = wide,
	                       .scratch = scratch};
	for (size_t i = 0; i < 2; i++) {
		double x = want[i] * 5 / (5 + 1e-7);
		for (int step = 0; step < 2; step++)
			x = 2 * x - 1.5 * pow(x, 3) + 0.5 * pow(x, 5);
		want[i] = x;
	}
	assert_true(ops->newton_schulz_workspace(NULL, &op) <= sizeof scratch);
	assert_int_equal(ops->newton_schulz(NULL, &op, NULL), MURAL_OK);
	assert_close("wide", wide, (double[]){0, want[0], 0, 0, 0, want[1]}, 6);
	op.rows = 3, op.cols = 2, op.x = tall;
	assert_int_equal(ops->newton_schulz(NULL, &op, NULL), MURAL_OK);
	assert_close("tall", tall, (double[]){0, 0, want[0], 0, 0, want[1]}, 6);
	double nothing = 0;
	op.rows = op.cols = 1, op.x = &nothing;
	assert_int_equal(ops->newton_schulz(NULL, &op, NULL), MURAL_OK);
	assert_true(nothing == 0);
}

static void test_ema(void **state)
{
	(void)state;
	double average[] = {1, -2};
	const double p[] = {3, 2};
	mu_ema op = {.type = MU_F64,
	             .n = 2,
	             .at = &(const mu_decision){.ema_decay = 0.75},
	             .parameter = p,
	             .average = average};
	assert_int_equal(ops->ema(NULL, &op, NULL), MURAL_OK);
	assert_close("average", average, (double[]){1.5, -1}, 2);
	float narrow[] = {1}; /* of the master, where there is one */
	const uint16_t bf16[] = {0};
	op = (mu_ema){.type = MU_BF16,
	              .n = 1,
	              .at = &(const mu_decision){.ema_decay = 0.5},
	              .parameter = bf16,
	              .master = (float[]){3},
	              .average = narrow};
	assert_int_equal(ops->ema(NULL, &op, NULL), MURAL_OK);
	assert_true(narrow[0] == 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_sgd),
	        cmocka_unit_test(test_lion),
	        cmocka_unit_test(test_lamb_and_its_step),
	        cmocka_unit_test(test_momentum),
	        cmocka_unit_test(test_newton_schulz),
	        cmocka_unit_test(test_ema),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
