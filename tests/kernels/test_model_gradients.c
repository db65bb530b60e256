/* The whole model in double: backward against central differences of the loss, and what must not change a gradient.
 * timeout: 240
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "support/model_run.h"

/* Error of (f(x + h) - f(x - h)) / 2h: rounding 1e-16 * loss / h = 2e-11, curvature h^2 f''' / 6, both far below this
 * for gradients of order 0.01 .. 1. */
#define STEP 1e-5
#define TOLERANCE 1e-8

static mural_model_config small_config(void)
{
	mural_model_config c;
	mural_model_defaults(&c);
	c.image_height = 6;
	c.image_width = 4;
	c.channels = 2;
	c.patch = 2;
	c.depth = 3;
	c.width = 8;
	c.heads = 2;
	c.mlp_width = 12;
	c.classes = 5;
	return c;
}

static double difference(model_run *run, void *span, size_t i)
{
	double value = model_run_load(run, span, i);
	model_run_store(run, span, i, value + STEP);
	double above = model_run_forward(run);
	model_run_store(run, span, i, value - STEP);
	double below = model_run_forward(run);
	model_run_store(run, span, i, value);
	return (above - below) / (2 * STEP);
}

/* Checks every stride-th element of every tensor. */
static void check_gradients(const mural_model_config *config, size_t capacity, size_t count, double smoothing,
                            size_t stride)
{
	model_run run;
	model_run_open(&run, &(model_settings){.config = config,
	                                       .ops = &mu_ops_reference,
	                                       .type = MU_F64,
	                                       .capacity = capacity,
	                                       .count = count,
	                                       .training = true,
	                                       .label_smoothing = smoothing});
	model_run_forward(&run);
	assert_true(run.sums.non_finite == 0 && run.sums.label_range == 0);
	model_run_backward(&run);
	double squares = 0;
	for (size_t u = 0; u < run.vit.n_units; u++)
		for (size_t i = 0; i < run.vit.units[u].n_tensors; i++) {
			const mu_tensor *tensor = &run.vit.units[u].tensors[i];
			for (size_t e = tensor->number % stride; e < tensor->elements; e += stride) {
				size_t at = tensor->offset + e;
				double gradient = model_run_load(&run, run.gradients[u], at);
				double expected = difference(&run, run.parameters[u], at);
				if (!(fabs(gradient - expected) <= TOLERANCE))
					fail_msg("%s[%zu]: gradient %.12g, difference %.12g", tensor->name, e, gradient,
					         expected);
				squares += gradient * gradient;
			}
		}
	assert_true(squares > 1e-3); /* zeros would agree with zeros */
	model_run_close(&run);
}

static void everything_on(void **state)
{
	(void)state;
	mural_model_config c = small_config();
	c.dropout = 0.2;
	c.attention_dropout = 0.1;
	c.drop_path = 0.4;
	check_gradients(&c, 4, 3, 0.1, 1);
}

static void plain_token_pool(void **state)
{
	(void)state;
	mural_model_config c = small_config();
	check_gradients(&c, 3, 3, 0, 2);
}

static void mean_pool_without_class_token(void **state)
{
	(void)state;
	mural_model_config c = small_config();
	c.pool = MURAL_POOL_MEAN;
	c.class_token = false;
	c.gelu = MURAL_GELU_TANH;
	check_gradients(&c, 3, 2, 0.1, 2);
}

static void mean_pool_with_class_token_and_dropout(void **state)
{
	(void)state;
	mural_model_config c = small_config();
	c.pool = MURAL_POOL_MEAN;
	c.dropout = 0.3;
	check_gradients(&c, 2, 2, 0, 2);
}

static void drop_path_alone(void **state)
{
	(void)state;
	mural_model_config c = small_config();
	c.drop_path = 0.5;
	check_gradients(&c, 5, 5, 0, 2);
}

static void attention_dropout_alone(void **state)
{
	(void)state;
	mural_model_config c = small_config();
	c.attention_dropout = 0.4;
	c.depth = 1;
	check_gradients(&c, 3, 3, 0, 2);
}

/* Two runs that must have the same gradients but for rounding. */
static void assert_same_gradients(const model_run *a, const model_run *b, double tolerance)
{
	double largest = 0, error = 0;
	for (size_t u = 0; u < a->vit.n_units; u++)
		for (size_t i = 0; i < a->vit.units[u].elements; i++) {
			double expected = model_run_load(a, a->gradients[u], i);
			largest = fmax(largest, fabs(expected));
			error = fmax(error, fabs(expected - model_run_load(b, b->gradients[u], i)));
		}
	assert_true(largest > 1e-3);
	assert_true(error <= tolerance * largest);
}

