/* Forecasts: a step on the study's clusters against sums done by hand, rates and what lies between them, and what cannot be told.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "mural/forecast.h"

static void near_value(double found, double expected, double within, int line)
{
	if (!(fabs(found - expected) <= within * fabs(expected)))
		fail_msg("line %d: %.12g, expected %.12g", line, found, expected);
}
#define NEAR(a, b) near_value(a, b, 1e-9, __LINE__)

static mural_cluster *example(const char *name)
{
	char path[1024];
	mural_error err = {0};
	mural_cluster *cluster;
	snprintf(path, sizeof path, "%s/../examples/clusters/%s", MU_TEST_SOURCE_DIR, name);
	if (mural_cluster_read(&cluster, path, &err) != MURAL_OK)
		fail_msg("%s: %s", err.where, err.message);
	return cluster;
}

static mural_cluster *described(const char *text)
{
	char path[] = "/tmp/mural-forecast-XXXXXX";
	mural_error err = {0};
	mural_cluster *cluster;
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	mural_status status = mural_cluster_read(&cluster, path, &err);
	unlink(path);
	if (status != MURAL_OK)
		fail_msg("%s: %s", err.where, err.message);
	return cluster;
}

static mural_config configured(const char *model, const char *micro, int argc, const char *const *more)
{
	const char *argv[16] = {"--model", model, "--micro-batch", micro, "--batch", micro};
	mural_config config;
	mural_error err = {0};
	for (int i = 0; i < argc; i++)
		argv[6 + i] = more[i];
	const mural_config_sources sources = {.argc = 6 + argc, .argv = argv, .ranks = 1};
	if (mural_config_resolve(&config, NULL, &sources, &err) != MURAL_OK)
		fail_msg("%s: %s", err.where, err.message);
	return config;
}

static mural_forecast *forecast_of(const mural_config *config, const mural_cluster *cluster)
{
	const mural_forecast_settings settings = {.config = config, .cluster = cluster, .images = 50000};
	mural_forecast *forecast;
	mural_error err = {0};
	if (mural_forecast_create(&forecast, &settings, &err) != MURAL_OK)
		fail_msg("%s: %s", err.where, err.message);
	return forecast;
}

static mural_forecast_step step_of(mural_forecast *forecast, mural_forecast_point point)
{
	mural_forecast_step step;
	mural_error err = {0};
	if (mural_forecast_at(forecast, &point, &step, &err) != MURAL_OK)
		fail_msg("%s: %s", err.where, err.message);
	NEAR(step.data + step.forward + step.backward + step.exposed + step.optimizer, step.seconds);
	return step;
}

/* ViT-B/16 without overlap on the study's Tesla cluster: the step of one card is its images' time and the update; that of five waits
 * for the P4, and for the node behind 1 Gbit/s. */
static void test_tesla(void **state)
{
	(void)state;
	static const char *const more[] = {"--no-overlap-comm"};
	mural_cluster *tesla = example("tesla.json");
	mural_config config = configured("vit_b_16", "16", 1, more);
	mural_forecast *forecast = forecast_of(&config, tesla);
	assert_string_equal(mural_forecast_source(forecast), "as described");
	mural_forecast_step one = step_of(forecast, (mural_forecast_point){.ranks = 1});
	NEAR(one.forward + one.backward, 16 * 0.0143);
	NEAR(one.exposed + 1, 1);
	/* AdamW in fp32: weights and two moments read and written, gradients read; the table's 448 GB/s */
	near_value(one.optimizer, 86567656 * 28.0 / 448e9, 1e-3, __LINE__);
	mural_forecast_step five = step_of(forecast, (mural_forecast_point){.ranks = 5});
	NEAR(five.forward + five.backward, 16 * 0.045);
	assert_int_equal(five.slowest_rank, 3);
	assert_string_equal(tesla->devices[five.slowest_device].name, "p4");
	NEAR(five.slowness, 0.045 / 0.0143);
	assert_int_equal(five.slowest_node, 4);
	NEAR(five.slowest_uplink, 0.12e9);
	NEAR(five.other_uplinks, 0.95e9);
	/* a ring: 2 x 4 / 5 of the gradients through the slowest uplink, its latency 8 times for each bucket and the sums */
	near_value(five.exposed, 2 * 4 / 5.0 * 86567656 * 4 / 0.12e9, 0.01, __LINE__);
	NEAR(five.hidden + 1, 1);
	NEAR(five.watts, 3 * 220 + 75 + 150);
	assert_true(five.price_per_hour == 0);
	mural_forecast_step faster =
	        step_of(forecast, (mural_forecast_point){.ranks = 5, .slowest_uplink_at_least = 0.95e9});
	near_value(faster.exposed, five.exposed * 0.12 / 0.95, 0.01, __LINE__);
	mural_forecast_step slower =
	        step_of(forecast, (mural_forecast_point){.ranks = 2, .uplink_bytes_per_second = 0.475e9});
	near_value(slower.exposed, 2 * step_of(forecast, (mural_forecast_point){.ranks = 2}).exposed, 0.01, __LINE__);
	mural_forecast_free(forecast);
	mural_cluster_free(tesla);
}

