/* Cluster files: the study's three, every mistake with its place, and where ranks come to sit. SPDX-License-Identifier: MIT */
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

#include "mural/cluster.h"

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

static mural_status read_text(const char *text, mural_cluster **cluster, mural_error *err)
{
	char path[] = "/tmp/mural-cluster-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	*err = (mural_error){0};
	mural_status status = mural_cluster_read(cluster, path, err);
	unlink(path);
	return status;
}

static void the_studys_clusters(void **state)
{
	(void)state;
	mural_cluster *tesla = example("tesla.json");
	assert_string_equal(tesla->name, "tesla");
	assert_int_equal(tesla->nodes_in_all, 5);
	assert_int_equal(tesla->devices_in_all, 5);
	assert_int_equal(tesla->algorithm, MURAL_CLUSTER_RING);
	mural_place places[5];
	assert_int_equal(mural_cluster_place(tesla, MURAL_PLACE_PACK, 5, places, NULL), MURAL_OK);
	static const double seconds[] = {0.0143, 0.0143, 0.0143, 0.045, 0.041};
	for (int r = 0; r < 5; r++) {
		assert_int_equal(places[r].node, r);
		assert_true(tesla->devices[places[r].device].seconds_per_image == seconds[r]);
	}
	const mural_cluster_link *last = &tesla->links[tesla->nodes[places[4].entry].uplink];
	assert_true(last->bytes_per_second == 0.12e9 && fabs(last->latency_seconds - 50e-6) < 1e-18);
	assert_int_equal(tesla->devices[0].memory_bytes, (uint64_t)8 << 30);
	mural_cluster_free(tesla);

	mural_cluster *vector = example("vector.json");
	assert_int_equal(vector->nodes_in_all, 54);
	assert_int_equal(vector->devices_in_all, 432);
	assert_string_equal(vector->currency, "USD");
	assert_true(vector->devices[0].price_per_hour == 0.35);
	/* a step of 64 images, within 1 % of its rows */
	assert_true(fabs((vector->devices[0].seconds_per_batch + 64 * vector->devices[0].seconds_per_image) / 2.329 -
	                 1) < 0.01);
	mural_cluster_free(vector);

	mural_cluster *nebula = example("nebula.json");
	assert_int_equal(nebula->devices_in_all, 3);
	/* the study's epochs of one card, batch 16 to 256 */
	static const double epochs[][2] = {{16, 276.3}, {32, 212.2}, {64, 171.2}, {128, 149.1}, {256, 142.3}};
	for (size_t i = 0; i < 5; i++) {
		double step =
		        nebula->devices[0].seconds_per_batch + epochs[i][0] * nebula->devices[0].seconds_per_image;
		assert_true(fabs(step * 50000 / epochs[i][0] / epochs[i][1] - 1) < 0.05);
	}
	mural_cluster_free(nebula);
}

static void ranks_fill_nodes_or_spread(void **state)
{
	(void)state;
	mural_cluster *nebula = example("nebula.json"), *vector = example("vector.json");
	mural_place places[432];
	mural_error err = {0};
	assert_int_equal(mural_cluster_place(nebula, MURAL_PLACE_PACK, 3, places, NULL), MURAL_OK);
	assert_int_equal(places[0].node, 0);
	assert_int_equal(places[1].node, 0);
	assert_int_equal(places[2].node, 1);
	assert_int_equal(mural_cluster_place(nebula, MURAL_PLACE_SPREAD, 3, places, NULL), MURAL_OK);
	assert_int_equal(places[0].node, 0);
	assert_int_equal(places[1].node, 1);
	assert_int_equal(places[2].node, 0);
	assert_int_equal(mural_cluster_place(vector, MURAL_PLACE_SPREAD, 432, places, NULL), MURAL_OK);
	assert_int_equal(places[53].node, 53);
	assert_int_equal(places[54].node, 0);
	assert_int_equal(mural_cluster_place(nebula, MURAL_PLACE_PACK, 4, places, &err), MURAL_USAGE);
	assert_string_equal(err.message, "the cluster 'nebula' has 3 devices, too few for 4 ranks");
	mural_cluster_free(nebula);
	mural_cluster_free(vector);
}

