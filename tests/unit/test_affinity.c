/* Cores, slices and threads, on an imitation of /sys: two sockets of four cores with two hyperthreads each, numbered as Linux
 * does: cpus 0-7 are the first threads of all cores, 8-15 the second ones; even cores are on socket 0, odd ones on 1.
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/affinity.h"

static char folder[64];
static char cpus[80], cgroup[80];
static mu_cpu_source source;

static void write_file(const char *where, const char *name, const char *text)
{
	char path[256];
	snprintf(path, sizeof path, "%s/%s", where, name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int make_machine(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/mural-test-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(cpus, sizeof cpus, "%s/cpu", folder);
	snprintf(cgroup, sizeof cgroup, "%s/cgroup", folder);
	mkdir(cpus, 0700);
	mkdir(cgroup, 0700);
	for (int i = 0; i < 16; i++) {
		char path[128], text[32];
		snprintf(path, sizeof path, "%s/cpu%d", cpus, i);
		mkdir(path, 0700);
		strcat(path, "/topology");
		mkdir(path, 0700);
		snprintf(text, sizeof text, "%d\n", i % 2);
		write_file(path, "physical_package_id", text);
		snprintf(text, sizeof text, "%d,%d\n", i % 8, i % 8 + 8);
		write_file(path, "thread_siblings_list", text);
	}
	source = (mu_cpu_source){.cpus = cpus, .cgroup = cgroup};
	return 0;
}

static int remove_machine(void **state)
{
	char command[128];
	(void)state;
	snprintf(command, sizeof command, "rm -rf '%s'", folder);
	return system(command);
}

static mu_cpu_mask mask_of(uint64_t low)
{
	return (mu_cpu_mask){.bits = {low}};
}

static void test_cores(void **state)
{
	(void)state;
	mu_cpu_mask all = mask_of(0xffff), one_core = mask_of(0x0101), second_threads = mask_of(0xff00);
	assert_int_equal(mu_cpu_cores(&all, &source), 8);
	assert_int_equal(mu_cpu_cores(&one_core, &source), 1);
	assert_int_equal(mu_cpu_cores(&second_threads, &source), 8);
	mu_cpu_mask unknown = mask_of(0x30000); /* cpus 16 and 17 are not described */
	assert_int_equal(mu_cpu_cores(&unknown, &source), 2);
}

static void test_even_slices(void **state)
{
	/* In order of socket: cores 0 2 4 6 | 1 3 5 7. Whole cores, both threads of each. */
	static const uint64_t two[] = {0x5555, 0xaaaa}, three[] = {0x0505, 0x5050 | 0x0202, 0xa8a8};
	mu_cpu_mask masks[9];
	mu_affinity_plan plan;
	(void)state;
	for (int i = 0; i < 9; i++)
		masks[i] = mask_of(0xffff);
	for (int r = 0; r < 2; r++) {
		mu_affinity_make_plan(masks, 2, r, &source, &plan);
		assert_true(plan.bind && !plan.oversubscribed);
		assert_int_equal(plan.threads, 4);
		assert_int_equal(plan.mask.bits[0], two[r]);
	}
	for (int r = 0; r < 3; r++) {
		mu_affinity_make_plan(masks, 3, r, &source, &plan);
		assert_int_equal(plan.threads, 2); /* the same for all, though slices have 2, 3 and 3 cores */
		assert_int_equal(plan.mask.bits[0], three[r]);
	}
	mu_affinity_make_plan(masks, 1, 0, &source, &plan);
	assert_false(plan.bind); /* alone: nothing to share */
	assert_int_equal(plan.threads, 8);
	mu_affinity_make_plan(masks, 9, 4, &source, &plan);
	assert_true(plan.oversubscribed && !plan.bind);
	assert_int_equal(plan.threads, 1);
	assert_int_equal(plan.mask.bits[0], 0xffff);
}

static void test_launcher_bound_them(void **state)
{
	mu_cpu_mask masks[] = {mask_of(0x0f0f), mask_of(0xf0f0), mask_of(0xf0f0)};
	mu_affinity_plan plan;
	(void)state;
	mu_affinity_make_plan(masks, 2, 0, &source, &plan);
	assert_false(plan.bind);
	assert_int_equal(plan.threads, 4);
	assert_int_equal(plan.mask.bits[0], 0x0f0f);
	mu_affinity_make_plan(masks, 3, 2, &source, &plan); /* shares its four cores with rank 1 */
	assert_false(plan.bind || plan.oversubscribed);
	assert_int_equal(plan.threads, 2);
}

static void test_quota(void **state)
{
	mu_cpu_mask masks[] = {mask_of(0xffff), mask_of(0xffff)};
	mu_affinity_plan plan;
	(void)state;
	assert_int_equal(mu_cpu_quota(&source), 0); /* no file */
	write_file(cgroup, "cpu.max", "max 100000\n");
	assert_int_equal(mu_cpu_quota(&source), 0);
	write_file(cgroup, "cpu.max", "550000 100000\n");
	assert_int_equal(mu_cpu_quota(&source), 6);
	mu_affinity_make_plan(masks, 2, 0, &source, &plan);
	assert_int_equal(plan.threads, 3);
	write_file(cgroup, "cpu.max", "50000 100000\n");
	assert_int_equal(mu_cpu_quota(&source), 1);
	mu_affinity_make_plan(masks, 2, 0, &source, &plan);
	assert_int_equal(plan.threads, 1);
	write_file(cgroup, "cpu.max", "nonsense\n");
	assert_int_equal(mu_cpu_quota(&source), 0);
}

/* In a thread of its own, so that the test's own affinity stays. */
static void *bind_to_one(void *unused)
{
	mu_cpu_mask before, after;
	mu_affinity_plan plan = {.threads = 3, .bind = true};
	(void)unused;
	mu_cpu_mask_read(&before);
	int first = 0;
	while (!mu_cpu_mask_has(&before, first))
		first++;
	mu_cpu_mask_add(&plan.mask, first);
	assert_true(mu_affinity_apply(&plan));
	mu_cpu_mask_read(&after);
	assert_memory_equal(&after, &plan.mask, sizeof after);
	assert_int_equal(mu_affinity_cores(), 1);
	return NULL;
}

static void test_this_machine(void **state)
{
	pthread_t thread;
	(void)state;
	int cores = mu_affinity_cores();
	assert_true(cores >= 1);
	assert_int_equal(mu_affinity_threads(1), cores);
	assert_int_equal(mu_affinity_threads(1000000), 1);
	assert_int_equal(pthread_create(&thread, NULL, bind_to_one, NULL), 0);
	pthread_join(thread, NULL);
	assert_int_equal(mu_affinity_threads(1), 3); /* what the plan said */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_cores),
	        cmocka_unit_test(test_even_slices),
	        cmocka_unit_test(test_launcher_bound_them),
	        cmocka_unit_test(test_quota),
	        cmocka_unit_test(test_this_machine),
	};
	return cmocka_run_group_tests(tests, make_machine, remove_machine);
}