/* The study's Tesla rows, seconds of an epoch of a tenth per worker: 3125 steps of 16 images. */
static void test_the_studys_rows(void **state)
{
	(void)state;
	static const char *const more[] = {"--no-overlap-comm"};
	static const double rows[][2] = {{1, 71.4}, {2, 177.6}, {3, 215.8}, {4, 393.6}, {5, 1751}};
	mural_cluster *tesla = example("tesla.json");
	mural_config config = configured("vit_b_16", "16", 1, more);
	mural_forecast *forecast = forecast_of(&config, tesla);
	for (size_t i = 0; i < 5; i++) {
		double seconds;
		const mural_forecast_point point = {.ranks = (int)rows[i][0]};
		assert_int_equal(mural_forecast_epoch(forecast, &point, (uint64_t)(5000 * rows[i][0]), &seconds, NULL),
		                 MURAL_OK);
		near_value(seconds, rows[i][1], 0.1, __LINE__);
	}
	mural_forecast_free(forecast);
	mural_cluster_free(tesla);
}

/* Seconds per image of one model, told with its operations, are scaled to another's; without they stand. */
static void test_another_model(void **state)
{
	(void)state;
	mural_cluster *tesla = example("tesla.json");
	mural_config config = configured("vit_s_16", "16", 0, NULL);
	mural_forecast *forecast = forecast_of(&config, tesla);
	double flops = 3 * mural_model_forward_flops(&config.model);
	mural_forecast_step step = step_of(forecast, (mural_forecast_point){.ranks = 1});
	NEAR(step.forward + step.backward, 16 * 0.0143 * flops / 105.382969344e9);
	mural_forecast_free(forecast);
	tesla->devices[0].flops_per_image = 0;
	forecast = forecast_of(&config, tesla);
	step = step_of(forecast, (mural_forecast_point){.ranks = 1});
	NEAR(step.forward + step.backward, 16 * 0.0143);
	mural_forecast_free(forecast);
	mural_cluster_free(tesla);
}

