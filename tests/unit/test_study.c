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

static void give_values(mural_study_settings *s, mural_study_axis axis, const char *text)
{
	mural_error err = {0};
	assert_int_equal(mural_study_values_read(&s->values[axis], axis, text, &err), MURAL_OK);
}

static mural_study_settings settings_of(mural_study_kind kind)
{
	mural_study_settings s;
	mural_study_defaults(&s);
	s.kind = kind;
	s.program = "mural";
	s.folder = "study";
	give_values(&s, MURAL_AXIS_RANKS, "1,2,4");
	return s;
}

static void plan(mu_study *study, const mural_study_settings *settings)
{
	mural_error err = {0};
	*study = (mu_study){0};
	assert_int_equal(mu_study_fill(study, settings, &err), MURAL_OK);
	assert_int_equal(mu_study_plan(study, &err), MURAL_OK);
}

static void release(mu_study *study)
{
	mu_study_where_release(&study->where);
	free(study->points);
	free(study->runs);
}

static void test_points(void **state)
{
	(void)state;
	mural_study_settings s = settings_of(MURAL_STUDY_WEAK);
	mu_study study;
	plan(&study, &s);
	assert_int_equal(study.n_points, 3);
	assert_string_equal(study.points[2].name, "weak-r4-b16-fp32");
	assert_true(fabs(study.points[2].fraction - 0.4) < 1e-12);
	release(&study);

	s = settings_of(MURAL_STUDY_BATCH);
	plan(&study, &s);
	assert_int_equal(study.n_points, 15);
	assert_int_equal(study.points[14].batch, 256);
	assert_int_equal(study.points[14].ranks, 4);
	assert_true(study.points[14].fraction == 1);
	release(&study);

	s = settings_of(MURAL_STUDY_OPTIMIZER);
	plan(&study, &s);
	assert_int_equal(study.n_points, 12);
	assert_string_equal(study.points[11].name, "optimizer-r4-b16-fp32-Lamb");
	assert_null(study.points[11].words[MURAL_AXIS_PLACEMENT]);
	assert_int_equal(study.settings.warm_up, 2);
	release(&study);

	s = settings_of(MURAL_STUDY_HETEROGENEITY);
	s.warm_up = MURAL_STUDY_WARM_UP;
	plan(&study, &s);
	assert_int_equal(study.n_points, 6);
	assert_string_equal(study.points[5].name, "heterogeneity-r4-b16-fp32-auto");
	assert_string_equal(study.points[0].words[MURAL_AXIS_BALANCE], "equal");
	assert_int_equal(study.settings.warm_up, 40); /* shares settle within 30 steps */
	release(&study);
}

static void test_values(void **state)
{
	(void)state;
	static const struct {
		mural_study_axis axis;
		const char *text;
	} bad[] = {{MURAL_AXIS_RANKS, "0"},
	           {MURAL_AXIS_RANKS, "1,"},
	           {MURAL_AXIS_RANKS, ",1"},
	           {MURAL_AXIS_RANKS, "-1"},
	           {MURAL_AXIS_RANKS, "2x"},
	           {MURAL_AXIS_RANKS, ""},
	           {MURAL_AXIS_RANKS, NULL},
	           {MURAL_AXIS_RANKS, "1000000001"},
	           {MURAL_AXIS_PRECISION, "a/b"},
	           {MURAL_AXIS_PRECISION, "a,,b"},
	           {MURAL_AXIS_PRECISION, "averyverylongwordthatnobodywouldwrite"}};
	mural_study_values values;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		mural_error err = {0};
		assert_int_equal(mural_study_values_read(&values, bad[i].axis, bad[i].text, &err), MURAL_USAGE);
		assert_non_null(strstr(err.message, bad[i].axis == MURAL_AXIS_RANKS
		                                            ? "argument --ranks: expected"
		                                            : "argument --precisions: expected"));
		assert_int_equal(values.n, 0);
	}
	mural_error err = {0};
	assert_int_equal(mural_study_values_read(&values, MURAL_AXIS_OPTIMIZER, "SGD,Lion", &err), MURAL_OK);
	assert_int_equal(values.n, 2);
	assert_string_equal(values.words[1], "Lion");
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
	mu_study study = {0};
	s.fraction = 0.3;
	err = (mural_error){0};
	assert_int_equal(mu_study_fill(&study, &s, &err), MURAL_OK);
	assert_int_equal(mu_study_plan(&study, &err), MURAL_USAGE);
	assert_non_null(strstr(err.message, "0.25 at most"));
	release(&study);

	s = settings_of(MURAL_STUDY_PLACEMENT); /* on one machine */
	study = (mu_study){0};
	err = (mural_error){0};
	assert_int_equal(mu_study_fill(&study, &s, &err), MURAL_OK);
	assert_int_equal(mu_study_plan(&study, &err), MURAL_USAGE);
	assert_non_null(strstr(err.message, "--cluster FILE, --hostfile FILE or --slurm"));
	release(&study);
}

