/* Fetching from file:// URLs: whole, interrupted, damaged, already there. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/md5.h"
#include "data/fetch.h"
#include "support/data_files.h"

static const char *const names[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
                                    "t10k-labels-idx1-ubyte"};

static char *server, *target, source[1100], sums[4][33];
static mu_fetch_set set;

static void path_of(char path[1200], const char *folder, const char *name)
{
	snprintf(path, 1200, "%s/%s", folder, name);
}

static int fill(void **state)
{
	(void)state;
	char path[1200];
	server = test_folder_create();
	target = test_folder_create();
	test_idx_write_set(server, 12, 5, 4);
	snprintf(source, sizeof source, "file://%s", server);
	set = (mu_fetch_set){.name = "small", .format = MURAL_DATA_IDX, .source = source, .folder = "."};
	for (size_t i = 0; i < 4; i++) {
		path_of(path, server, names[i]);
		assert_int_equal(mu_md5_file(path, sums[i], NULL), MURAL_OK);
		set.files[i].name = names[i];
		set.files[i].md5 = sums[i];
	}
	return system("curl --version >/dev/null 2>&1") == 0 ? 0 : 1;
}

static int empty(void **state)
{
	(void)state;
	test_folder_remove(server);
	test_folder_remove(target);
	return 0;
}

static mural_status fetch(mural_error *err)
{
	char folder[1200];
	mural_status status = mu_fetch_run(&set, target, false, folder, sizeof folder, err);
	if (status == MURAL_OK) {
		char expected[1200];
		path_of(expected, target, ".");
		assert_string_equal(folder, expected);
	}
	return status;
}

static void fetches_once(void **state)
{
	(void)state;
	mural_error err = {0};
	assert_int_equal(fetch(&err), MURAL_OK);
	assert_string_equal(err.message, "");
	size_t n, m;
	uint8_t *got = test_file_read(target, names[0], &n), *sent = test_file_read(server, names[0], &m);
	assert_int_equal(n, m);
	assert_memory_equal(got, sent, n);
	free(got);
	free(sent);
	/* What is there is not asked for again. */
	set.source = "file:///nonexistent";
	assert_int_equal(fetch(NULL), MURAL_OK);
}

static void goes_on_where_it_stopped(void **state)
{
	(void)state;
	size_t n;
	uint8_t *sent = test_file_read(server, names[0], &n);
	test_file_write(target, "train-images-idx3-ubyte.part", sent, 100);
	/* The server's first bytes are now others: only what comes behind the 100 may be loaded. */
	uint8_t *changed = malloc(n);
	memcpy(changed, sent, n);
	memset(changed, 0, 100);
	test_file_write(server, names[0], changed, n);
	mural_error err = {0};
	assert_int_equal(fetch(&err), MURAL_OK);
	free(sent);
	free(changed);
}

static void refuses_damage(void **state)
{
	(void)state;
	char path[1200];
	size_t n;
	uint8_t *sent = test_file_read(server, names[1], &n);
	sent[n - 1] ^= 1;
	test_file_write(server, names[1], sent, n);
	free(sent);
	mural_error err = {0};
	assert_int_equal(fetch(&err), MURAL_DATA);
	assert_non_null(strstr(err.where, names[1]));
	assert_non_null(strstr(err.message, "what was loaded is not the file: its MD5 is not"));
	path_of(path, target, names[1]);
	assert_int_not_equal(access(path, F_OK), 0);
	strcat(path, ".part");
	assert_int_not_equal(access(path, F_OK), 0);
}

static void says_that_it_is_offline(void **state)
{
	(void)state;
	mural_error err = {0};
	set.source = "http://127.0.0.1:1";
	assert_int_equal(fetch(&err), MURAL_FAILED);
	assert_string_equal(err.where, "http://127.0.0.1:1/train-images-idx3-ubyte");
	assert_non_null(strstr(err.message, "is this machine offline?"));
	char folder[64];
	err = (mural_error){0};
	assert_int_equal(mural_data_fetch("imagenet", target, false, folder, sizeof folder, &err), MURAL_USAGE);
	assert_non_null(strstr(err.message, "there are cifar10, cifar100 and fashion-mnist"));
}

/* An archive is unpacked and goes away. */
static void unpacks(void **state)
{
	(void)state;
	char command[4000], path[1200], sum[33];
	snprintf(command, sizeof command, "tar -C %s -czf %s/set.tar.gz %s %s %s %s", server, server, names[0],
	         names[1], names[2], names[3]);
	assert_int_equal(system(command), 0);
	path_of(path, server, "set.tar.gz");
	assert_int_equal(mu_md5_file(path, sum, NULL), MURAL_OK);
	set = (mu_fetch_set){.name = "small",
	                     .format = MURAL_DATA_IDX,
	                     .source = source,
	                     .files = {{"set.tar.gz", sum}},
	                     .archive = true,
	                     .folder = "."};
	mural_error err = {0};
	assert_int_equal(fetch(&err), MURAL_OK);
	assert_string_equal(err.message, "");
	path_of(path, target, "set.tar.gz");
	assert_int_not_equal(access(path, F_OK), 0);
}

#define WITH_FOLDERS(test) cmocka_unit_test_setup_teardown(test, fill, empty)

int main(void)
{
	setenv("no_proxy", "127.0.0.1", 1);
	const struct CMUnitTest tests[] = {
	        WITH_FOLDERS(fetches_once),   WITH_FOLDERS(goes_on_where_it_stopped),
	        WITH_FOLDERS(refuses_damage), WITH_FOLDERS(says_that_it_is_offline),
	        WITH_FOLDERS(unpacks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