static void test_points(void **state)
{
	(void)state;
	mural_cluster *vector = example("vector.json");
	mural_config config = configured("vit_b_16", "16", 0, NULL);
	mural_forecast *forecast = forecast_of(&config, vector);
	mural_forecast_step step =
	        step_of(forecast, (mural_forecast_point){.ranks = 8, .micro_batch = 64, .accumulation = 2});
	NEAR(step.forward + step.backward, 2 * (0.014 + 64 * 0.0362));
	NEAR(step.images, 8 * 64 * 2);
	assert_true(step.hidden > 0 && step.exposed > 0);
	assert_int_equal(step.nodes, 1);
	assert_int_equal(step.slowest_node, -1);
	NEAR(step.price_per_hour, 8 * 0.35);
	/* an epoch's last step has what is left: 500 images on 8 ranks in two micro-batches are 32 each */
	double seconds;
	const mural_forecast_point point = {.ranks = 8, .micro_batch = 64, .accumulation = 2};
	mural_forecast_step half =
	        step_of(forecast, (mural_forecast_point){.ranks = 8, .micro_batch = 32, .accumulation = 2});
	assert_int_equal(mural_forecast_epoch(forecast, &point, 1024 * 3 + 500, &seconds, NULL), MURAL_OK);
	NEAR(seconds, 3 * step.seconds + half.seconds);
	/* sharding moves as many bytes, and shares the update */
	mural_forecast_step sharded = step_of(
	        forecast, (mural_forecast_point){.ranks = 8, .micro_batch = 64, .sharded = true, .zero_stage = 1});
	assert_true(sharded.optimizer < step.optimizer / 7);
	/* a miniature's bytes count as so many */
	config.emulation.link_scale = 3;
	mural_forecast *scaled = forecast_of(&config, vector);
	NEAR(step_of(scaled, (mural_forecast_point){.ranks = 8}).bytes - 64,
	     3 * (step_of(forecast, (mural_forecast_point){.ranks = 8}).bytes - 64));
	mural_forecast_free(scaled);
	mural_error err = {0};
	const mural_forecast_point many = {.ranks = 433};
	assert_int_equal(mural_forecast_at(forecast, &many, &step, &err), MURAL_USAGE);
	assert_string_equal(err.message, "the cluster 'vector' has 432 devices, too few for 433 ranks");
	assert_non_null(strstr(err.where, "vector.json"));
	mural_forecast_free(forecast);
	mural_cluster_free(vector);
}

#define RATED                                                                                                      \
	"{ devices: { cpu: { rates: [\n"                                                                           \
	"  { ranks: 1, s_per_tflop: 4, ns_per_value: 1, ns_per_parameter: 2, us_per_unit: 50, update_us: 300 },\n" \
	"  { ranks: 4, s_per_tflop: 16, update_us: 900, wait_share: 0.1, loader_us_per_image: 7 },\n"              \
	"  { ranks: 1, model: \"mine\", gflop_per_image: 1e-3, parameters: 5, seconds_per_image: 1 },\n"           \
	"  { ranks: 1, precision: \"bf16\", s_per_tflop: 2 }\n"                                                    \
	"] } }, links: { m: { gb_per_s: 1000 } }, nodes: [ { devices: { cpu: 16 }, inside: \"m\" } ] }"

static void test_rates(void **state)
{
	(void)state;
	static const char *const narrow[] = {"--precision", "bf16"};
	mural_cluster *cluster = described(RATED);
	assert_int_equal(cluster->n_rates, 4);
	mural_config config = configured("vit_ti_16", "8", 0, NULL);
	mural_forecast *forecast = forecast_of(&config, cluster);
	assert_string_equal(mural_forecast_source(forecast), "measured for other models");
	double flops = 3 * mural_model_forward_flops(&config.model),
	       parameters = (double)mural_model_parameters(&config.model);
	double values = 12 * (197.0 * (8 * 192 + 2 * 768) + 3 * 197.0 * 197);
	mural_forecast_step one = step_of(forecast, (mural_forecast_point){.ranks = 1});
	NEAR(one.forward + one.backward, 14 * 50e-6 + parameters * 2e-9 + 8 * (flops * 4e-12 + values * 1e-9));
	NEAR(one.optimizer, 300e-6);
	/* two ranks lie half way between one and four, eight have half of what four have */
	mural_forecast_step two = step_of(forecast, (mural_forecast_point){.ranks = 2});
	NEAR(two.optimizer, 600e-6);
	mural_forecast_step eight = step_of(forecast, (mural_forecast_point){.ranks = 8});
	NEAR(eight.forward + eight.backward, 8 * flops * 32e-12);
	assert_true(eight.exposed > 0.1 * (eight.forward + eight.backward));
	mural_forecast_free(forecast);
	config = configured("vit_ti_16", "8", 2, narrow);
	forecast = forecast_of(&config, cluster);
	one = step_of(forecast, (mural_forecast_point){.ranks = 1});
	NEAR(one.forward + one.backward, 8 * flops * 2e-12);
	mural_forecast_free(forecast);
	/* this model's own rate comes first */
	config = configured("vit_ti_16", "8", 0, NULL);
	cluster->rates[2].flops_per_image = flops;
	cluster->rates[2].parameters = parameters;
	forecast = forecast_of(&config, cluster);
	assert_string_equal(mural_forecast_source(forecast), "measured for this model");
	one = step_of(forecast, (mural_forecast_point){.ranks = 1});
	NEAR(one.forward + one.backward, 8);
	mural_forecast_free(forecast);
	mural_cluster_free(cluster);
}

