/* Memory is what was planned: arenas to the byte, the process within 5 %. timeout: 300
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "monitor/host_stats.h"
#include "mural/plan.h"
#include "support/training.h"

#define GIB (1024.0 * 1024.0 * 1024.0)

/* Trains some steps and evaluates once; checks plan against use. Returns the planned total and the growth of VmHWM. */
static void train(const char *options, double *planned_bytes, double *growth)
{
	test_training t;
	mural_evaluation evaluation;
	mural_memory_plan planned, used;
	test_training_configure(&t, options);
	double before = (double)mu_process_peak_memory();
	test_training_open(&t);
	test_training_run(&t);
	assert_int_equal(mural_engine_evaluate(t.engine, t.test, &evaluation, NULL), MURAL_OK);
	assert_int_equal(evaluation.images, mural_data_get_facts(t.test)->images);
	*growth = (double)mu_process_peak_memory() - before;
	mural_engine_memory(t.engine, &planned, &used);
	assert_memory_equal(&planned, &used, sizeof planned);
	*planned_bytes = (double)planned.total;
	test_training_close(&t);
}

static void arenas_are_used_to_the_byte(void **state)
{
	(void)state;
	double planned, growth;
	train(TEST_TRAINING_TINY, &planned, &growth);
	assert_true(planned > 0);
}

static void process_grows_as_planned(void **state)
{
	(void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	skip(); /* their shadow memory is counted too */
#endif
	double planned, growth;
	train("--model vit_b_16 --image-size 64 --classes 1000 --data synthetic --synthetic-images 16 --batch 8 "
	      "--max-steps 2",
	      &planned, &growth);
	print_message("planned %.3f GiB, VmHWM grew by %.3f GiB, ratio %.4f\n", planned / GIB, growth / GIB,
	              growth / planned);
	assert_true(planned > GIB);
	assert_true(growth < 1.05 * planned);
	assert_true(growth > 0.95 * planned);
}

static void too_large_names_what_fits(void **state)
{
	(void)state;
	test_training t;
	mural_error err = {0};
	test_training_configure(&t, "--model vit_l_16 --classes 1000 --data synthetic --synthetic-images 100000 "
	                            "--batch 65536 --prefetch 1");
	assert_int_equal(mural_comm_open(&t.comm, "self", &err), MURAL_OK);
	const mural_engine_settings settings = {.config = &t.config, .comm = t.comm, .training = true};
	assert_int_equal(mural_engine_create(&t.engine, &settings, &err), MURAL_OUT_OF_MEMORY);
	assert_null(t.engine);
	if (!strstr(err.message, "largest micro-batch that fits: ") && !strstr(err.message, "not even one image"))
		fail_msg("%s", err.message);
	test_training_close(&t);
}

/* mural_plan_memory says to the byte what an engine then plans; and the batch that it calls the largest is that. */
static void a_plan_without_training_is_the_engines(void **state)
{
	(void)state;
	static const char *const options[] = {
	        TEST_TRAINING_TINY, TEST_TRAINING_TINY " --ema 0.99 --optimizer SGD --checkpoint-epochs 0",
	        TEST_TRAINING_TINY " --ops reference --precision bf16 --clip 0 --optimizer Lion"};
	for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
		test_training t;
		mural_error err = {0};
		mural_memory_plan planned, used, forecast;
		test_training_configure(&t, options[i]);
		test_training_open(&t);
		mural_engine_memory(t.engine, &planned, &used);
		const mural_engine_settings settings = {
		        .config = &t.config, .training = true, .train = t.train, .test = t.test};
		mural_memory_fit fit = {.bytes = planned.total};
		if (mural_plan_memory(&forecast, &settings, 1, &fit, &err) != MURAL_OK)
			fail_msg("%s", err.message);
		assert_memory_equal(&planned, &forecast, sizeof planned);
		assert_true(fit.largest_micro_batch >= 4);
		t.config.batch.micro_batch = fit.largest_micro_batch + 1;
		assert_int_equal(mural_plan_memory(&forecast, &settings, 1, NULL, &err), MURAL_OK);
		assert_true(forecast.total > planned.total);
		fit.bytes = 1;
		assert_int_equal(mural_plan_memory(&forecast, &settings, 1, &fit, &err), MURAL_OK);
		assert_int_equal(fit.largest_micro_batch, 0);
		test_training_close(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(process_grows_as_planned), /* first: before anything else has raised the peak */
	        cmocka_unit_test(a_plan_without_training_is_the_engines),
	        cmocka_unit_test(arenas_are_used_to_the_byte),
	        cmocka_unit_test(too_large_names_what_fits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
