/* Pictures get the probabilities that timm, torchvision and transformers give them, each with its own preprocessing
 * (make_predict.py).
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "mural/predict.h"

#define CLASSES 5
#define MOST 32

static void probabilities_are_the_libraries(void **state)
{
	(void)state;
	char last[64] = "", weights[64], picture[64], path[512], from[512];
	mural_predictor *predictor = NULL;
	mural_error err = {0};
	unsigned lines = 0;
	FILE *in = fopen(MU_TEST_SOURCE_DIR "/golden/predict.txt", "r");
	assert_non_null(in);
	while (fscanf(in, "%63s %63s", weights, picture) == 2) {
		float wanted[CLASSES], got[CLASSES];
		const char *name = path;
		for (size_t c = 0; c < CLASSES; c++)
			assert_int_equal(fscanf(in, "%f", &wanted[c]), 1);
		if (strcmp(last, weights) != 0) {
			mural_predictor_free(predictor);
			snprintf(from, sizeof from, MU_TEST_SOURCE_DIR "/golden/weights/%s", weights);
			mural_predictor_settings settings = {.weights = from, .threads = 1};
			if (mural_predictor_create(&predictor, &settings, &err) != MURAL_OK)
				fail_msg("%s: %s", err.where, err.message);
			strcpy(last, weights);
		}
		snprintf(path, sizeof path, MU_TEST_SOURCE_DIR "/golden/pictures/%s", picture);
		if (mural_predictor_run(predictor, &name, 1, got, &err) != MURAL_OK) {
			if (strstr(err.message, "this build cannot read"))
				skip(); /* image libraries are optional */
			fail_msg("%s: %s", err.where, err.message);
		}
		for (size_t c = 0; c < CLASSES; c++)
			if (!(fabsf(got[c] - wanted[c]) <= 2e-5f))
				fail_msg("%s %s: class %zu has %g instead of %g", weights, picture, c, (double)got[c],
				         (double)wanted[c]);
		lines++;
	}
	assert_int_equal(lines, 18);
	mural_predictor_free(predictor);
	fclose(in);
}

/* More pictures than go through the model at once, alike in any company. */
static void batches_do_not_matter(void **state)
{
	(void)state;
	static float all[MOST * CLASSES], one[CLASSES];
	const char *paths[MOST];
	mural_predictor *predictor;
	mural_predictor_settings settings = {.weights = MU_TEST_SOURCE_DIR "/golden/weights/timm", .threads = 1};
	for (size_t i = 0; i < MOST; i++)
		paths[i] = i % 3 ? MU_TEST_SOURCE_DIR "/golden/pictures/rgb.png"
		                 : MU_TEST_SOURCE_DIR "/golden/pictures/rgb444.jpg";
	assert_int_equal(mural_predictor_create(&predictor, &settings, NULL), MURAL_OK);
	for (size_t n = MURAL_PREDICT_BATCH - 1; n <= MOST; n += MOST - MURAL_PREDICT_BATCH) {
		assert_int_equal(mural_predictor_run(predictor, paths, n, all, NULL), MURAL_OK);
		for (size_t i = 0; i < n; i++) {
			double sum = 0;
			assert_int_equal(mural_predictor_run(predictor, paths + i, 1, one, NULL), MURAL_OK);
			for (size_t c = 0; c < CLASSES; c++) {
				assert_true(fabsf(one[c] - all[i * CLASSES + c]) <= 1e-6f);
				sum += (double)one[c];
			}
			assert_true(fabs(sum - 1) < 1e-6);
		}
	}
	mural_predictor_free(predictor);
}

static void the_best_come_first(void **state)
{
	(void)state;
	static const float row[] = {0.1f, 0.3f, 0.3f, 0.05f, 0.25f};
	size_t labels[5];
	mural_predictor_best(row, 5, 5, labels);
	assert_memory_equal(labels, ((const size_t[]){1, 2, 4, 0, 3}), sizeof labels);
	labels[2] = 99;
	mural_predictor_best(row, 5, 2, labels);
	assert_memory_equal(labels, ((const size_t[]){1, 2, 99}), 3 * sizeof *labels);
	mural_predictor_best(row, 5, 0, labels);
	assert_int_equal(labels[0], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(probabilities_are_the_libraries),
	        cmocka_unit_test(batches_do_not_matter),
	        cmocka_unit_test(the_best_come_first),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