/* What the loader cannot deliver while the rank computes is waited for. */
static void test_loader(void **state)
{
	(void)state;
	mural_cluster *cluster =
	        described("{ devices: { d: { rates: [ { s_per_tflop: 1, loader_us_per_image: 1e6 } ] } },"
	                  " nodes: [ { devices: { d: 1 } } ] }");
	mural_config config = configured("vit_ti_16", "8", 0, NULL);
	mural_forecast *forecast = forecast_of(&config, cluster);
	mural_forecast_step step = step_of(forecast, (mural_forecast_point){0});
	NEAR(step.seconds, 8);
	assert_true(step.data > 7.9);
	mural_forecast_free(forecast);
	mural_cluster_free(cluster);
}

/* Frozen units have no backward: what is trained is the head alone. */
static void test_frozen(void **state)
{
	(void)state;
	static const char *const more[] = {"--freeze", "embed,blocks"};
	mural_cluster *vector = example("vector.json");
	mural_config all = configured("vit_b_16", "16", 0, NULL), head = configured("vit_b_16", "16", 2, more);
	mural_forecast *whole = forecast_of(&all, vector), *part = forecast_of(&head, vector);
	mural_forecast_step a = step_of(whole, (mural_forecast_point){.ranks = 8});
	mural_forecast_step b = step_of(part, (mural_forecast_point){.ranks = 8});
	NEAR(a.forward, b.forward);
	assert_true(b.backward < a.backward / 100 && b.bytes < a.bytes / 50 && b.optimizer < a.optimizer / 50);
	mural_forecast_free(whole);
	mural_forecast_free(part);
	mural_cluster_free(vector);
}

static void test_unknown_device(void **state)
{
	(void)state;
	mural_cluster *cluster = described("{ devices: {\n  \"abacus\": {}, \"H100\": {} },\n nodes: [ { devices: { "
	                                   "H100: 1, abacus: 1 }, inside: \"l\" } ], links: { l: { gb_per_s: 1 } } }");
	mural_config config = configured("vit_ti_16", "8", 0, NULL);
	const mural_forecast_settings settings = {.config = &config, .cluster = cluster};
	mural_forecast *forecast;
	mural_error err = {0};
	assert_int_equal(mural_forecast_create(&forecast, &settings, &err), MURAL_USAGE);
	assert_null(forecast);
	assert_non_null(strstr(err.where, ":2: devices.abacus"));
	assert_non_null(strstr(err.message, "nothing tells how fast the device \"abacus\" is"));
	mural_cluster_free(cluster);
}

/* A device known by name: its table's peak, a part of it reached. */
static void test_known_device(void **state)
{
	(void)state;
	static const char *const narrow[] = {"--precision", "bf16"};
	mural_cluster *cluster = described("{ devices: { \"H100\": {} }, nodes: [ { devices: { H100: 1 } } ] }");
	mural_config config = configured("vit_b_16", "64", 2, narrow);
	mural_forecast *forecast = forecast_of(&config, cluster);
	assert_string_equal(mural_forecast_source(forecast), "known by its name, a guess");
	mural_forecast_step step = step_of(forecast, (mural_forecast_point){0});
	NEAR(step.forward + step.backward, 64 * 3 * mural_model_forward_flops(&config.model) / (989.4e12 * 0.4));
	mural_forecast_free(forecast);
	mural_cluster_free(cluster);
}

