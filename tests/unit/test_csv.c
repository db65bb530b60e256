/* metrics.csv and steps.csv: header lines, quoting, appending, torn lines; timers and host statistics that feed them.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files.h"
#include "monitor/metrics_csv.h"
#include "monitor/steps_csv.h"

/* Written out here on purpose: the study's line, which analysis scripts look for. */
#define STUDY_HEADER                                                                                      \
	"Timestamp,Rank,Epoch,Computation_Time,GPU_ID,GPU_Name,GPU_Load,GPU_Free_Mem_MB,GPU_Used_Mem_MB," \
	"GPU_Total_Mem_MB,GPU_Temp_C\n"
#define STEPS_HEADER                                                                                        \
	"step,epoch,loss,learning_rate,gradient_norm,images,data_seconds,forward_seconds,backward_seconds," \
	"communication_exposed_seconds,communication_hidden_seconds,optimizer_seconds,loss_scale,"          \
	"applied_steps,skipped_steps\n"

static char path[64];

static int setup(void **state)
{
	(void)state;
	snprintf(path, sizeof path, "/tmp/mural-csv-XXXXXX");
	int fd = mkstemp(path);
	return fd < 0 ? -1 : close(fd);
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

static void expect_file(const char *expected)
{
	mural_error err = {0};
	char *text;
	size_t bytes;
	assert_int_equal(mu_file_read(path, "table", 1 << 20, MURAL_DATA, &text, &bytes, &err), MURAL_OK);
	assert_string_equal(text, expected);
	free(text);
}

static void write_file(const char *text)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static mu_metrics_row example(void)
{
	mu_metrics_row row = {.timestamp = 1769862896, .rank = 1, .epoch = 3, .seconds = 12.3456789};
	row.device = (mu_device_sample){.id = "0",
	                                .name = "Card \"X\", 16 GB",
	                                .load = 97.25,
	                                .free_bytes = 5ull << 30,
	                                .used_bytes = 11ull << 30,
	                                .total_bytes = 16ull << 30,
	                                .celsius = 61};
	return row;
}

#define EXAMPLE_LINE "2026-01-31T12:34:56Z,1,3,12.345679,0,\"Card \"\"X\"\", 16 GB\",97.2,5120,11264,16384,61.0\n"

static void test_metrics(void **state)
{
	(void)state;
	mu_csv csv = {0};
	mural_error err = {0};
	mu_metrics_row row = example();
	assert_int_equal(mu_metrics_open(&csv, path, &err), MURAL_OK);
	assert_int_equal(mu_metrics_write(&csv, &row, &err), MURAL_OK);
	expect_file(STUDY_HEADER EXAMPLE_LINE); /* there before the file is closed */
	row.device = (mu_device_sample){.id = "cpu", .name = "host", .load = NAN, .celsius = NAN};
	assert_int_equal(mu_metrics_write(&csv, &row, &err), MURAL_OK);
	mu_csv_close(&csv);
	expect_file(STUDY_HEADER EXAMPLE_LINE "2026-01-31T12:34:56Z,1,3,12.345679,cpu,host,,,,,\n");
}

static void test_steps(void **state)
{
	(void)state;
	mu_csv csv = {0};
	mural_error err = {0};
	const double seconds[MU_PHASE_COUNT] = {0.001, 0.25, 0.5, 0, 0.0625, 1e-7};
	mu_steps_row row = {.step = 7,
	                    .epoch = 1,
	                    .loss = 1.0 / 3,
	                    .learning_rate = 1e-4,
	                    .gradient_norm = NAN,
	                    .images = 64,
	                    .seconds = seconds,
	                    .loss_scale = 65536,
	                    .applied = 5,
	                    .skipped = 2};
	assert_int_equal(mu_steps_open(&csv, path, &err), MURAL_OK);
	assert_int_equal(mu_steps_write(&csv, &row, &err), MURAL_OK);
	row.loss = NAN;
	row.gradient_norm = 2.5;
	assert_int_equal(mu_steps_write(&csv, &row, &err), MURAL_OK);
	mu_csv_close(&csv);
	mu_csv_close(&csv);
	expect_file(
	        STEPS_HEADER
	        "7,1,0.3333333333333333,0.0001,,64,0.001000,0.250000,0.500000,0.000000,0.062500,0.000000,65536,5,2\n"
	        "7,1,nan,0.0001,2.5,64,0.001000,0.250000,0.500000,0.000000,0.062500,0.000000,65536,5,2\n");
}

static void test_resume_appends(void **state)
{
	(void)state;
	mu_metrics_row row = example();
	for (int run = 0; run < 2; run++) {
		mu_csv csv = {0};
		mural_error err = {0};
		assert_int_equal(mu_metrics_open(&csv, path, &err), MURAL_OK);
		assert_int_equal(mu_metrics_write(&csv, &row, &err), MURAL_OK);
		mu_csv_close(&csv);
	}
	expect_file(STUDY_HEADER EXAMPLE_LINE EXAMPLE_LINE);
}

static void test_torn_line_is_cut(void **state)
{
	(void)state;
	mu_csv csv = {0};
	mural_error err = {0};
	write_file(STUDY_HEADER EXAMPLE_LINE "2026-01-31T12:3");
	assert_int_equal(mu_metrics_open(&csv, path, &err), MURAL_OK);
	mu_csv_close(&csv);
	expect_file(STUDY_HEADER EXAMPLE_LINE);
	write_file("Timestamp,Ra");
	assert_int_equal(mu_metrics_open(&csv, path, &err), MURAL_OK);
	mu_csv_close(&csv);
	expect_file(STUDY_HEADER);
}

static void write_text(const char *text)
{
	FILE *out = fopen(path, "w");
	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

static void check_cut(const char *before, int column, uint64_t last, const char *after)
{
	char *text;
	size_t n;
	write_text(before);
	assert_int_equal(mu_csv_cut(path, column, last, NULL), MURAL_OK);
	assert_int_equal(mu_file_read(path, "table", 1000, MURAL_DATA, &text, &n, NULL), MURAL_OK);
	assert_string_equal(text, after);
	free(text);
}

/* A run that goes back to step 2: what came after it is cut off, and a torn line in any case. */
static void test_rows_behind_a_point_are_cut(void **state)
{
	(void)state;
	check_cut("step,x\n1,a\n2,b\n3,c\n", 0, 2, "step,x\n1,a\n2,b\n");
	check_cut("step,x\n1,a\n2,b\n", 0, 9, "step,x\n1,a\n2,b\n");
	check_cut("step,x\n1,a\n2,b", 0, 2, "step,x\n1,a\n");
	check_cut("step,x\n1,a\n12,b\n2,c\n", 0, 2, "step,x\n1,a\n");
	check_cut("step,x\n1,a\nxx,b\n2,c\n", 0, 2, "step,x\n1,a\n");
	check_cut("step,x\n1,a\n", 0, 0, "step,x\n");
	check_cut("when,rank,epoch\nt,0,1\nt,1,1\nt,0,2\n", 2, 1, "when,rank,epoch\nt,0,1\nt,1,1\n");
	check_cut("when,rank,epoch\nt,0\n", 2, 1, "when,rank,epoch\n");
	check_cut("a\nb\n", 9, 1, "a\n");
	check_cut("step,x\n1", 0, 1, "step,x\n");
	check_cut("step", 0, 1, "");
	check_cut("", 0, 1, "");
	assert_int_equal(mu_csv_cut("/nonexistent/table", 0, 1, NULL), MURAL_OK);
}

static void test_other_header_is_refused(void **state)
{
	(void)state;
	mu_csv csv = {0};
	mural_error err = {0};
	write_file("a,b,c\n1,2,3\n");
	assert_int_equal(mu_metrics_open(&csv, path, &err), MURAL_FAILED);
	assert_non_null(strstr(err.message, "its first line is 'a,b,c'"));
	assert_string_equal(err.where, path);
	mu_csv_close(&csv);
	expect_file("a,b,c\n1,2,3\n");
}

static void test_disk_that_is_full(void **state)
{
	(void)state;
	mu_csv csv = {0};
	mural_error err = {0};
	assert_int_equal(mu_metrics_open(&csv, "/dev/full", &err), MURAL_FAILED);
	assert_string_equal(err.message, "cannot write the table: No space left on device");
}

static void test_rows_must_fit(void **state)
{
	(void)state;
	mu_csv csv = {0};
	mural_error err = {0}, err2 = {0};
	char name[9000];
	memset(name, '"', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	assert_int_equal(mu_csv_open(&csv, path, "a,b", &err), MURAL_OK);
	mu_csv_unsigned(&csv, 1);
	assert_int_equal(mu_csv_end_row(&csv, &err), MURAL_BUG);
	mu_csv_text(&csv, name);
	mu_csv_unsigned(&csv, 1);
	assert_int_equal(mu_csv_end_row(&csv, &err2), MURAL_BUG);
	mu_csv_text(&csv, "x\ny");
	mu_csv_number_or_empty(&csv, -0.5);
	assert_int_equal(mu_csv_end_row(&csv, NULL), MURAL_OK);
	mu_csv_close(&csv);
	expect_file("a,b\n\"x\ny\",-0.5\n");
}

static void test_timers(void **state)
{
	(void)state;
	mu_timers timers = {0};
	mu_timers_add(&timers, MU_PHASE_FORWARD, 2);
	mu_timers_add(&timers, MU_PHASE_FORWARD, 1);
	mu_timers_add(&timers, MU_PHASE_DATA, -1e-9);
	mu_timers_communication(&timers, 5, 2);
	mu_timers_communication(&timers, 1, 1.5);
	mu_timers_end_step(&timers);
	assert_true(timers.last[MU_PHASE_FORWARD] == 3);
	assert_true(timers.last[MU_PHASE_DATA] == 0);
	assert_true(timers.last[MU_PHASE_EXPOSED] == 3.5);
	assert_true(timers.last[MU_PHASE_HIDDEN] == 3);
	mu_timers_add(&timers, MU_PHASE_FORWARD, 4);
	mu_timers_end_step(&timers);
	assert_true(timers.last[MU_PHASE_FORWARD] == 4 && timers.total[MU_PHASE_FORWARD] == 7);
	assert_true(timers.last[MU_PHASE_HIDDEN] == 0 && timers.step[MU_PHASE_FORWARD] == 0);
	assert_int_equal(timers.steps, 2);
	assert_string_equal(mu_phase_text(MU_PHASE_EXPOSED), "communication_exposed");
	assert_true(mu_timers_lap(&timers, MU_PHASE_OPTIMIZER, -1e6) > -1e6);
	assert_true(timers.step[MU_PHASE_OPTIMIZER] > 1e6);
}

static void test_host_stats(void **state)
{
	(void)state;
	mu_host_stats stats = {0};
	mu_device_sample sample;
	mu_host_stats_init(&stats);
	mu_host_stats_sample(&stats, &sample);
	assert_string_equal(sample.id, "cpu");
	assert_true(strlen(sample.name) > 0);
	assert_true(isnan(sample.load) || (sample.load >= 0 && sample.load <= 100));
	assert_true(sample.total_bytes > 0 && sample.used_bytes <= sample.total_bytes);
	assert_true(isnan(sample.celsius) || (sample.celsius > -50 && sample.celsius < 150));
	size_t now = mu_process_memory(), before = mu_process_peak_memory();
	assert_true(now > 0 && before >= now);
	enum { SIZE = 64 << 20 };
	char *block = malloc(SIZE);
	assert_non_null(block);
	memset(block, 1, SIZE);
	assert_int_equal(block[SIZE - 1], 1);
	assert_true(mu_process_peak_memory() >= before + SIZE / 2);
	free(block);
}

/* A busy counter that ran from 0: everything since boot counts, so the load is that of the whole uptime. */
static void test_load_uses_differences(void **state)
{
	(void)state;
	mu_host_stats stats = {.busy = 0, .all = 0};
	mu_device_sample sample;
	mu_host_stats_sample(&stats, &sample);
	assert_true(stats.all > 0 && stats.busy <= stats.all);
	assert_true(fabs(sample.load - 100.0 * (double)stats.busy / (double)stats.all) < 1e-9);
	stats.all = UINT64_MAX;
	mu_host_stats_sample(&stats, &sample);
	assert_true(isnan(sample.load));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
	        TEST(test_metrics),
	        TEST(test_steps),
	        TEST(test_resume_appends),
	        TEST(test_torn_line_is_cut),
	        TEST(test_rows_behind_a_point_are_cut),
	        TEST(test_other_header_is_refused),
	        TEST(test_disk_that_is_full),
	        TEST(test_rows_must_fit),
	        TEST(test_timers),
	        TEST(test_host_stats),
	        TEST(test_load_uses_differences),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