static void short_count_changes_no_gradient(void **state)
{
	(void)state;
	mural_model_config c = small_config();
	c.dropout = 0.2;
	c.attention_dropout = 0.1;
	c.drop_path = 0.4;
	for (int pool = 0; pool < 2; pool++) {
		c.pool = pool ? MURAL_POOL_MEAN : MURAL_POOL_TOKEN;
		model_run exact, roomy;
		model_settings settings = {.config = &c,
		                           .ops = &mu_ops_reference,
		                           .type = MU_F64,
		                           .capacity = 3,
		                           .count = 3,
		                           .training = true,
		                           .label_smoothing = 0.1};
		model_run_open(&exact, &settings);
		settings.capacity = 8;
		model_run_open(&roomy, &settings);
		double expected = model_run_forward(&exact), loss = model_run_forward(&roomy);
		assert_true(fabs(expected - loss) <= 1e-12 * expected);
		assert_true(roomy.sums.count == 3);
		model_run_backward(&exact);
		model_run_backward(&roomy);
		assert_same_gradients(&exact, &roomy, 1e-12);
		model_run_close(&exact);
		model_run_close(&roomy);
	}
}

static void no_images_no_gradient(void **state)
{
	(void)state;
	mural_model_config c = small_config();
	model_run run;
	model_run_open(&run, &(model_settings){.config = &c,
	                                       .ops = &mu_ops_reference,
	                                       .type = MU_F64,
	                                       .capacity = 2,
	                                       .count = 0,
	                                       .training = true});
	assert_true(model_run_forward(&run) == 0);
	model_run_backward(&run);
	for (size_t u = 0; u < run.vit.n_units; u++)
		for (size_t i = 0; i < run.vit.units[u].elements; i++)
			assert_true(model_run_load(&run, run.gradients[u], i) == 0);
	model_run_close(&run);
}

/* Micro-batches accumulate: two backwards give twice the gradient, and padding stays 0. */
static void gradients_accumulate(void **state)
{
	(void)state;
	mural_model_config c = small_config();
	model_run run;
	model_run_open(&run, &(model_settings){.config = &c,
	                                       .ops = &mu_ops_reference,
	                                       .type = MU_F64,
	                                       .capacity = 2,
	                                       .count = 2,
	                                       .training = true});
	model_run_forward(&run);
	model_run_backward(&run);
	double first[3];
	for (size_t u = 0; u < 3; u++)
		first[u] = model_run_load(&run, run.gradients[u], 5);
	mural_error err = {0};
	model_run_forward(&run);
	for (size_t u = run.vit.n_units; u-- > 0;)
		assert_int_equal(
		        mu_vit_backward_unit(run.pass, u, run.parameters[u], run.gradients[u], &run.input, &err),
		        MURAL_OK);
	for (size_t u = 0; u < 3; u++)
		assert_true(fabs(model_run_load(&run, run.gradients[u], 5) - 2 * first[u]) <= 1e-12);
	const mu_unit *head = &run.vit.units[run.vit.n_units - 1];
	for (size_t i = head->tensors[3].offset + c.classes; i < head->elements; i++)
		assert_true(model_run_load(&run, run.gradients[run.vit.n_units - 1], i) == 0);
	model_run_close(&run);
}

/* Shared buffers must not be overwritten before they are read, nor overrun, whatever is the widest of them. */
static void inference_equals_training(void **state)
{
	(void)state;
	static const size_t mlp_widths[] = {1, 12, 40};
	for (size_t i = 0; i < 3; i++)
		for (int pool = 0; pool < 2; pool++) {
			mural_model_config c = small_config();
			c.mlp_width = mlp_widths[i];
			c.pool = pool ? MURAL_POOL_MEAN : MURAL_POOL_TOKEN;
			model_run training, inference;
			model_settings settings = {.config = &c,
			                           .ops = &mu_ops_reference,
			                           .type = MU_F64,
			                           .capacity = 3,
			                           .count = 2,
			                           .training = true};
			model_run_open(&training, &settings);
			c.dropout = c.drop_path = c.attention_dropout = 0.5; /* off when not training */
			settings.training = false;
			model_run_open(&inference, &settings);
			assert_true(inference.step.high < training.step.high);
			double expected = model_run_forward(&training);
			assert_true(model_run_forward(&inference) == expected);
			assert_true(isfinite(expected));
			model_run_backward(&training); /* for the sanitizer */
			model_run_close(&training);
			model_run_close(&inference);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(everything_on),
	        cmocka_unit_test(plain_token_pool),
	        cmocka_unit_test(mean_pool_without_class_token),
	        cmocka_unit_test(mean_pool_with_class_token_and_dropout),
	        cmocka_unit_test(drop_path_alone),
	        cmocka_unit_test(attention_dropout_alone),
	        cmocka_unit_test(short_count_changes_no_gradient),
	        cmocka_unit_test(no_images_no_gradient),
	        cmocka_unit_test(gradients_accumulate),
	        cmocka_unit_test(inference_equals_training),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
