/* Energy meters on made-up counters: which domains count, wrap-around, counters that cannot be read, a card with and without
 * a counter of its own; and the sums of a run.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/files.h"
#include "engine/run_energy.h"
#include "support/data_files.h"

static char *folder;

/* Writes a leaf of an entry of the tree, in place as the kernel would. */
static void leaf(const char *entry, const char *name, const char *text)
{
	char path[512];
	mural_error err = {0};
	snprintf(path, sizeof path, "%s/%s", folder, entry);
	assert_int_equal(mu_make_folders(path, &err), MURAL_OK);
	snprintf(path, sizeof path, "%s/%s/%s", folder, entry, name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void domain(const char *entry, const char *name, const char *energy, const char *range)
{
	leaf(entry, "name", name);
	leaf(entry, "energy_uj", energy);
	leaf(entry, "max_energy_range_uj", range);
}

static int setup(void **state)
{
	(void)state;
	folder = test_folder_create();
	setenv("MURAL_POWERCAP", folder, 1);
	setenv("MURAL_NVML", MU_TEST_BINARY_DIR "/lib/test/fake_nvml.so", 1);
	unsetenv("FAKE_NVML_ENERGY");
	unsetenv("FAKE_NVML_STEP");
	unsetenv("FAKE_NVML_POWER");
	unsetenv("FAKE_NVML_FAILS");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	test_folder_remove(folder);
	unsetenv("MURAL_POWERCAP");
	unsetenv("MURAL_NVML");
	return 0;
}

static void near(double value, double expected)
{
	assert_true(fabs(value - expected) < 1e-9);
}

/* Two packages and a dram count; parts of a package, what surrounds it and its second face do not. */
static void test_which_domains_count(void **state)
{
	(void)state;
	domain("intel-rapl:0", "package-0\n", "1000000\n", "9000000\n");
	domain("intel-rapl:0:0", "core\n", "5\n", "9000000\n");
	domain("intel-rapl:0:1", "dram\n", "10\n", "9000000\n");
	domain("intel-rapl:1", "package-1\n", "0\n", "9000000\n");
	domain("intel-rapl:2", "psys\n", "7\n", "9000000\n");
	domain("intel-rapl-mmio:0", "package-0\n", "1000000\n", "9000000\n");
	leaf("intel-rapl", "enabled", "1\n");
	mu_rapl rapl;
	mu_rapl_open(&rapl);
	assert_string_equal(rapl.why, "");
	assert_int_equal(rapl.n, 3);
	assert_non_null(strstr(rapl.names, "package-0"));
	assert_non_null(strstr(rapl.names, "package-1"));
	assert_non_null(strstr(rapl.names, "dram"));
	near(mu_rapl_joules(&rapl), 0);
	leaf("intel-rapl:0", "energy_uj", "3500000\n");
	leaf("intel-rapl:0:0", "energy_uj", "2500000\n");
	leaf("intel-rapl:0:1", "energy_uj", "250010\n");
	leaf("intel-rapl:1", "energy_uj", "1000000\n");
	leaf("intel-rapl:2", "energy_uj", "8000000\n");
	leaf("intel-rapl-mmio:0", "energy_uj", "3500000\n");
	near(mu_rapl_joules(&rapl), 2.5 + 0.25 + 1);
	near(mu_rapl_joules(&rapl), 3.75);
	mu_rapl_close(&rapl);
}

static void test_counter_comes_round(void **state)
{
	(void)state;
	domain("intel-rapl:0", "package-0\n", "262143000000\n", "262143328850\n");
	mu_rapl rapl;
	mu_rapl_open(&rapl);
	leaf("intel-rapl:0", "energy_uj", "671150\n");
	near(mu_rapl_joules(&rapl), 1.0);
	leaf("intel-rapl:0", "energy_uj", "1671150\n");
	near(mu_rapl_joules(&rapl), 2.0);
	leaf("intel-rapl:0", "energy_uj", "671150\n"); /* nearly a whole round */
	near(mu_rapl_joules(&rapl), 2.0 + 262142.32885);
	mu_rapl_close(&rapl);
}

/* Not measurable, in words: no tree, nothing in it, a counter that cannot be read, or not as a number. */
static void test_cannot_be_measured(void **state)
{
	(void)state;
	static const char *const broken[] = {"", "no number\n", "-5\n", "123 456\n"};
	char path[512];
	mu_rapl rapl;
	mu_rapl_open(&rapl);
	assert_non_null(strstr(rapl.why, "no counter of a processor"));
	assert_true(isnan(mu_rapl_joules(&rapl)));
	domain("intel-rapl:0", "package-0\n", "1\n", "9000000\n");
	for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
		domain("intel-rapl:1", "package-1\n", broken[i], "9000000\n");
		mu_rapl_open(&rapl);
		assert_int_equal(rapl.n, 0);
		assert_non_null(strstr(rapl.why, "intel-rapl:1/energy_uj cannot be read"));
		assert_true(isnan(mu_rapl_joules(&rapl)));
	}
	domain("intel-rapl:1", "package-1\n", "1\n", "0\n");
	mu_rapl_open(&rapl);
	assert_true(isnan(mu_rapl_joules(&rapl)));
	domain("intel-rapl:1", "package-1\n", "1\n", "100\n");
	snprintf(path, sizeof path, "%s/intel-rapl:1/energy_uj", folder);
	assert_int_equal(remove(path), 0);
	mu_rapl_open(&rapl);
	assert_non_null(strstr(rapl.why, "No such file"));
	setenv("MURAL_POWERCAP", "/nonexistent", 1);
	mu_rapl_open(&rapl);
	assert_non_null(strstr(rapl.why, "shows no energy counters (/nonexistent: No such file"));
	mu_rapl_close(&rapl);
}

static void test_counter_goes_away(void **state)
{
	(void)state;
	domain("intel-rapl:0", "package-0\n", "1\n", "9000000\n");
	mu_rapl rapl;
	mu_rapl_open(&rapl);
	leaf("intel-rapl:0", "energy_uj", "");
	assert_true(isnan(mu_rapl_joules(&rapl)));
	assert_non_null(strstr(rapl.why, "any more"));
	assert_true(isnan(mu_rapl_joules(&rapl)));
	mu_rapl_close(&rapl);
}

static void test_card_that_counts(void **state)
{
	(void)state;
	mu_nvml nvml;
	setenv("FAKE_NVML_ENERGY", "5000", 1);
	setenv("FAKE_NVML_POWER", "75500", 1);
	mu_nvml_open(&nvml, "0000:3B:00.0");
	assert_string_equal(nvml.why, "");
	assert_string_equal(nvml.name, "Card of Paper");
	near(mu_nvml_watts(&nvml), 75.5);
	near(mu_nvml_joules(&nvml), 0);
	setenv("FAKE_NVML_ENERGY", "7250", 1);
	near(mu_nvml_joules(&nvml), 2.25);
	setenv("FAKE_NVML_ENERGY", "10", 1); /* the driver was loaded anew */
	assert_true(isnan(mu_nvml_joules(&nvml)));
	assert_non_null(strstr(nvml.why, "any more"));
}

static void test_card_that_tells_power(void **state)
{
	(void)state;
	mu_nvml nvml;
	setenv("FAKE_NVML_POWER", "1000000", 1);
	mu_nvml_open(&nvml, NULL);
	assert_false(nvml.counts);
	double begun = nvml.last_seconds;
	mu_sleep(0.01);
	double joules = mu_nvml_joules(&nvml);
	assert_true(joules >= 10 && fabs(joules - 1000 * (nvml.last_seconds - begun)) < 1e-6);
}

static void test_no_card(void **state)
{
	(void)state;
	mu_nvml nvml;
	mu_nvml_open(&nvml, "00000000:99:00.0");
	assert_string_equal(nvml.why, "the NVIDIA driver said: Not Found");
	mu_nvml_open(&nvml, NULL); /* neither counter nor power */
	assert_string_equal(nvml.why, "the NVIDIA driver said: Not Supported");
	setenv("FAKE_NVML_FAILS", "1", 1);
	mu_nvml_open(&nvml, NULL);
	assert_string_equal(nvml.why, "the NVIDIA driver said: Unknown Error");
	assert_true(isnan(mu_nvml_joules(&nvml)));
	assert_true(isnan(mu_nvml_watts(&nvml)));
	setenv("MURAL_NVML", "libm.so.6", 1);
	mu_nvml_open(&nvml, NULL);
	assert_non_null(strstr(nvml.why, "libm.so.6 lacks functions"));
	setenv("MURAL_NVML", "libnvidia-of-nobody.so", 1);
	mu_nvml_open(&nvml, NULL);
	assert_non_null(strstr(nvml.why, "there is no NVIDIA driver"));
}

/* What happens between stretches of steps is not counted, and an unknown part makes the whole unknown. */
static void test_sums_of_a_run(void **state)
{
	(void)state;
	mural_error err = {0};
	mural_comm *comm;
	mu_run_energy energy;
	mu_run_totals totals = {0};
	char text[600];
	assert_int_equal(mural_comm_open(&comm, "self", &err), MURAL_OK);
	domain("intel-rapl:0", "package-0\n", "0\n", "900000000\n");
	assert_int_equal(mu_run_energy_begin(&energy, comm, NULL, &err), MURAL_OK);
	assert_true(energy.knows_processors && !energy.uses_gpus);
	leaf("intel-rapl:0", "energy_uj", "1000000\n"); /* getting ready */
	mu_run_energy_go(&energy);
	leaf("intel-rapl:0", "energy_uj", "3000000\n");
	mu_run_energy_note(&energy);
	leaf("intel-rapl:0", "energy_uj", "6000000\n");
	assert_int_equal(mu_run_energy_settle(&energy, comm, &totals, &err), MURAL_OK);
	near(totals.joules.processor, 5);
	leaf("intel-rapl:0", "energy_uj", "106000000\n"); /* an evaluation */
	mu_run_energy_go(&energy);
	leaf("intel-rapl:0", "energy_uj", "107000000\n");
	assert_int_equal(mu_run_energy_settle(&energy, comm, &totals, &err), MURAL_OK);
	near(totals.joules.processor, 6);
	near(totals.epoch.joules.processor, 6);
	near(mu_run_energy_sum(&energy, &totals.joules), 6);
	mu_run_energy_meters(&energy, text, sizeof text);
	assert_string_equal(text, "RAPL (package-0)");
	mu_run_energy_missing(&energy, text, sizeof text);
	assert_string_equal(text, "");
	mu_run_energy_end(&energy);

	setenv("FAKE_NVML_FAILS", "1", 1);
	assert_int_equal(mu_run_energy_begin(&energy, comm, "00000000:3B:00.0", &err), MURAL_OK);
	mu_run_energy_missing(&energy, text, sizeof text);
	assert_string_equal(text, "GPUs: the NVIDIA driver said: Unknown Error");
	assert_int_equal(mu_run_energy_settle(&energy, comm, &totals, &err), MURAL_OK);
	assert_true(isnan(mu_run_energy_sum(&energy, &totals.joules)));
	mu_run_energy_end(&energy);
	mural_comm_close(comm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_which_domains_count, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_counter_comes_round, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_cannot_be_measured, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_counter_goes_away, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_card_that_counts, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_card_that_tells_power, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_no_card, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_sums_of_a_run, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