/* ---- where ranks sit. ---- */

#define HOSTS "c1 slots=4\nc2 slots=2\nc3 slots=2\n"

static void test_hosts(void **state)
{
	(void)state;
	char *folder = test_folder_create();
	char path[512], *slots;
	mural_error err = {0};
	test_file_write(folder, "hosts", HOSTS, strlen(HOSTS));
	snprintf(path, sizeof path, "%s/hosts", folder);
	mural_study_settings s = settings_of(MURAL_STUDY_PLACEMENT);
	s.hosts = (mural_hosts_choice){.file = path, .exclude = "c1:1"};
	give_values(&s, MURAL_AXIS_RANKS, "2,5");
	mu_study study = {0};
	assert_int_equal(mu_study_fill(&study, &s, &err), MURAL_OK);
	assert_int_equal(mural_hosts_open(&study.where.hosts, &s.hosts, &err), MURAL_OK);
	assert_int_equal(mu_study_plan(&study, &err), MURAL_OK);
	static const char *const expected[] = {"c1:0,2", "c1:0,2,3@c2:0,1", "c1:0@c2:0", "c1:0,2@c2:0,1@c3:0"};
	static const bool across[] = {false, true, true, true};
	assert_int_equal(study.n_points, 4);
	for (size_t p = 0; p < 4; p++) {
		mu_study_seat seat;
		assert_int_equal(mu_study_slots(&study.where, &study.points[p], &slots, &err), MURAL_OK);
		assert_string_equal(slots, expected[p]);
		free(slots);
		assert_int_equal(mu_study_seat_of(&study, &study.points[p], &seat, &err), MURAL_OK);
		assert_int_equal(seat.across, across[p]);
	}
	assert_int_equal(mu_study_compare(&study, 3).base, 1); /* five ranks spread, beside five ranks packed */
	release(&study);

	give_values(&s, MURAL_AXIS_RANKS, "8"); /* seven slots are left */
	study = (mu_study){0};
	assert_int_equal(mu_study_fill(&study, &s, &err), MURAL_OK);
	assert_int_equal(mural_hosts_open(&study.where.hosts, &s.hosts, &err), MURAL_OK);
	assert_int_equal(mu_study_plan(&study, &err), MURAL_USAGE);
	assert_non_null(strstr(err.message, "slots for only 7"));
	release(&study);
	test_folder_remove(folder);
}

/* A cluster of two nodes with a fast and a slow card each. */
static const char cluster_text[] =
        "{ name: \"lab\", devices: { a: { seconds_per_image: 1 }, b: { seconds_per_image: 2 } },"
        "  links: { l: { gb_per_s: 1 } },"
        "  nodes: [ { count: 2, devices: { a: 1, b: 1 }, inside: \"l\", uplink: \"l\" } ] }";

static void test_cluster(void **state)
{
	(void)state;
	char *folder = test_folder_create();
	char path[512];
	mural_error err = {0};
	test_file_write(folder, "lab.json", cluster_text, strlen(cluster_text));
	snprintf(path, sizeof path, "%s/lab.json", folder);
	mural_study_settings s = settings_of(MURAL_STUDY_PLACEMENT);
	s.values[MURAL_AXIS_RANKS].n = 0; /* as many as there are */
	mu_study study = {0};
	assert_int_equal(mu_study_fill(&study, &s, &err), MURAL_OK);
	assert_int_equal(mural_cluster_read(&study.where.cluster, path, &err), MURAL_OK);
	assert_int_equal(mu_study_plan(&study, &err), MURAL_OK);
	static const char *const device[] = {"a", "mixed", "mixed", "a", "a", "mixed"};
	static const bool across[] = {false, false, true, true, true, true};
	assert_int_equal(study.n_points, 6); /* 1, 2, 4 ranks, packed and spread */
	for (size_t p = 0; p < 6; p++) {
		mu_study_seat seat;
		assert_int_equal(mu_study_seat_of(&study, &study.points[p], &seat, &err), MURAL_OK);
		assert_string_equal(seat.cluster, "lab");
		assert_string_equal(seat.device, device[p]);
		assert_int_equal(seat.across, across[p]);
	}
	release(&study);
	test_folder_remove(folder);
}

static bool has_pair(const mu_command *c, const char *option, const char *value)
{
	for (size_t i = 0; i + 1 < c->n; i++)
		if (strcmp(c->argv[i], option) == 0 && strcmp(c->argv[i + 1], value) == 0)
			return true;
	return false;
}

