/* Files: whole or not at all, folders on the way, links and devices, limits. SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files.h"
#include "base/safetensors.h"

static char folder[64];
static char path_buffer[256];

/* A name in the test's own folder. */
static const char *in_folder(const char *name)
{
	snprintf(path_buffer, sizeof path_buffer, "%s/%s", folder, name);
	return path_buffer;
}

static int setup(void **state)
{
	(void)state;
	snprintf(folder, sizeof folder, "/tmp/mural-files-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	char command[128];
	snprintf(command, sizeof command, "rm -rf '%s'", folder);
	return system(command);
}

static int entries(const char *path)
{
	int n = 0;
	DIR *opened = opendir(path);
	assert_non_null(opened);
	while (readdir(opened))
		n++;
	closedir(opened);
	return n - 2; /* . and .. */
}

static void write_whole(const char *path, const char *text)
{
	mu_file file = {0};
	mural_error err = {0};
	assert_int_equal(mu_file_begin(&file, path, &err), MURAL_OK);
	fputs(text, file.out);
	assert_int_equal(mu_file_commit(&file, &err), MURAL_OK);
	assert_null(file.out);
}

static void expect_text(const char *path, const char *expected)
{
	mural_error err = {0};
	char *text;
	size_t bytes;
	assert_int_equal(mu_file_read(path, "file", 1 << 20, MURAL_DATA, &text, &bytes, &err), MURAL_OK);
	assert_int_equal(bytes, strlen(expected));
	assert_string_equal(text, expected);
	free(text);
}

static void test_commit_makes_folders_and_replaces(void **state)
{
	(void)state;
	const char *path = in_folder("runs/demo//result.json");
	write_whole(path, "first");
	expect_text(path, "first");
	write_whole(path, "second");
	expect_text(path, "second");
	assert_int_equal(entries(in_folder("runs/demo")), 1);
}

static void test_nothing_appears_before_commit(void **state)
{
	(void)state;
	mu_file file = {0};
	mural_error err = {0};
	const char *path = in_folder("late");
	assert_int_equal(mu_file_begin(&file, path, &err), MURAL_OK);
	fputs("half", file.out);
	fflush(file.out);
	assert_int_not_equal(access(path, F_OK), 0);
	mu_file_abandon(&file);
	mu_file_abandon(&file);
	mu_file_abandon(NULL);
	assert_int_equal(entries(folder), 0);
}

static void test_abandon_keeps_the_old_file(void **state)
{
	(void)state;
	mu_file file = {0};
	mural_error err = {0};
	write_whole(in_folder("kept"), "old");
	assert_int_equal(mu_file_begin(&file, in_folder("kept"), &err), MURAL_OK);
	fputs("new", file.out);
	mu_file_abandon(&file);
	expect_text(in_folder("kept"), "old");
}

static void test_full_disk(void **state)
{
	(void)state;
	mu_file file = {0};
	mural_error err = {0};
	assert_int_equal(mu_file_begin(&file, "/dev/full", &err), MURAL_OK);
	fputs("text", file.out);
	assert_int_equal(mu_file_commit(&file, &err), MURAL_FAILED);
	assert_string_equal(err.message, "cannot write the file: No space left on device");
	assert_string_equal(err.where, "/dev/full");
	assert_null(file.out);
}

static void test_devices_stay(void **state)
{
	(void)state;
	struct stat facts;
	write_whole("/dev/null", "gone");
	assert_int_equal(stat("/dev/null", &facts), 0);
	assert_true(S_ISCHR(facts.st_mode));
}

static void test_link_stays_a_link(void **state)
{
	(void)state;
	struct stat facts;
	char link[256];
	snprintf(link, sizeof link, "%s", in_folder("link"));
	write_whole(in_folder("target"), "old");
	assert_int_equal(symlink("target", link), 0);
	write_whole(link, "new");
	assert_int_equal(lstat(link, &facts), 0);
	assert_true(S_ISLNK(facts.st_mode));
	expect_text(in_folder("target"), "new");
}

static void expect_begin_fails(const char *path, const char *message, const char *where)
{
	mu_file file = {0};
	mural_error err = {0};
	assert_int_equal(mu_file_begin(&file, path, &err), MURAL_FAILED);
	assert_non_null(strstr(err.message, message));
	assert_string_equal(err.where, where);
	assert_null(file.out);
}

static void test_places_that_cannot_be(void **state)
{
	(void)state;
	char long_path[PATH_MAX + 10];
	memset(long_path, 'a', sizeof long_path - 1);
	long_path[sizeof long_path - 1] = '\0';
	write_whole(in_folder("file"), "");
	char blocker[256];
	snprintf(blocker, sizeof blocker, "%s", in_folder("file"));
	expect_begin_fails(in_folder("file/below/name"), "cannot make the folder: Not a directory", blocker);
	expect_begin_fails(folder, "cannot write the file: Is a directory", folder);
	expect_begin_fails("", "empty", "");
	expect_begin_fails(long_path, "longer than", "");
}

static void test_read_limits(void **state)
{
	(void)state;
	mural_error err = {0};
	char *text;
	size_t bytes;
	const char *path = in_folder("ten");
	write_whole(path, "0123456789");
	assert_int_equal(mu_file_read(path, "file", 10, MURAL_DATA, &text, &bytes, &err), MURAL_OK);
	assert_int_equal(bytes, 10);
	free(text);
	assert_int_equal(mu_file_read(path, "hostfile", 9, MURAL_USAGE, &text, &bytes, &err), MURAL_USAGE);
	assert_string_equal(err.message, "the hostfile is larger than 9 bytes");
	assert_string_equal(err.where, path);
	assert_null(text);
}

static void test_read_failures(void **state)
{
	(void)state;
	mural_error missing = {0}, is_folder = {0};
	char *text;
	size_t bytes;
	assert_int_equal(mu_file_read(in_folder("none"), "configuration file", 9, MURAL_USAGE, &text, &bytes, &missing),
	                 MURAL_USAGE);
	assert_string_equal(missing.message, "cannot open the configuration file: No such file or directory");
	assert_int_equal(mu_file_read(folder, "weights", 9, MURAL_DATA, &text, &bytes, &is_folder), MURAL_DATA);
	assert_string_equal(is_folder.message, "cannot read the weights: Is a directory");
}

/* Larger than the first buffer, with zero bytes inside. */
static void test_read_large(void **state)
{
	(void)state;
	enum { SIZE = 300000 };
	mu_file file = {0};
	mural_error err = {0};
	char *text;
	size_t bytes;
	assert_int_equal(mu_file_begin(&file, in_folder("large"), &err), MURAL_OK);
	for (int i = 0; i < SIZE; i++)
		fputc(i % 251, file.out);
	assert_int_equal(mu_file_commit(&file, &err), MURAL_OK);
	assert_int_equal(mu_file_read(in_folder("large"), "file", SIZE, MURAL_DATA, &text, &bytes, &err), MURAL_OK);
	assert_int_equal(bytes, SIZE);
	for (int i = 0; i < SIZE; i++)
		assert_int_equal((unsigned char)text[i], i % 251);
	assert_int_equal(text[SIZE], 0);
	free(text);
}

/* Pages: the file is the memory, whatever the calls, the file system and its wishes. */
enum { LARGE = (20 << 20) + 5 };

static unsigned char *make_pages(void)
{
	unsigned char *pages = aligned_alloc(MU_FILE_PAGE, LARGE + 2 * MU_FILE_PAGE - LARGE % MU_FILE_PAGE);
	assert_non_null(pages);
	for (size_t i = 0; i < LARGE + MU_FILE_PAGE - LARGE % MU_FILE_PAGE; i++)
		pages[i] = (unsigned char)(i * 2654435761u >> 13);
	return pages;
}

static void put_and_compare(const char *path, const unsigned char *pages, size_t n, size_t call)
{
	mu_file file = {0};
	char *text;
	size_t bytes;
	assert_int_equal(mu_file_begin(&file, path, NULL), MURAL_OK);
	for (size_t at = 0; at < n; at += call)
		assert_int_equal(mu_file_put_pages(&file, pages + at, n - at < call ? n - at : call, NULL, NULL),
		                 MURAL_OK);
	assert_int_equal(mu_file_commit(&file, NULL), MURAL_OK);
	assert_int_equal(mu_file_read(path, "file", LARGE, MURAL_DATA, &text, &bytes, NULL), MURAL_OK);
	assert_int_equal(bytes, n);
	assert_memory_equal(text, pages, n);
	free(text);
}

static void test_pages(void **state)
{
	(void)state;
	static const size_t sizes[] = {0, 1, MU_FILE_PAGE - 1, MU_FILE_PAGE, MU_FILE_PAGE + 1, 70000, LARGE};
	unsigned char *pages = make_pages();
	char memory[64];
	snprintf(memory, sizeof memory, "/dev/shm/mural-files-%d", (int)getpid()); /* often without O_DIRECT */
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		put_and_compare(in_folder("pages"), pages, sizes[i], LARGE);
		put_and_compare(memory, pages, sizes[i], 17 * MU_FILE_PAGE);
		put_and_compare(in_folder("pages"), pages, sizes[i], 17 * MU_FILE_PAGE);
	}
	put_and_compare(in_folder("pages"), pages + 3, 70000,
	                70000); /* what the disk does not take goes the plain way */
	unlink(memory);
	free(pages);
}

