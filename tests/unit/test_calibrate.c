/* Calibration: rates are found again from steps that were made with them, by a program that only pretends to train; and what is
 * said when it fails. SPDX-License-Identifier: MIT */
#include <ftw.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "study/calibrate_inside.h"

static void near_value(double found, double expected, double within, int line)
{
	if (!(fabs(found - expected) <= within * fabs(expected)))
		fail_msg("line %d: %.12g, expected %.12g", line, found, expected);
}

/* A machine of two cores: one rank has both, two have one each and wait for each other a little. */
static mural_cluster *truth(void)
{
	mural_cluster *c;
	assert_int_equal(mural_cluster_here(&c, NULL), MURAL_OK);
	c->n_rates = 2;
	c->devices_in_all = c->nodes[0].slots[0].count = 2;
	c->links[0] = (mural_cluster_link){"memory", 2e9, 30e-6};
	for (uint32_t r = 0; r < 2; r++)
		c->rates[r] = (mural_cluster_rate){.ranks = r + 1,
		                                   .seconds_per_flop = 4e-12 * (r + 1),
		                                   .seconds_per_value = 0.3e-9 * (r + 1),
		                                   .seconds_per_parameter = 0.5e-9 * (r + 1),
		                                   .seconds_per_unit = 40e-6,
		                                   .update_seconds_per_parameter = 1.5e-9,
		                                   .update_seconds = 200e-6,
		                                   .wait_share = 0.02 * r};
	return c;
}

static void pretend(const mural_cluster *cluster, mu_calibration *c)
{
	for (size_t i = 0; i < c->n; i++) {
		mu_probe *p = &c->probes[i];
		mural_forecast *f;
		mural_forecast_step step;
		const mural_forecast_settings settings = {.config = &p->config, .cluster = cluster};
		const mural_forecast_point point = {.ranks = (int)p->ranks, .micro_batch = p->batch, .accumulation = 1};
		assert_int_equal(mural_forecast_create(&f, &settings, NULL), MURAL_OK);
		assert_int_equal(mural_forecast_at(f, &point, &step, NULL), MURAL_OK);
		mural_forecast_free(f);
		p->facts = (mu_run_facts){.step = step.seconds,
		                          .forward = step.forward,
		                          .backward = step.backward,
		                          .exposed = step.exposed,
		                          .optimizer = step.optimizer};
	}
}

static void test_rates_are_found_again(void **state)
{
	(void)state;
	static const char *const argv[] = {"--model", "vit_b_16", "--image-size", "64", "--batch", "6"};
	const mural_calibrate_settings settings = {.argc = 6, .argv = argv, .ranks = 2};
	mu_calibration *c = calloc(1, sizeof *c);
	mural_cluster *made = truth(), *fitted;
	mural_calibration found = {0};
	mural_error err = {0};
	assert_non_null(c);
	c->settings = &settings;
	if (mu_calibration_plan(c, &err) != MURAL_OK)
		fail_msg("%s %s", err.where, err.message);
	pretend(made, c);
	assert_int_equal(mural_cluster_here(&fitted, NULL), MURAL_OK);
	assert_int_equal(mu_calibration_fit(c, fitted, &found, &err), MURAL_OK);
	assert_int_equal(fitted->n_rates, 4); /* any model and this one, one rank and two */
	near_value(fitted->rates[0].seconds_per_flop, 4e-12, 0.02, __LINE__);
	near_value(fitted->rates[0].seconds_per_parameter, 0.5e-9, 0.05, __LINE__);
	near_value(fitted->rates[0].update_seconds_per_parameter, 1.5e-9, 0.01, __LINE__);
	assert_string_equal(fitted->rates[1].model, "vit_b_16");
	near_value(fitted->rates[1].seconds_per_image, 4e-12 * c->probes[10].flops + 0.3e-9 * c->probes[10].values,
	           0.02, __LINE__);
	assert_int_equal(fitted->rates[2].ranks, 2);
	near_value(fitted->rates[2].wait_share, 0.02, 0.3, __LINE__);
	near_value(fitted->links[0].bytes_per_second, 2e9, 0.05, __LINE__);
	assert_true(found.max_error < 0.02 && found.median_error <= found.max_error);
	mural_cluster_free(made);
	mural_cluster_free(fitted);
	free(c);
}

