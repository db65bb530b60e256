/* The class report against a matrix counted cell by cell. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "engine/class_report.h"
#include "support/data_files.h"

/* Classes take turns in a synthetic set. */
static mural_data *open_set(uint64_t images, size_t classes)
{
	mural_data_config config = test_data_config("synthetic");
	mural_data *data;
	config.synthetic_images = images;
	assert_int_equal(mural_data_open(&data, &config, MURAL_SPLIT_TRAIN, 0, 1, 8, 8, classes, NULL), MURAL_OK);
	return data;
}

static void agrees_with_a_dense_matrix(void **state)
{
	(void)state;
	enum { CLASSES = 13, BEST = 17 }; /* the model may have more classes than the set */
	static const uint64_t sizes[] = {1, 2, 12, 13, 14, 500};
	mu_random_key key = mu_random_key_make(1, MU_PURPOSE_TEST, 0);
	for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
		uint64_t n = sizes[s], matrix[CLASSES][BEST] = {{0}}, sum = 0;
		mural_data *data = open_set(n, CLASSES);
		int32_t *best = calloc(n, sizeof *best);
		for (uint64_t i = 0; i < n; i++) {
			best[i] = (int32_t)mu_random_below(key, s, i, BEST);
			matrix[i % CLASSES][best[i]]++;
		}
		mu_class_report report = {0};
		assert_int_equal(mu_class_report_make(&report, data, best, NULL), MURAL_OK);
		assert_int_equal(report.classes, CLASSES);
		for (size_t c = 0; c < CLASSES; c++) {
			uint64_t images = 0;
			for (size_t b = 0; b < BEST; b++)
				images += matrix[c][b];
			assert_int_equal(report.images[c], images);
			assert_int_equal(report.right[c], matrix[c][c]);
		}
		for (size_t i = 0; i < report.n_cells; i++) {
			const mu_confusion *cell = &report.cells[i];
			assert_true(cell->images > 0);
			assert_int_equal(cell->images, matrix[cell->label][cell->best]);
			sum += cell->images;
			if (i > 0)
				assert_true(cell[-1].label < cell->label ||
				            (cell[-1].label == cell->label && cell[-1].best < cell->best));
		}
		assert_int_equal(sum, n);
		mu_class_report_release(&report);
		mural_data_free(data);
		free(best);
	}
}

static mu_class_report three_classes(void)
{
	/* Right: 3 of 4, 1 of 4, none of 2; class 3 has no images. */
	static uint64_t images[] = {4, 4, 2, 0}, right[] = {3, 1, 0, 0};
	static mu_confusion cells[] = {{0, 0, 3}, {0, 2, 1}, {1, 0, 3}, {1, 1, 1}, {2, 3, 2}};
	return (mu_class_report){.classes = 4, .images = images, .right = right, .cells = cells, .n_cells = 5};
}

static void is_written_a_line_per_class(void **state)
{
	(void)state;
	mu_class_report report = three_classes();
	mural_data *data = open_set(4, 4);
	char *text;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	mu_json json;
	mu_json_init(&json, out, MU_JSON_PRETTY);
	mu_json_object_begin(&json, NULL);
	mu_class_report_write(&json, &report, data);
	mu_json_object_end(&json);
	assert_true(mu_json_finished(&json));
	fclose(out);
	assert_string_equal(text, "{\n  \"classes_without_images\": 1,\n  \"classes\": [\n"
	                          "    {\"class\": 0, \"name\": null, \"images\": 4, \"right\": 3, \"accuracy\": 0.75, "
	                          "\"taken_for\": {\"0\": 3, \"2\": 1}},\n"
	                          "    {\"class\": 1, \"name\": null, \"images\": 4, \"right\": 1, \"accuracy\": 0.25, "
	                          "\"taken_for\": {\"0\": 3, \"1\": 1}},\n"
	                          "    {\"class\": 2, \"name\": null, \"images\": 2, \"right\": 0, \"accuracy\": 0, "
	                          "\"taken_for\": {\"3\": 2}}\n  ]\n}\n");
	free(text);
	mural_data_free(data);
}

static void the_worst_come_first(void **state)
{
	(void)state;
	mural_class_score worst[MURAL_WORST_CLASSES];
	mural_data *data = open_set(4, 4);
	mu_class_report report = three_classes();
	assert_int_equal(mu_class_report_worst(&report, data, worst), 3);
	assert_true(worst[0].label == 2 && worst[1].label == 1 && worst[2].label == 0);
	assert_true(worst[0].images == 2 && worst[0].right == 0 && worst[0].name[0] == '\0');
	/* Five classes: of equals the larger one, then the first; the best two are left out. */
	uint64_t images[] = {10, 20, 10, 10, 0, 10}, right[] = {9, 10, 5, 10, 0, 5};
	report = (mu_class_report){.classes = 6, .images = images, .right = right};
	assert_int_equal(mu_class_report_worst(&report, data, worst), 3);
	assert_true(worst[0].label == 1 && worst[1].label == 2 && worst[2].label == 5);
	report.classes = 1;
	assert_int_equal(mu_class_report_worst(&report, data, worst), 1);
	mural_data_free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(agrees_with_a_dense_matrix),
	        cmocka_unit_test(is_written_a_line_per_class),
	        cmocka_unit_test(the_worst_come_first),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