/* Rows double, the last one is the whole cluster; 4096 devices cost some hundred collectives, not thousands. */
static void test_scaling(void **state)
{
	(void)state;
	mural_cluster *cluster = described(
	        "{ currency: \"EUR\", devices: { d: { seconds_per_image: 0.01, price_per_hour: 2, watts: 300 } },\n"
	        "  links: { in: { gb_per_s: 100, latency_us: 5 }, up: { gb_per_s: 12, latency_us: 10 } },\n"
	        "  nodes: [ { count: 512, devices: { d: 8 }, inside: \"in\", uplink: \"up\" } ] }");
	mural_config config = configured("vit_b_16", "16", 0, NULL);
	config.batch.train_batch = 1024;
	mural_forecast *forecast = forecast_of(&config, cluster);
	mural_forecast_row rows[MURAL_FORECAST_ROWS];
	mural_forecast_answers answers;
	size_t n;
	mural_error err = {0};
	assert_int_equal(mural_forecast_scaling(forecast, 4096, rows, &n, &err), MURAL_OK);
	assert_int_equal(mural_forecast_answer(forecast, 4096, 4096, 0, &answers, &err), MURAL_OK);
	assert_true(mural_forecast_collectives(forecast) < 1500);
	assert_int_equal(n, 13);
	NEAR(rows[0].efficiency, 1);
	NEAR(rows[0].same_batch_efficiency, 1);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(rows[i].step.ranks, 1 << i);
		NEAR(rows[i].efficiency, rows[0].step.seconds / rows[i].step.seconds);
		NEAR(rows[i].money, rows[i].epoch / 3600 * 2 * (1 << i));
		NEAR(rows[i].joules, rows[i].epoch * 300 * (1 << i));
		assert_true(i == 0 || rows[i].efficiency < rows[i - 1].efficiency);
	}
	/* 1024 images on 256 devices are 4 each; on 2048 there are not enough */
	NEAR(rows[8].same_batch_efficiency, rows[0].same_batch_seconds / rows[8].same_batch_seconds / 256);
	assert_true(rows[11].same_batch_seconds == 0);
	NEAR(rows[0].epoch, 3125 * rows[0].step.seconds);
	/* not a power of two */
	assert_int_equal(mural_forecast_scaling(forecast, 12, rows, &n, &err), MURAL_OK);
	assert_int_equal(n, 5);
	assert_int_equal(rows[4].step.ranks, 12);
	assert_int_equal(mural_forecast_scaling(forecast, 4097, rows, &n, &err), MURAL_USAGE);
	mural_forecast_free(forecast);
	mural_cluster_free(cluster);
}

