/* The planned learning rate is the schedule's, over as many updates as the run has. SPDX-License-Identifier: MIT */
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

#include "base/files.h"
#include "mural/plan.h"
#include "optim/schedule.h"

static mural_config resolve(const char *const *options, int n)
{
	mural_config config;
	mural_error err = {0};
	const mural_config_sources sources = {.argc = n, .argv = options, .ranks = 1};
	if (mural_config_resolve(&config, NULL, &sources, &err) != MURAL_OK)
		fail_msg("%s", err.message);
	return config;
}

static const char *const cosine[] = {"--batch",         "32",     "--lr",     "0.5",
                                     "--schedule",      "cosine", "--epochs", "4",
                                     "--warmup-epochs", "1",      "--min-lr", "0.1"};

static void lengths_are_the_runs(void **state)
{
	(void)state;
	mural_config config = resolve(cosine, 12);
	mural_schedule_plan plan;
	assert_int_equal(mural_plan_schedule(&plan, &config, 1000, NULL), MURAL_OK);
	assert_int_equal(plan.steps_per_epoch, 32);
	assert_int_equal(plan.steps, 128);
	assert_int_equal(plan.schedule.warmup_steps, 32);
	assert_true(plan.highest == 0.5 && fabs(plan.last - 0.1) < 1e-15 && plan.first == 0.5 / 32);
	assert_true(plan.lowest == plan.first);
	for (uint64_t n = 1; n <= 128; n++)
		assert_true(mural_plan_schedule_at(&plan, n, NULL) ==
		            mu_schedule_at(&plan.schedule, &config.optimizer, n).lr);
	config.data.drop_last = true;
	config.run.max_steps = 50;
	assert_int_equal(mural_plan_schedule(&plan, &config, 1000, NULL), MURAL_OK);
	assert_int_equal(plan.steps_per_epoch, 31);
	assert_int_equal(plan.steps, 50);
	assert_int_equal(mural_plan_schedule(&plan, &config, 31, NULL), MURAL_USAGE);
	assert_int_equal(mural_plan_schedule(&plan, &config, 0, NULL), MURAL_DATA);
}

static char *written(mural_status (*write)(const mural_schedule_plan *, const char *, mural_error *),
                     const mural_schedule_plan *plan)
{
	char path[] = "/tmp/mural-plan-XXXXXX", *text;
	size_t bytes;
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(write(plan, path, NULL), MURAL_OK);
	assert_int_equal(mu_file_read(path, "plan", 1 << 24, MURAL_DATA, &text, &bytes, NULL), MURAL_OK);
	unlink(path);
	return text;
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;
	for (const char *at = text; (at = strstr(at, what)) != NULL; at += strlen(what))
		n++;
	return n;
}

static void files_have_every_update(void **state)
{
	(void)state;
	mural_config config = resolve(cosine, 12);
	mural_schedule_plan plan;
	assert_int_equal(mural_plan_schedule(&plan, &config, 1000, NULL), MURAL_OK);
	char *csv = written(mural_plan_schedule_write_csv, &plan);
	assert_int_equal(count(csv, "\n"), 129);
	assert_non_null(strstr(csv, "step,epoch,learning_rate,beta1\n1,1,0.015625,0.9\n"));
	assert_non_null(strstr(csv, "\n32,1,0.5,0.9\n33,2,0.5,0.9\n"));
	assert_non_null(strstr(csv, "\n128,4,0.1,0.9\n"));
	free(csv);
	char *json = written(mural_plan_schedule_write_json, &plan);
	assert_int_equal(count(json, "\"step\":"), 128);
	free(json);
	char *svg = written(mural_plan_schedule_write_svg, &plan);
	assert_true(strncmp(svg, "<svg ", 5) == 0 && strstr(svg, "</svg>") && strstr(svg, "<polyline points=\""));
	assert_null(strstr(svg, "nan"));
	free(svg);
}

/* One update, and more than anybody will ever run: both are drawn, and soon. */
static void any_length_is_drawn(void **state)
{
	(void)state;
	mural_config config = resolve(cosine, 12);
	mural_schedule_plan plan;
	mural_error err = {0};
	char *text = NULL;
	size_t bytes;
	config.run.max_steps = 1;
	assert_int_equal(mural_plan_schedule(&plan, &config, 1000, NULL), MURAL_OK);
	FILE *out = open_memstream(&text, &bytes);
	mural_plan_schedule_plot(&plan, out, 40, 8);
	config.run.max_steps = 0;
	config.run.epochs = UINT32_MAX;
	assert_int_equal(mural_plan_schedule(&plan, &config, UINT32_MAX, NULL), MURAL_OK);
	mural_plan_schedule_plot(&plan, out, 40, 8);
	fclose(out);
	assert_int_equal(count(text, "\n"), 2 * (8 + 2));
	assert_true(count(text, "*") >= 2 * 29);
	free(text);
	assert_int_equal(mural_plan_schedule_write_csv(&plan, "/nowhere/lr.csv", &err), MURAL_USAGE);
	assert_non_null(strstr(err.message, "too much"));
	free(written(mural_plan_schedule_write_svg, &plan));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(lengths_are_the_runs),
	        cmocka_unit_test(files_have_every_update),
	        cmocka_unit_test(any_length_is_drawn),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
