/* Memory is what was planned: arenas to the byte, the process within 5 %. timeout: 300
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "monitor/host_stats.h"
#include "mural/engine.h"

#define GIB (1024.0 * 1024.0 * 1024.0)

static void resolve(mural_config *config, const char *const *argv, int argc)
{
	mural_error err = {0};
	mural_config_sources sources = {.argc = argc, .argv = argv, .ranks = 1};
	mural_status status = mural_config_resolve(config, NULL, &sources, &err);
	if (status != MURAL_OK)
		fail_msg("%s", err.message);
}

/* Trains some steps and evaluates once; checks plan against use. Returns the planned total and the growth of VmHWM. */
static void train(const mural_config *config, double *planned_bytes, double *growth)
{
	mural_error err = {0};
	const mural_model_config *m = &config->model;
	mural_comm *comm;
	mural_data *data;
	assert_int_equal(mural_comm_open(&comm, "self", &err), MURAL_OK);
	assert_int_equal(mural_data_open(&data, &config->data, MURAL_SPLIT_TRAIN, 1, m->channels, m->image_height,
	                                 m->image_width, m->classes, &err),
	                 MURAL_OK);
	double before = (double)mu_process_peak_memory();
	mural_engine_settings settings = {
	        .config = config, .comm = comm, .training = true, .train = data, .test = data};
	mural_engine *engine;
	if (mural_engine_create(&engine, &settings, &err) != MURAL_OK)
		fail_msg("%s\n%s", err.message, err.where);
	assert_int_equal(mural_engine_train_begin(engine, &err), MURAL_OK);
	mural_step_facts step;
	do {
		if (mural_engine_step(engine, &step, &err) != MURAL_OK)
			fail_msg("%s", err.message);
	} while (!step.finished);
	mural_evaluation evaluation;
	assert_int_equal(mural_engine_evaluate(engine, data, &evaluation, &err), MURAL_OK);
	assert_int_equal(evaluation.images, mural_data_get_facts(data)->images);
	*growth = (double)mu_process_peak_memory() - before;
	mural_memory_plan planned, used;
	mural_engine_memory(engine, &planned, &used);
	assert_memory_equal(&planned, &used, sizeof planned);
	*planned_bytes = (double)planned.total;
	mural_engine_free(engine);
	mural_data_free(data);
	mural_comm_close(comm);
}

static void arenas_are_used_to_the_byte(void **state)
{
	(void)state;
	const char *const argv[] = {
	        "--model",
	        "mu",
	        "--image-size",
	        "12x20",
	        "--patch",
	        "4",
	        "--channels",
	        "3",
	        "--classes",
	        "5",
	        "--data",
	        "synthetic",
	        "--synthetic-images",
	        "30",
	        "--batch",
	        "8",
	        "--micro-batch",
	        "4",
	        "--dropout",
	        "0.1",
	        "--drop-path",
	        "0.1",
	        "--crop-padding",
	        "1",
	};
	mural_config config;
	resolve(&config, argv, sizeof argv / sizeof *argv);
	double planned, growth;
	train(&config, &planned, &growth);
	assert_true(planned > 0);
}

static void process_grows_as_planned(void **state)
{
	(void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	skip(); /* their shadow memory is counted too */
#endif
	const char *const argv[] = {
	        "--model",   "vit_b_16",           "--image-size", "64",      "--classes", "1000",        "--data",
	        "synthetic", "--synthetic-images", "16",           "--batch", "8",         "--max-steps", "2",
	};
	mural_config config;
	resolve(&config, argv, sizeof argv / sizeof *argv);
	double planned, growth;
	train(&config, &planned, &growth);
	print_message("planned %.3f GiB, VmHWM grew by %.3f GiB, ratio %.4f\n", planned / GIB, growth / GIB,
	              growth / planned);
	assert_true(planned > GIB);
	assert_true(growth < 1.05 * planned);
	assert_true(growth > 0.95 * planned);
}

static void too_large_names_what_fits(void **state)
{
	(void)state;
	const char *const argv[] = {
	        "--model", "vit_l_16", "--classes", "1000",       "--data", "synthetic", "--synthetic-images",
	        "100000",  "--batch",  "65536",     "--prefetch", "1",
	};
	mural_config config;
	resolve(&config, argv, sizeof argv / sizeof *argv);
	mural_error err = {0};
	mural_comm *comm;
	assert_int_equal(mural_comm_open(&comm, "self", &err), MURAL_OK);
	mural_engine_settings settings = {.config = &config, .comm = comm, .training = true};
	mural_engine *engine;
	assert_int_equal(mural_engine_create(&engine, &settings, &err), MURAL_OUT_OF_MEMORY);
	assert_null(engine);
	if (!strstr(err.message, "largest micro-batch that fits: ") && !strstr(err.message, "not even one image"))
		fail_msg("%s", err.message);
	mural_comm_close(comm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(process_grows_as_planned), /* first: before anything else has raised the peak */
	        cmocka_unit_test(arenas_are_used_to_the_byte),
	        cmocka_unit_test(too_large_names_what_fits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
