/* Studies: which points, how they compare, what is read from a run's folder. SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "study/study_inside.h"
#include "support/data_files.h"

static mural_study_settings settings_of(mural_study_kind kind)
{
	mural_study_settings s;
	mural_study_defaults(&s);
	s.kind = kind;
	s.program = "mural";
	s.folder = "study";
	s.ranks[0] = 1;
	s.ranks[1] = 2;
	s.ranks[2] = 4;
	s.n_ranks = 3;
	return s;
}

static mu_study study_of(const mural_study_settings *settings)
{
	mu_study study = {.settings = settings};
	mural_error err = {0};
	assert_int_equal(mu_study_check(settings, &err), MURAL_OK);
	assert_int_equal(mu_study_plan(&study, &err), MURAL_OK);
	return study;
}

static void release(mu_study *study)
{
	free(study->points);
	free(study->runs);
}

static void test_points(void **state)
{
	(void)state;
	mural_study_settings s = settings_of(MURAL_STUDY_WEAK);
	mu_study study = study_of(&s);
	assert_int_equal(study.n_points, 3);
	assert_string_equal(study.points[2].name, "weak-r4-b16-fp32");
	assert_true(fabs(study.points[2].fraction - 0.4) < 1e-12);
	release(&study);

	s = settings_of(MURAL_STUDY_BATCH);
	study = study_of(&s);
	assert_int_equal(study.n_points, 15);
	assert_int_equal(study.points[14].batch, 256);
	assert_int_equal(study.points[14].ranks, 4);
	assert_true(study.points[14].fraction == 1);
	release(&study);

	s = settings_of(MURAL_STUDY_OPTIMIZER);
	study = study_of(&s);
	assert_int_equal(study.n_points, 12);
	assert_string_equal(study.points[11].name, "optimizer-r4-b16-fp32-Lamb");
	release(&study);
}

static void test_no_study(void **state)
{
	(void)state;
	mural_error err = {0};
	mural_study_kind kind;
	assert_int_equal(mural_study_find(&kind, "weak", &err), MURAL_OK);
	assert_int_equal(kind, MURAL_STUDY_WEAK);
	assert_int_equal(mural_study_find(&kind, "week", &err), MURAL_USAGE);
	assert_non_null(strstr(err.message, "did you mean weak?"));

	mural_study_settings s = settings_of(MURAL_STUDY_WEAK);
	mu_study study = {.settings = &s};
	s.fraction = 0.3;
	err = (mural_error){0};
	assert_int_equal(mu_study_plan(&study, &err), MURAL_USAGE);
	assert_non_null(strstr(err.message, "0.25 at most"));
	release(&study);
}

/* images per second of each point in each round */
static void give(mu_study *study, const double speed[2][3])
{
	for (uint32_t r = 0; r < 2; r++)
		for (size_t p = 0; p < 3; p++) {
			mu_run_facts *f = mu_study_facts(study, r, p);
			f->done = speed[r][p] > 0;
			f->images_per_second = speed[r][p];
			f->step = 1;
			f->exposed = 0.25;
		}
}

static void test_comparison(void **state)
{
	(void)state;
	mural_study_settings s = settings_of(MURAL_STUDY_STRONG);
	s.rounds = 2;
	mu_study study = study_of(&s);
	give(&study, (const double[2][3]){{100, 180, 0}, {110, 198, 300}});
	mu_comparison one = mu_study_compare(&study, 0), two = mu_study_compare(&study, 1),
	              four = mu_study_compare(&study, 2);
	assert_true(one.speed_up == 1 && one.base == 0 && isnan(one.serial));
	assert_true(fabs(two.speed_up - 1.8) < 1e-12);
	assert_true(fabs(two.efficiency - 0.9) < 1e-12);
	assert_true(fabs(two.low - 1.8) < 1e-6 && fabs(two.high - 1.8) < 1e-6); /* both rounds agree */
	assert_true(fabs(two.serial - (1 / 1.8 - 0.5) / 0.5) < 1e-12);
	assert_true(two.communication == 0.25);
	assert_int_equal(four.rounds, 1);
	assert_true(isnan(four.low)); /* one round tells no interval */
	assert_true(fabs(four.speed_up - 300 / 105.0) < 1e-12);
	release(&study);
}

/* Rounds of 1.7 and 1.9: the interval by hand is exp(mean +- 12.706 sd / sqrt 2) of their logarithms. */
static void test_interval(void **state)
{
	(void)state;
	mural_study_settings s = settings_of(MURAL_STUDY_STRONG);
	s.rounds = 2;
	mu_study study = study_of(&s);
	give(&study, (const double[2][3]){{100, 170, 1}, {100, 190, 1}});
	mu_comparison two = mu_study_compare(&study, 1);
	double mean = (log(1.7) + log(1.9)) / 2, half = 12.706 * fabs(log(1.9) - log(1.7)) / 2;
	assert_true(fabs(two.low - exp(mean - half)) < 1e-9);
	assert_true(fabs(two.high - exp(mean + half)) < 1e-9);
	release(&study);
}

#define STEPS                                                                                               \
	"step,epoch,loss,learning_rate,gradient_norm,images,data_seconds,forward_seconds,backward_seconds," \
	"communication_exposed_seconds,communication_hidden_seconds,optimizer_seconds\n"

static void test_read(void **state)
{
	(void)state;
	char *folder = test_folder_create();
	const char *steps = STEPS "1,1,2,1e-3,1,32,9,9,9,9,9,9\n"
	                          "2,1,2,1e-3,1,32,0.1,0.3,0.5,0.05,0.2,0.05\n"
	                          "3,1,2,1e-3,1,32,0.1,0.4,0.7,0.05,0.2,0.05\n"
	                          "4,1,2,1e-3,1,32,0.1,0.5,0.9,0.05,0.2,0.05\n";
	const char *result = "{\"train_loss\": 1.5, \"test_accuracy\": null, \"images_per_epoch\": 640}";
	mu_run_facts facts = {0};
	mural_error err = {0};
	test_file_write(folder, "steps.csv", steps, strlen(steps));
	assert_int_equal(mu_study_read_run(folder, 1, &facts, &err), MURAL_DATA); /* no result: it did not end */
	test_file_write(folder, "result.json", result, strlen(result));
	assert_int_equal(mu_study_read_run(folder, 1, &facts, &err), MURAL_OK);
	assert_int_equal(facts.steps, 3);
	assert_true(fabs(facts.step - 1.3) < 1e-12);
	assert_true(fabs(facts.step_error - 1.4826 * 1.2533 * 0.3 / sqrt(3)) < 1e-9); /* 1.0, 1.3, 1.6 */
	assert_true(fabs(facts.backward - 0.7) < 1e-12);
	assert_true(fabs(facts.images_per_second - 32 / 1.3) < 1e-9);
	assert_true(fabs(facts.epoch - 640 / (32 / 1.3)) < 1e-9);
	assert_true(facts.train_loss == 1.5 && isnan(facts.test_accuracy));
	err = (mural_error){0};
	assert_int_equal(mu_study_read_run(folder, 4, &facts, &err), MURAL_DATA);
	assert_non_null(strstr(err.message, "4 steps, of which 4 are warm-up"));
	test_folder_remove(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_points),   cmocka_unit_test(test_no_study), cmocka_unit_test(test_comparison),
	        cmocka_unit_test(test_interval), cmocka_unit_test(test_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
