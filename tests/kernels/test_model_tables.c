/* The whole model on every table in fp32 against the reference in double: nothing that a table may do with aliased,
 * shared or undefined buffers shows.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "support/model_run.h"

/* Two fp32 roundings per operation through 3 blocks of sums up to 60 terms, relative to a tensor's norm. */
#define TOLERANCE 2e-5
#define FLOOR 1e-6 /* of all gradients: a key bias's true gradient is 0 */

static mural_model_config odd_config(void)
{
	mural_model_config c;
	mural_model_defaults(&c);
	c.image_height = 15;
	c.image_width = 9;
	c.channels = 1;
	c.patch = 3;
	c.depth = 3;
	c.width = 21;
	c.heads = 3;
	c.mlp_width = 50;
	c.classes = 11;
	return c;
}

/* Norm of a tensor's gradient in double, and of its difference from the one in fp32. */
static void measure(const model_run *exact, const model_run *single, size_t unit, const mu_tensor *tensor, double *size,
                    double *error)
{
	double squares = 0, differences = 0;
	for (size_t e = 0; e < tensor->elements; e++) {
		double expected = model_run_load(exact, exact->gradients[unit], tensor->offset + e);
		double d = expected - model_run_load(single, single->gradients[unit], tensor->offset + e);
		squares += expected * expected;
		differences += d * d;
	}
	*size = sqrt(squares);
	*error = sqrt(differences);
}

static void compare_gradients(const model_run *exact, const model_run *single)
{
	double all = 0, size, error;
	for (int round = 0; round < 2; round++)
		for (size_t u = 0; u < exact->vit.n_units; u++)
			for (size_t i = 0; i < exact->vit.units[u].n_tensors; i++) {
				const mu_tensor *tensor = &exact->vit.units[u].tensors[i];
				measure(exact, single, u, tensor, &size, &error);
				if (round == 0)
					all = hypot(all, size);
				else if (!(error <= TOLERANCE * fmax(size, FLOOR * all)))
					fail_msg("%s: gradient of %s is off by %g, its norm is %g",
					         single->settings.ops->name, tensor->name, error, size);
			}
}

static void compare(const mural_model_config *config, size_t capacity, size_t count, bool training)
{
	for (size_t t = 0; mu_ops_all[t]; t++) {
		model_run exact, single;
		model_settings settings = {.config = config,
		                           .ops = &mu_ops_reference,
		                           .type = MU_F64,
		                           .capacity = capacity,
		                           .count = count,
		                           .training = training,
		                           .label_smoothing = 0.1};
		model_run_open(&exact, &settings);
		settings.ops = mu_ops_all[t];
		settings.type = MU_F32;
		model_run_open(&single, &settings);
		double expected = model_run_forward(&exact), loss = model_run_forward(&single);
		assert_true(fabs(loss - expected) <= 1e-5 * expected);
		assert_true(exact.sums.count == single.sums.count && exact.sums.top1 == single.sums.top1);
		assert_true(single.sums.non_finite == 0 && single.sums.label_range == 0);
		assert_memory_equal(exact.best_B, single.best_B, count * sizeof *exact.best_B);
		if (training) {
			model_run_backward(&exact);
			model_run_backward(&single);
			compare_gradients(&exact, &single);
		}
		model_run_close(&exact);
		model_run_close(&single);
	}
}

static void training_with_everything_on(void **state)
{
	(void)state;
	mural_model_config c = odd_config();
	c.dropout = 0.1;
	c.attention_dropout = 0.2;
	c.drop_path = 0.3;
	compare(&c, 5, 4, true);
}

static void training_plain(void **state)
{
	(void)state;
	mural_model_config c = odd_config();
	compare(&c, 3, 3, true);
	c.gelu = MURAL_GELU_TANH;
	c.pool = MURAL_POOL_MEAN;
	compare(&c, 4, 1, true);
	c.class_token = false;
	compare(&c, 1, 1, true);
}

static void inference(void **state)
{
	(void)state;
	mural_model_config c = odd_config();
	compare(&c, 6, 5, false);
	c.mlp_width = 2;
	c.pool = MURAL_POOL_MEAN;
	compare(&c, 2, 2, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(training_with_everything_on),
	        cmocka_unit_test(training_plain),
	        cmocka_unit_test(inference),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