static void test_command(void **state)
{
	(void)state;
	static const char *const configuration[] = {"--model", "vit_ti_16"};
	mural_study_settings s = settings_of(MURAL_STUDY_PLACEMENT);
	s.slurm = "--mpi=pmix  --exclusive";
	s.argc = 2;
	s.argv = configuration;
	mural_error err = {0};
	mu_study study;
	plan(&study, &s);
	mu_study_command command = {0};
	const mu_command *c = &command.words;
	assert_int_equal(mu_study_command_make(&command, &study, &study.points[5], false, &err), MURAL_OK);
	assert_string_equal(c->argv[0], "srun");
	assert_string_equal(c->argv[3], "--spread-job");
	assert_string_equal(c->argv[4], "--mpi=pmix");
	assert_string_equal(c->argv[5], "--exclusive");
	assert_true(has_pair(c, "--ntasks", "4") && has_pair(c, "mural", "train"));
	assert_true(has_pair(c, "--model", "vit_ti_16") && has_pair(c, "--batch", "64"));
	assert_true(has_pair(c, "--max-steps", "12"));
	assert_false(has_pair(c, "--ranks", "4") || has_pair(c, "--placement", "spread"));
	mu_study_command_release(&command);
	assert_int_equal(mu_study_command_make(&command, &study, &study.points[5], true, &err), MURAL_OK);
	assert_string_equal(c->argv[0], "mural");
	assert_true(has_pair(c, "--ranks", "4"));
	assert_string_equal(c->argv[c->n - 1], "--show-config");
	mu_study_command_release(&command);
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
	mu_study study;
	plan(&study, &s);
	give(&study, (const double[2][3]){{100, 180, 0}, {110, 198, 300}});
	mu_comparison one = mu_study_compare(&study, 0), two = mu_study_compare(&study, 1),
	              four = mu_study_compare(&study, 2);
	assert_true(one.speed_up == 1 && one.base == 0 && isnan(one.serial));
	assert_true(fabs(two.speed_up - 1.8) < 1e-12);
	assert_true(fabs(two.efficiency - 0.9) < 1e-12);
	assert_true(fabs(two.speed_up_in.low - 1.8) < 1e-6 &&
	            fabs(two.speed_up_in.high - 1.8) < 1e-6); /* rounds agree */
	assert_true(fabs(two.serial - (1 / 1.8 - 0.5) / 0.5) < 1e-12);
	assert_true(two.communication == 0.25);
	assert_int_equal(four.rounds, 1);
	assert_true(isnan(four.speed_up_in.low) && isnan(four.efficiency_in.high)); /* one round tells no interval */
	assert_true(fabs(four.speed_up - 300 / 105.0) < 1e-12);
	release(&study);
}

/* Rounds of 1.7 and 1.9: the interval by hand is exp(mean +- 12.706 sd / sqrt 2) of their logarithms. */
static void test_interval(void **state)
{
	(void)state;
	mural_study_settings s = settings_of(MURAL_STUDY_STRONG);
	s.rounds = 2;
	mu_study study;
	plan(&study, &s);
	give(&study, (const double[2][3]){{100, 170, 1}, {100, 190, 1}});
	mu_comparison two = mu_study_compare(&study, 1);
	double mean = (log(1.7) + log(1.9)) / 2, half = 12.706 * fabs(log(1.9) - log(1.7)) / 2;
	double low = exp(mean - half), high = exp(mean + half);
	assert_true(fabs(two.speed_up_in.low - low) < 1e-9 && fabs(two.speed_up_in.high - high) < 1e-9);
	assert_true(fabs(two.efficiency_in.low - low / 2) < 1e-9);
	assert_true(fabs(two.serial_in.low - (1 / high - 0.5) / 0.5) < 1e-9);
	assert_true(fabs(two.serial_in.high - (1 / low - 0.5) / 0.5) < 1e-9);
	mu_study_facts(&study, 0, 1)->exposed = 0.2;
	mu_study_facts(&study, 1, 1)->exposed = 0.3;
	mu_interval in = mu_study_compare(&study, 1).communication_in; /* mean 0.25, sd 0.0707 */
	assert_true(fabs(in.low - (0.25 - 12.706 * 0.05)) < 1e-9 && fabs(in.high - (0.25 + 12.706 * 0.05)) < 1e-9);
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
	const char *result =
	        "{\"train_loss\": 1.5, \"test_accuracy\": null, \"images_per_epoch\": 640,"
	        " \"seconds\": 8, \"emulation\": {\"late_step_seconds\": 1, \"late_collective_seconds\": 3},"
	        " \"load\": {\"slowest_seconds\": 0.75, \"mean_seconds\": 0.5}}";
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
	assert_true(facts.imbalance == 0.25 && facts.late == 0.5);
	assert_true(facts.train_loss == 1.5 && isnan(facts.test_accuracy));
	err = (mural_error){0};
	assert_int_equal(mu_study_read_run(folder, 4, &facts, &err), MURAL_DATA);
	assert_non_null(strstr(err.message, "4 steps, of which 4 are warm-up"));
	test_folder_remove(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_points),     cmocka_unit_test(test_values),   cmocka_unit_test(test_no_study),
	        cmocka_unit_test(test_hosts),      cmocka_unit_test(test_cluster),  cmocka_unit_test(test_command),
	        cmocka_unit_test(test_comparison), cmocka_unit_test(test_interval), cmocka_unit_test(test_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