static int remove_one(const char *path, const struct stat *facts, int kind, struct FTW *at)
{
	(void)facts, (void)kind, (void)at;
	return remove(path);
}

/* Writes a program that leaves a run folder, or fails, into folder. */
static void write_program(const char *folder, const char *words, char path[1200])
{
	snprintf(path, 1200, "%s/pretend", folder);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file,
	        "#!/bin/sh\nwhile [ $# -gt 0 ]; do case $1 in --run-dir) dir=$2;; --batch) batch=$2;; esac; shift; "
	        "done\n"
	        "%s\n"
	        "mkdir -p $dir\necho '{ \"images_per_epoch\": 100, \"peak_memory_bytes\": 5 }' >$dir/result.json\n"
	        "echo step,epoch,loss,learning_rate,gradient_norm,images,data_seconds,forward_seconds,backward_seconds,"
	        "communication_exposed_seconds,communication_hidden_seconds,optimizer_seconds >$dir/steps.csv\n"
	        "for i in 1 2 3 4 5; do echo $i,1,1,1,1,$batch,0,0.01,0.02,0.001,0,0.003 >>$dir/steps.csv; done\n",
	        words);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(path, 0755), 0);
}

static void test_file(void **state)
{
	(void)state;
	char folder[] = "/tmp/mural-calibrate-XXXXXX", program[1200], output[1200];
	assert_non_null(mkdtemp(folder));
	write_program(folder, "true", program);
	snprintf(output, sizeof output, "%s/here.json", folder);
	const mural_calibrate_settings settings = {
	        .program = program, .folder = folder, .output = output, .ranks = 2, .rounds = 2};
	mural_calibration found;
	mural_error err = {0};
	mural_cluster *cluster;
	if (mural_calibrate(&settings, &found, &err) != MURAL_OK)
		fail_msg("%s %s", err.where, err.message);
	assert_int_equal(found.trainings, 2 * (2 * 11 + 2));
	if (mural_cluster_read(&cluster, output, &err) != MURAL_OK)
		fail_msg("%s %s", err.where, err.message);
	assert_int_equal(cluster->n_rates, 2);
	assert_int_equal(cluster->rates[1].ranks, 2);
	assert_true(cluster->devices_in_all >= 2);
	assert_true(cluster->rates[0].seconds_per_flop > 0 || cluster->rates[0].seconds_per_unit > 0);
	mural_cluster_free(cluster);
	/* the same again measures nothing: its folders are there */
	assert_int_equal(unlink(program), 0);
	assert_int_equal(mural_calibrate(&settings, &found, &err), MURAL_OK);
	assert_int_equal(nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static void test_failure(void **state)
{
	(void)state;
	char folder[] = "/tmp/mural-calibrate-XXXXXX", program[1200], output[1200];
	assert_non_null(mkdtemp(folder));
	write_program(folder, "echo 'mural: no more paint' >&2; exit 1", program);
	snprintf(output, sizeof output, "%s/here.json", folder);
	mural_calibrate_settings settings = {.program = program, .folder = folder, .output = output, .ranks = 1};
	mural_calibration found;
	mural_error err = {0};
	assert_int_equal(mural_calibrate(&settings, &found, &err), MURAL_FAILED);
	assert_string_equal(err.message,
	                    "a training of vit_ti_16 with 1 rank failed (exit code 1): mural: no more paint");
	assert_int_equal(access(output, F_OK), -1);
	err = (mural_error){0};
	settings.rounds = 33;
	assert_int_equal(mural_calibrate(&settings, &found, &err), MURAL_USAGE);
	assert_int_equal(nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_rates_are_found_again),
	        cmocka_unit_test(test_file),
	        cmocka_unit_test(test_failure),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