static void test_pages_that_do_not_fit(void **state)
{
	(void)state;
	mu_file file = {0};
	mural_error err = {0};
	const struct rlimit tight = {.rlim_cur = (rlim_t)5 << 20, .rlim_max = RLIM_INFINITY},
	                    none = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
	unsigned char *pages = make_pages();
	atomic_bool stop = true;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(mu_file_begin(&file, in_folder("pages"), NULL), MURAL_OK);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
	assert_int_equal(mu_file_put_pages(&file, pages, LARGE, NULL, &err), MURAL_FAILED);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	assert_string_equal(err.message, "cannot write the file: File too large");
	mu_file_abandon(&file);
	assert_int_equal(mu_file_begin(&file, in_folder("pages"), NULL), MURAL_OK);
	assert_int_equal(mu_file_put_pages(&file, pages, LARGE, &stop, NULL), MURAL_STOPPED);
	mu_file_abandon(&file);
	assert_int_equal(mu_file_begin(&file, "/dev/full", NULL), MURAL_OK);
	assert_int_equal(mu_file_put_pages(&file, pages, LARGE, NULL, &err), MURAL_FAILED);
	mu_file_abandon(&file);
	assert_int_equal(entries(folder), 0);
	free(pages);
}

/* Nobody writes into this pipe: who waited for that would wait for ever. Somebody does, and is read to the end. */
static void test_pipes(void **state)
{
	(void)state;
	const char *path = in_folder("pipe");
	char *text;
	size_t bytes;
	uint64_t size, value;
	mural_error err = {0};
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(mu_file_read(path, "image", 100, MURAL_DATA, &text, &bytes, &err), MURAL_OK);
	assert_int_equal(bytes, 0);
	free(text);
	assert_int_equal(mu_checksum_file(path, 0, &size, &value, &err), MURAL_OK);
	assert_int_equal(size, 0);
	mu_safetensors *file = NULL;
	assert_int_equal(mu_safetensors_open(&file, path, &err), MURAL_DATA);
	assert_string_equal(err.message, "no safetensors file: not a regular file");

	char command[512];
	snprintf(command, sizeof command, "sh -c 'sleep 0.2; printf words' > '%s' &", path);
	assert_int_equal(system(command), 0);
	assert_int_equal(mu_file_read(path, "host file", 100, MURAL_USAGE, &text, &bytes, &err), MURAL_OK);
	assert_string_equal(text, "words");
	free(text);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
	        TEST(test_commit_makes_folders_and_replaces),
	        TEST(test_nothing_appears_before_commit),
	        TEST(test_abandon_keeps_the_old_file),
	        TEST(test_full_disk),
	        TEST(test_devices_stay),
	        TEST(test_link_stays_a_link),
	        TEST(test_places_that_cannot_be),
	        TEST(test_read_limits),
	        TEST(test_read_failures),
	        TEST(test_read_large),
	        TEST(test_pipes),
	        TEST(test_pages),
	        TEST(test_pages_that_do_not_fit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
