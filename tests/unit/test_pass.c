/* Planning a pass: the plan is what is used, blocks cost what pass.h says, impossible passes are refused.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/model_run.h"

static mural_model_config config_of(size_t depth, size_t width, size_t mlp_width)
{
	mural_model_config c;
	mural_model_defaults(&c);
	c.image_height = 12;
	c.image_width = 8;
	c.channels = 2;
	c.patch = 4;
	c.depth = depth;
	c.width = width;
	c.heads = 1;
	c.mlp_width = mlp_width;
	c.classes = 3;
	return c;
}

static void assert_plan_is_used(const mu_ops *ops, const mural_model_config *config, size_t capacity, bool training)
{
	model_run run;
	mural_error err = {0};
	model_run_open(&run, &(model_settings){.config = config,
	                                       .ops = ops,
	                                       .type = MU_F32,
	                                       .capacity = capacity,
	                                       .count = capacity,
	                                       .training = training});
	model_run_forward(&run);
	if (training)
		model_run_backward(&run);
	assert_int_equal(run.step.high, run.step.capacity);
	assert_int_equal(run.scratch.high, run.scratch.capacity);
	assert_int_equal(mu_arena_check(&run.step, &err), MURAL_OK);
	assert_int_equal(mu_arena_check(&run.scratch, &err), MURAL_OK);
	model_run_close(&run);
}

static void plan_is_use(void **state)
{
	(void)state;
	static const size_t shapes[][3] = {{1, 7, 1}, {2, 16, 64}, {3, 20, 33}};
	for (size_t t = 0; mu_ops_all[t]; t++)
		for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
			for (int variant = 0; variant < 4; variant++) {
				mural_model_config c = config_of(shapes[i][0], shapes[i][1], shapes[i][2]);
				c.drop_path = variant & 1 ? 0.2 : 0;
				c.pool = variant & 1 ? MURAL_POOL_MEAN : MURAL_POOL_TOKEN;
				assert_plan_is_used(mu_ops_all[t], &c, 1 + i, variant & 2);
			}
}

static size_t planned(size_t depth, size_t width, size_t mlp_width, size_t capacity, bool training)
{
	mural_model_config c = config_of(depth, width, mlp_width);
	mu_vit vit;
	mu_arena step, scratch;
	mu_vit_pass *pass;
	mu_ops_context *context;
	assert_int_equal(mu_vit_init(&vit, &c, NULL), MURAL_OK);
	assert_int_equal(mu_ops_reference.open(NULL, 0, &context, NULL), MURAL_OK);
	mu_arena_measure(&step, "step");
	mu_arena_measure(&scratch, "scratch");
	assert_int_equal(mu_vit_pass_create(&pass, &vit, &mu_ops_reference, context, MU_F32, capacity, training, 1,
	                                    &step, &scratch, NULL),
	                 MURAL_OK);
	mu_vit_pass_free(pass);
	mu_ops_reference.close(context);
	mu_vit_release(&vit);
	return step.high;
}

/* Three images of a capacity of eight, computed alone, are those of a capacity of three: loss and gradients, bit for bit. */
static void fewer_images_than_the_capacity(void **state)
{
	(void)state;
	for (size_t t = 0; mu_ops_all[t]; t++)
		for (int variant = 0; variant < 2; variant++) {
			mural_model_config c = config_of(3, 32, 64);
			c.drop_path = variant ? 0.2 : 0;
			model_settings s = {.config = &c,
			                    .ops = mu_ops_all[t],
			                    .type = MU_F32,
			                    .capacity = 8,
			                    .count = 3,
			                    .training = true};
			model_run large, small;
			model_run_open(&large, &s);
			s.capacity = 3;
			model_run_open(&small, &s);
			(void)model_run_forward(&large);
			model_run_backward(&large);
			mu_vit_pass_images(large.pass, 3);
			assert_true(model_run_forward(&large) == model_run_forward(&small));
			model_run_backward(&large);
			model_run_backward(&small);
			for (size_t u = 0; u < large.vit.n_units; u++)
				assert_memory_equal(large.gradients[u], small.gradients[u],
				                    large.vit.units[u].elements * sizeof(float));
			mu_vit_pass_images(large.pass, 8);
			assert_true(isfinite(model_run_forward(&large)));
			model_run_close(&large);
			model_run_close(&small);
		}
}