static void speed_may_be_operations(void **state)
{
	(void)state;
	mural_cluster *cluster;
	mural_error err;
	assert_int_equal(read_text("{ devices: { \"a\": { \"tflops\": 2 } }, nodes: [ { devices: { a: 1 } } ] }",
	                           &cluster, &err),
	                 MURAL_OK);
	assert_true(mural_cluster_seconds(&cluster->devices[0], 1e11) == 0.05);
	assert_string_equal(cluster->nodes[0].name, "node 1");
	assert_int_equal(cluster->nodes[0].uplink, -1);
	mural_cluster_free(cluster);
	/* or not told */
	assert_int_equal(read_text("{ devices: { \"a\": {} }, nodes: [ { devices: { a: 1 } } ] }", &cluster, &err),
	                 MURAL_OK);
	assert_true(mural_cluster_seconds(&cluster->devices[0], 1e11) == 0);
	mural_cluster_free(cluster);
}

#define DEVICES "\"devices\": { \"t4\": { \"seconds_per_image\": 0.03 } },\n"
#define LINKS "\"links\": { \"lan\": { \"gb_per_s\": 1 } },\n"
#define NODES "\"nodes\": [ { \"count\": 2, \"devices\": { \"t4\": 1 }, \"uplink\": \"lan\" } ]\n"

