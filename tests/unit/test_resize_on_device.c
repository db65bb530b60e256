/* A training whose images are enlarged on the device is the one whose images are resized on the host, bit for bit.
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "support/data_files.h"
#include "support/training.h"

#define MODEL                                                                                                   \
	"--model mu --patch 4 --channels 3 --classes 10 --batch 8 --micro-batch 4 --crop-padding 2 --flip 0.5 " \
	"--threads 1 "                                                                                          \
	"--epochs 2 --data "

static char *folder;

static int enter(void **state)
{
	(void)state;
	folder = test_folder_create();
	test_idx_write_set(folder, 22, 8, 4);
	return 0;
}

static int leave(void **state)
{
	(void)state;
	test_folder_remove(folder);
	return 0;
}

static void configure(test_training *t, const char *more)
{
	char options[600];
	snprintf(options, sizeof options, MODEL "%s %s", folder, more);
	test_training_configure(t, options);
}

static void the_same_losses(void **state)
{
	(void)state;
	static const char *const ops[] = {"cpu", "reference"};
	for (size_t o = 0; o < 2; o++) {
		test_training t[2];
		mural_memory_plan planned[2], used;
		for (int d = 0; d < 2; d++) {
			char options[100];
			snprintf(options, sizeof options, "--image-size 24x12 --ops %s --resize-on %s", ops[o],
			         d ? "device" : "host");
			configure(&t[d], options);
			test_training_open(&t[d]);
			assert_int_equal(mural_engine_train_begin(t[d].engine, NULL), MURAL_OK);
			mural_engine_memory(t[d].engine, &planned[d], &used);
			assert_memory_equal(&planned[d], &used, sizeof used);
		}
		/* The ring holds small grey images instead of large ones of three channels. */
		assert_true(planned[1].loader < planned[0].loader);
		mural_step_facts host, device;
		while (test_training_step(&t[0], &host)) {
			assert_true(test_training_step(&t[1], &device));
			assert_true(host.loss == device.loss && host.gradient_norm == device.gradient_norm);
		}
		mural_evaluation a, b;
		assert_int_equal(mural_engine_evaluate(t[0].engine, t[0].test, &a, NULL), MURAL_OK);
		assert_int_equal(mural_engine_evaluate(t[1].engine, t[1].test, &b, NULL), MURAL_OK);
		assert_true(a.loss == b.loss && a.images == b.images);
		test_training_close(&t[0]);
		test_training_close(&t[1]);
	}
}

static void what_cannot_be_is_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {"--image-size 16x12 --resize-on device",
	                                  "--image-size 12x8 --resize-on device",
	                                  "--image-size 24x12 --resize-on device --resize none",
	                                  "--image-size 24x12 --resize-on device --resize-side 30"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		test_training t;
		mural_error err = {0};
		configure(&t, bad[i]);
		test_training_open(&t);
		assert_int_equal(mural_engine_train_begin(t.engine, &err), MURAL_USAGE);
		assert_non_null(strstr(err.message, "the device enlarges images by one whole factor"));
		test_training_close(&t);
	}
	test_training same; /* nothing to do is no mistake */
	configure(&same, "--image-size 8x4 --resize-on device");
	test_training_open(&same);
	test_training_run(&same);
	test_training_close(&same);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(the_same_losses),
	        cmocka_unit_test(what_cannot_be_is_refused),
	};
	return cmocka_run_group_tests(tests, enter, leave);
}
