/* Equal against balanced on the study's described cluster, as `mural plan --balance` tells it. SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mural/balance.h"

static mural_cluster *cluster;

static int read_cluster(void **state)
{
	(void)state;
	mural_error err = {0};
	return mural_cluster_read(&cluster, MU_TEST_SOURCE_DIR "/../examples/clusters/tesla.json", &err);
}

static int free_cluster(void **state)
{
	(void)state;
	mural_cluster_free(cluster);
	return 0;
}

static mural_config configure(const char *const *extra, int n)
{
	const char *argv[8] = {"--batch", "80"};
	mural_config config;
	mural_config_report *report = NULL;
	mural_error err = {0};
	for (int i = 0; i < n; i++)
		argv[2 + i] = extra[i];
	const mural_config_sources sources = {.argc = 2 + n, .argv = argv, .ranks = 1};
	if (mural_config_resolve(&config, &report, &sources, &err) != MURAL_OK)
		fail_msg("%s", err.message);
	mural_config_report_free(report);
	return config;
}

static mural_balance_forecast *make(const mural_balance_settings *settings)
{
	mural_error err = {0};
	mural_balance_forecast *forecast = NULL;
	if (mural_balance_forecast_create(&forecast, settings, &err) != MURAL_OK)
		fail_msg("%s", err.message);
	return forecast;
}

static double speed(const mural_balance_forecast *f, size_t i, mural_balance_kind kind)
{
	return mural_balance_forecast_line(f, i)->split[kind].images_per_second;
}

/* 16 images per rank without overlap: the study's shape, and what balancing makes of it. */
static void test_the_studys_shape(void **state)
{
	(void)state;
	const char *const off = "--no-overlap-comm";
	const mural_config config = configure(&off, 1);
	const mural_balance_settings settings = {.cluster = cluster, .config = &config, .batch_per_rank = 16};
	mural_balance_forecast *f = make(&settings);
	assert_int_equal(mural_balance_forecast_lines(f), 5);
	const double gradients = 86567656 * 4.0, one = 16 * 0.0143;
	/* A ring of two, by hand: 2 (n - 1) steps of an n-th of the bytes of each of 8 buckets. */
	double two = one + 8 * 2 * (30e-6 + gradients / 8 / 2 / 0.95e9);
	assert_true(fabs(speed(f, 0, MURAL_BALANCE_EQUAL) - 16 / one) < 1e-6);
	assert_true(fabs(speed(f, 1, MURAL_BALANCE_EQUAL) - 32 / two) < 0.01);
	/* Two are slower than one; the fourth and the fifth make it worse. */
	assert_true(speed(f, 1, MURAL_BALANCE_EQUAL) < speed(f, 0, MURAL_BALANCE_EQUAL));
	assert_true(speed(f, 3, MURAL_BALANCE_EQUAL) < speed(f, 2, MURAL_BALANCE_EQUAL));
	assert_true(speed(f, 4, MURAL_BALANCE_EQUAL) < 0.4 * speed(f, 3, MURAL_BALANCE_EQUAL));
	for (size_t i = 0; i < 5; i++) {
		const mural_balance_line *line = mural_balance_forecast_line(f, i);
		for (int kind = 0; kind < MURAL_BALANCE_KINDS; kind++) {
			int sum = 0;
			for (int r = 0; r < line->ranks; r++)
				sum += line->split[kind].shares[r];
			assert_int_equal(sum, line->batch);
		}
		assert_true(speed(f, i, MURAL_BALANCE_ALL) >= speed(f, i, MURAL_BALANCE_EQUAL));
		assert_true(speed(f, i, MURAL_BALANCE_BEST) >= speed(f, i, MURAL_BALANCE_ALL));
		if (i > 0)
			assert_true(speed(f, i, MURAL_BALANCE_BEST) >= speed(f, i - 1, MURAL_BALANCE_BEST));
	}
	const mural_balance_line *all = mural_balance_forecast_line(f, 4);
	assert_int_equal(all->split[MURAL_BALANCE_BEST].shares[4], 0);
	assert_non_null(strstr(mural_balance_forecast_advice(f), "rank 4 costs more than it brings: its link makes"));
	mural_balance_forecast_free(f);
}

static void test_result_file(void **state)
{
	(void)state;
	const mural_config config = configure(NULL, 0);
	const mural_balance_settings settings = {.cluster = cluster, .config = &config, .ranks = 3};
	const char *path = MU_TEST_BINARY_DIR "/balance_forecast.json";
	mural_balance_forecast *f = make(&settings);
	mural_error err = {0};
	char text[8192] = {0};
	assert_int_equal(mural_balance_forecast_lines(f), 3);
	assert_int_equal(mural_balance_forecast_write_json(f, path, &err), MURAL_OK);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	assert_true(fread(text, 1, sizeof text - 1, file) > 100);
	fclose(file);
	assert_non_null(strstr(text, "\"cluster\": \"tesla\""));
	assert_non_null(strstr(text, "\"best\""));
	remove(path);
	mural_balance_forecast_free(f);
}

static void refused(mural_balance_settings settings, const char *words)
{
	mural_error err = {0};
	mural_balance_forecast *forecast = NULL;
	assert_int_equal(mural_balance_forecast_create(&forecast, &settings, &err), MURAL_USAGE);
	assert_null(forecast);
	if (!strstr(err.message, words))
		fail_msg("\"%s\" lacks \"%s\"", err.message, words);
}

static void test_bad_input(void **state)
{
	(void)state;
	mural_config config = configure(NULL, 0);
	refused((mural_balance_settings){.cluster = cluster, .config = &config, .ranks = 6},
	        "has 5 devices, too few for 6 ranks");
	refused((mural_balance_settings){.cluster = cluster, .config = &config, .ranks = 300}, "at most 256 ranks");
	config.batch.train_batch = 3;
	refused((mural_balance_settings){.cluster = cluster, .config = &config},
	        "a batch of 3 images cannot be shared out over 5");
	config.batch.train_batch = 80;
	double pace = cluster->devices[1].seconds_per_image;
	cluster->devices[1].seconds_per_image = 0;
	refused((mural_balance_settings){.cluster = cluster, .config = &config},
	        "does not tell how fast its device \"p4\" is");
	cluster->devices[1].seconds_per_image = pace;
}

/* 256 alike: equal shares are the best, all take part, and it does not take long. */
static void test_many_alike(void **state)
{
	(void)state;
	const mural_config config = configure(NULL, 0);
	mural_cluster many = *cluster;
	many.nodes[0].count = 300;
	many.n_entries = 1;
	many.nodes_in_all = many.devices_in_all = 300;
	const mural_balance_settings settings = {.cluster = &many, .config = &config, .batch_per_rank = 64};
	mural_balance_forecast *f = make(&settings);
	assert_int_equal(mural_balance_forecast_lines(f), 13);
	const mural_balance_line *last = mural_balance_forecast_line(f, 12);
	assert_int_equal(last->ranks, 256);
	assert_int_equal(last->split[MURAL_BALANCE_ALL].shares[255], 64);
	assert_int_equal(last->split[MURAL_BALANCE_BEST].members, 256);
	mural_balance_forecast_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_the_studys_shape),
	        cmocka_unit_test(test_result_file),
	        cmocka_unit_test(test_bad_input),
	        cmocka_unit_test(test_many_alike),
	};
	return cmocka_run_group_tests(tests, read_cluster, free_cluster);
}