/* Shapes whose buffers are all multiples of an arena's alignment: T = 16 * 7 tokens. */
static void a_block_keeps_what_is_promised(void **state)
{
	(void)state;
	const size_t rows = 16 * 7, width = 32, mlp_width = 96;
	size_t buffers = 8 * rows * width + 2 * rows * mlp_width, statistics = 4 * rows + rows;
	size_t growth = planned(5, width, mlp_width, 16, true) - planned(4, width, mlp_width, 16, true);
	assert_int_equal(growth, (buffers + statistics) * sizeof(float));
	assert_int_equal(planned(5, width, mlp_width, 16, false), planned(1, width, mlp_width, 16, false));
}

static void impossible_passes_are_refused(void **state)
{
	(void)state;
	mural_model_config c = config_of(2, 8, 8);
	mu_vit vit;
	mu_arena step, scratch;
	mu_vit_pass *pass;
	mu_ops_context *context;
	mural_error err = {0};
	assert_int_equal(mu_vit_init(&vit, &c, NULL), MURAL_OK);
	assert_int_equal(mu_ops_reference.open(NULL, 0, &context, NULL), MURAL_OK);
	mu_arena_measure(&step, "step");
	mu_arena_measure(&scratch, "scratch");
	assert_int_equal(
	        mu_vit_pass_create(&pass, &vit, &mu_ops_reference, context, MU_F32, 0, true, 1, &step, &scratch, &err),
	        MURAL_USAGE);
	assert_null(pass);
	err = (mural_error){0};
	assert_int_equal(mu_vit_pass_create(&pass, &vit, &mu_ops_reference, context, MU_F32, (size_t)-1 / 4, true, 1,
	                                    &step, &scratch, &err),
	                 MURAL_USAGE);
	assert_non_null(strstr(err.message, "more memory than any machine has"));

	static _Alignas(MU_ARENA_ALIGN) char little[4096];
	err = (mural_error){0};
	mu_arena_reserve(&step, "step", little, sizeof little);
	assert_int_equal(
	        mu_vit_pass_create(&pass, &vit, &mu_ops_reference, context, MU_F32, 64, true, 1, &step, &scratch, &err),
	        MURAL_BUG);
	assert_null(pass);
	mu_arena_back_to(&step, 0);
	(void)mu_arena_take(&step, sizeof little);
	mu_vit_pass_free(NULL);
	mu_ops_reference.close(context);
	mu_vit_release(&vit);
}

static void wrong_inputs_are_bugs(void **state)
{
	(void)state;
	mural_model_config c = config_of(1, 8, 8);
	c.attention_dropout = 0.1;
	model_run run;
	model_run_open(&run, &(model_settings){.config = &c,
	                                       .ops = &mu_ops_reference,
	                                       .type = MU_F32,
	                                       .capacity = 2,
	                                       .count = 2,
	                                       .training = true});
	mu_vit_input input = run.input;
	input.stream_B = NULL;
	assert_int_equal(mu_vit_forward_unit(run.pass, 0, run.parameters[0], &input, NULL), MURAL_BUG);
	model_run_close(&run);

	model_run_open(&run, &(model_settings){.config = &c,
	                                       .ops = &mu_ops_reference,
	                                       .type = MU_F32,
	                                       .capacity = 2,
	                                       .count = 2,
	                                       .training = false});
	run.input.stream_B = NULL; /* nothing is random */
	model_run_forward(&run);
	assert_int_equal(mu_vit_backward_unit(run.pass, 0, run.parameters[0], run.gradients[0], &run.input, NULL),
	                 MURAL_BUG);
	model_run_close(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(plan_is_use),
	        cmocka_unit_test(fewer_images_than_the_capacity),
	        cmocka_unit_test(a_block_keeps_what_is_promised),
	        cmocka_unit_test(impossible_passes_are_refused),
	        cmocka_unit_test(wrong_inputs_are_bugs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