static void every_mistake_has_a_place(void **state)
{
	(void)state;
	static const struct {
		const char *text, *where, *message;
	} mistakes[] = {
	        {"{\n" DEVICES LINKS "\"nodes\": [ { \"devices\": { \"t5\": 1 }, \"uplink\": \"lan\" } ] }",
	         ":4:27: nodes[0].devices.t5", "there is no device \"t5\"; did you mean \"t4\"?"},
	        {"{\n" DEVICES LINKS "\"nodes\": [ { \"count\": 2, \"devices\": { \"t4\": 1 } } ] }", ":4:12: nodes[0]",
	         "\"uplink\" is missing here: the link from this node to the others"},
	        {"{\n" DEVICES LINKS "\"nodes\": [ { \"devices\": { \"t4\": 2 } } ] }", ":4:12: nodes[0]",
	         "\"inside\" is missing here: the link between the devices of this node"},
	        {"{\n" DEVICES LINKS "\"nodes\": [ { \"devices\": { \"t4\": 1 }, \"uplink\": \"wan\" } ] }",
	         ":4:38: nodes[0].uplink", "there is no link \"wan\"; did you mean \"lan\"?"},
	        {"{\n" DEVICES "\"links\": { \"lan\": { \"gb_per_s\": 0 } },\n" NODES "}", ":3:21: links.lan.gb_per_s",
	         "expected a number above 0, got 0"},
	        {"{\n" DEVICES "\"links\": { \"lan\": { \"latency_us\": 5 } },\n" NODES "}", ":3:12: links.lan",
	         "\"gb_per_s\" is missing here: a number above 0"},
	        {"{\n" DEVICES "\"links\": { \"lan\": { \"gb_per_s\": 1, \"latency_us\": -1 } },\n" NODES "}",
	         "links.lan.latency_us", "expected a number of 0 or more, got -1"},
	        {"{\n" DEVICES "\"links\": { \"lan\": { \"gb_per_s\": \"1\" } },\n" NODES "}", "links.lan.gb_per_s",
	         "expected a number above 0, got the string \"1\""},
	        {"{\n" DEVICES "\"links\": { \"lan\": { \"gbps\": 1 } },\n" NODES "}", "links.lan.gbps",
	         "there is no key \"gbps\""},
	        {"{\n" DEVICES LINKS "\"node\": [] }", ":4:1: node",
	         "there is no key \"node\"; did you mean \"nodes\"?"},
	        {"{\n" DEVICES LINKS "}", ":1:1", "\"nodes\" is missing here: a list of nodes [ { ... } ]"},
	        {"{\n" LINKS NODES "}", ":1:1", "\"devices\" is missing here"},
	        {"{\n\"devices\": { \"t4\": { \"seconds_per_image\": 1, \"tflops\": 1 } },\n" LINKS NODES "}",
	         "devices.t4.tflops", "expected either seconds_per_image or tflops, not both, got 1"},
	        {"{\n" DEVICES DEVICES LINKS NODES "}", ":3:1: devices", "expected each key once"},
	        {"{\n" DEVICES LINKS "\"nodes\": [ { \"devices\": { \"t4\": 0 } } ] }", "nodes[0].devices.t4",
	         "expected a whole number from 1 to 65536, got 0"},
	        {"{\n" DEVICES LINKS
	         "\"nodes\": [ { \"count\": 65536, \"devices\": { \"t4\": 65536 }, \"uplink\": \"lan\" } ] }",
	         ":4:12: nodes[0]", "expected at most 65536 devices in all"},
	        {"{\n" DEVICES LINKS "\"nodes\": [ 5 ] }", "nodes[0]", "expected an object { ... }, got 5"},
	        {"{\n" DEVICES LINKS NODES ", \"algorithm\": \"star\" }", "algorithm",
	         "expected \"auto\", \"ring\" or \"tree\", got the string \"star\""},
	        {"[]", ":1:1", "expected an object { ... }"},
	        {"{\n\"devices\": { t4: { rates: 5 } },\n" NODES "}", ":2:20: devices.t4.rates",
	         "expected a list of rates [ { ... } ], got 5"},
	        {"{\n\"devices\": { t4: { rates: [ { s_per_tflop: 1, ranks: 0 } ] } },\n" NODES "}",
	         "devices.t4.rates[0].ranks", "expected a whole number from 1 to 65536, got 0"},
	        {"{\n\"devices\": { t4: { rates: [ { s_per_tflop: -1 } ] } },\n" NODES "}",
	         "devices.t4.rates[0].s_per_tflop", "expected a number of 0 or more, got -1"},
	        {"{\n\"devices\": { t4: { rates: [ { s_per_tflop: 1, precision: \"fp64\" } ] } },\n" NODES "}",
	         "devices.t4.rates[0].precision", "expected \"fp32\", \"bf16\" or \"fp16\", got the string \"fp64\""},
	        {"{\n\"devices\": { t4: { rates: [ { ranks: 2 } ] } },\n" NODES "}", ":2:29: devices.t4.rates[0]",
	         "\"s_per_tflop\" is missing here: a rate of any model says"},
	        {"{\n\"devices\": { t4: { rates: [ { model: \"m\", seconds_per_image: 1 } ] } },\n" NODES "}",
	         "devices.t4.rates[0]", "\"seconds_per_image\" is missing here: a model's rate has"},
	        {"{\n\"devices\": { t4: { rates: [ { s_per_tflops: 1 } ] } },\n" NODES "}",
	         "devices.t4.rates[0].s_per_tflops", "there is no key \"s_per_tflops\"; did you mean \"s_per_tflop\"?"},
	        {"{\n\"devices\": { t4: { watts: 0 } },\n" NODES "}", "devices.t4.watts",
	         "expected a number above 0, got 0"},
	};
	for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
		mural_cluster *cluster;
		mural_error err;
		assert_int_equal(read_text(mistakes[i].text, &cluster, &err), MURAL_USAGE);
		assert_null(cluster);
		if (!strstr(err.where, mistakes[i].where) || !strstr(err.message, mistakes[i].message))
			fail_msg("%zu: %s: %s", i, err.where, err.message);
	}
	mural_cluster *cluster;
	mural_error err = {0};
	assert_int_equal(mural_cluster_read(&cluster, "/nowhere/at/all.json", &err), MURAL_USAGE);
	assert_non_null(strstr(err.message, "cluster file"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(the_studys_clusters),
	        cmocka_unit_test(ranks_fill_nodes_or_spread),
	        cmocka_unit_test(speed_may_be_operations),
	        cmocka_unit_test(every_mistake_has_a_place),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