/* Answers are steps worked out: each is checked by asking for the steps around it. */
static void test_answers(void **state)
{
	(void)state;
	mural_cluster *tesla = example("tesla.json"), *vector = example("vector.json");
	mural_config config = configured("vit_b_16", "4", 0, NULL);
	mural_forecast *forecast = forecast_of(&config, vector);
	mural_forecast_answers a;
	mural_error err = {0};
	assert_int_equal(mural_forecast_answer(forecast, 16, 432, 121, &a, &err), MURAL_OK);
	mural_forecast_step one = step_of(forecast, (mural_forecast_point){.ranks = 1});
	assert_true(a.inefficient_from > 1);
	mural_forecast_step good = step_of(forecast, (mural_forecast_point){.ranks = a.inefficient_from - 1});
	mural_forecast_step bad = step_of(forecast, (mural_forecast_point){.ranks = a.inefficient_from});
	assert_true(one.seconds / good.seconds >= 0.8 && one.seconds / bad.seconds < 0.8);
	NEAR(a.last_efficiency, one.seconds / bad.seconds);
	assert_int_equal(a.largest_batch, 121);
	mural_forecast_step best = step_of(forecast, (mural_forecast_point){.ranks = 16, .micro_batch = 121});
	mural_forecast_step enough = step_of(forecast, (mural_forecast_point){.ranks = 16, .micro_batch = a.batch});
	mural_forecast_step less = step_of(forecast, (mural_forecast_point){.ranks = 16, .micro_batch = a.batch - 1});
	assert_true(enough.images_per_second >= 0.95 * best.images_per_second);
	assert_true(less.images_per_second < 0.95 * best.images_per_second);
	mural_forecast_step slow =
	        step_of(forecast, (mural_forecast_point){.ranks = 16, .uplink_bytes_per_second = 1.25e9});
	NEAR(a.ten_gigabit_seconds, slow.seconds);
	assert_true(slow.seconds > a.network.seconds && a.even_uplinks_seconds == 0);
	/* within a node the network is asked of all devices */
	assert_int_equal(mural_forecast_answer(forecast, 8, 432, 121, &a, &err), MURAL_OK);
	assert_int_equal(a.network.ranks, 432);
	mural_forecast_free(forecast);
	forecast = forecast_of(&config, tesla);
	assert_int_equal(mural_forecast_answer(forecast, 5, 5, 0, &a, &err), MURAL_OK);
	assert_int_equal(a.inefficient_from, 2);
	assert_int_equal(a.network.slowest_node, 4);
	assert_true(a.even_uplinks_seconds > 0 && a.even_uplinks_seconds < a.network.seconds / 4);
	assert_int_equal(a.largest_batch, 1024);
	mural_forecast_free(forecast);
	mural_cluster_free(tesla);
	mural_cluster_free(vector);
}

/* Stage 0 holds what the engine's store holds; each stage shards one more part. */
static void test_stages(void **state)
{
	(void)state;
	static const char *const narrow[] = {"--precision", "bf16"};
	mural_cluster *vector = example("vector.json");
	mural_config config = configured("vit_b_16", "4", 2, narrow);
	mural_forecast *forecast = forecast_of(&config, vector);
	double p = 86567656;
	mural_forecast_state none = mural_forecast_memory(forecast, 0, 8), all = mural_forecast_memory(forecast, 3, 8);
	near_value(none.parameters, 2 * p, 1e-3, __LINE__);
	near_value(none.gradients, 2 * p, 1e-3, __LINE__);
	near_value(none.optimizer, 12 * p, 1e-3, __LINE__);
	near_value(mural_forecast_memory(forecast, 1, 8).total, 4 * p + 12 * p / 8, 1e-3, __LINE__);
	near_value(mural_forecast_memory(forecast, 2, 8).total, 2 * p + 14 * p / 8, 1e-3, __LINE__);
	near_value(all.total - all.gathered, 16 * p / 8, 1e-3, __LINE__);
	near_value(all.gathered, 2 * 7087872.0 * 2, 1e-3, __LINE__); /* two blocks */
	mural_forecast_free(forecast);
	mural_cluster_free(vector);
}

static void test_here(void **state)
{
	(void)state;
	mural_cluster *cluster;
	assert_int_equal(mural_cluster_here(&cluster, NULL), MURAL_OK);
	assert_int_equal(cluster->devices_in_all, mural_cores());
	mural_config config = configured("vit_ti_16", "8", 0, NULL);
	mural_forecast *forecast = forecast_of(&config, cluster);
	mural_forecast_step one = step_of(forecast, (mural_forecast_point){.ranks = 1});
	assert_true(one.seconds > 0 && isfinite(one.seconds));
	mural_forecast_free(forecast);
	mural_cluster_free(cluster);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_tesla),          cmocka_unit_test(test_the_studys_rows),
	        cmocka_unit_test(test_points),         cmocka_unit_test(test_rates),
	        cmocka_unit_test(test_loader),         cmocka_unit_test(test_frozen),
	        cmocka_unit_test(test_unknown_device), cmocka_unit_test(test_known_device),
	        cmocka_unit_test(test_here),           cmocka_unit_test(test_another_model),
	        cmocka_unit_test(test_scaling),        cmocka_unit_test(test_answers),
	        cmocka_unit_test(test_stages),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
