/* Host files and filters: DeepSpeed's format and rules, and every way to be wrong. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mural/comm.h"
#include "mural/hosts.h"

static char path[64];
static mural_error err;

/* A file in memory. */
static void file(const char *text, size_t bytes)
{
	static int fd = -1;
	if (fd >= 0)
		close(fd);
	fd = memfd_create("hosts", 0);
	assert_true(fd >= 0 && write(fd, text, bytes) == (ssize_t)bytes);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
}

/* "c1:0,1,2@c2:0", or NULL and err. */
static const char *chosen(mural_hosts_choice choice)
{
	static char text[512];
	size_t used = 0;
	mural_hosts *hosts;
	choice.file = path;
	err = (mural_error){0};
	if (mural_hosts_open(&hosts, &choice, &err) != MURAL_OK) {
		assert_null(hosts);
		return NULL;
	}
	int ranks = 0;
	for (size_t i = 0; i < mural_hosts_count(hosts); i++) {
		const mural_host *host = mural_hosts_get(hosts, i);
		used += (size_t)snprintf(text + used, sizeof text - used, "%s%s:", i ? "@" : "", host->name);
		for (int s = 0; s < host->n_slots; s++)
			used += (size_t)snprintf(text + used, sizeof text - used, "%s%d", s ? "," : "", host->slots[s]);
		ranks += host->n_slots;
	}
	assert_int_equal(ranks, mural_hosts_ranks(hosts));
	assert_string_equal(mural_hosts_file(hosts), path);
	mural_hosts_free(hosts);
	return text;
}

static void refused(mural_hosts_choice choice, const char *words, const char *where)
{
	char place[256];
	assert_null(chosen(choice));
	assert_int_equal(err.status, MURAL_USAGE);
	if (!strstr(err.message, words))
		fail_msg("\"%s\" lacks \"%s\"", err.message, words);
	snprintf(place, sizeof place, "%s%s", where[0] == ':' ? path : "", where);
	if (!strstr(err.where, place))
		fail_msg("\"%s\" lacks \"%s\"", err.where, place);
}

static void is_read(const char *text, const char *hosts)
{
	file(text, strlen(text));
	const char *found = chosen((mural_hosts_choice){0});
	if (!found)
		fail_msg("%s: %s", err.where, err.message);
	assert_string_equal(found, hosts);
}

static void is_wrong(const char *text, const char *words, const char *where)
{
	file(text, strlen(text));
	refused((mural_hosts_choice){0}, words, where);
}

static void test_files(void **state)
{
	(void)state;
	is_read("c1 slots=2\n", "c1:0,1");
	is_read("c1 slots=2", "c1:0,1");
	is_read("# all\n\n   \nc1 \t slots=1 # old\r\n\tnode-2.example.org slots=03\n",
	        "c1:0@node-2.example.org:0,1,2");
	is_read("10.0.0.1 slots=1\na_b slots=1", "10.0.0.1:0@a_b:0");
	is_wrong("", "names no host", "");
	is_wrong("# c1 slots=2\n", "names no host", "");
	is_wrong("c1\n", "expected \"c1 slots=COUNT\", found \"c1\"", ":1");
	is_wrong("c1 slots=1\n\nc2 slot=1\n", "expected \"c2 slots=COUNT\", found \"c2 slot=1\"", ":3");
	is_wrong("c1 slots=\n", "whole number from 1 to 1024", ":1");
	is_wrong("c1 slots=0\n", "whole number from 1 to 1024", ":1");
	is_wrong("c1 slots=-1\n", "found \"slots=-1\"", ":1");
	is_wrong("c1 slots=1025\n", "found \"slots=1025\"", ":1");
	is_wrong("c1 slots=99999999999999999999\n", "whole number", ":1");
	is_wrong("c1 slots=2 max_slots=4\n", "nothing behind it", ":1");
	is_wrong("c1 slots=2\nc2 slots=1\nc1 slots=1\n", "host \"c1\" stands twice, first in line 1", ":3");
	is_wrong("-oProxyCommand=x slots=1\n", "expected a host's name", ":1");
	is_wrong("me@c1 slots=1\n", "~/.ssh/config", ":1");
	is_wrong("c1:0 slots=1\n", "expected a host's name", ":1");
	is_wrong("c\x1b[31m slots=1\n", "found \"c?[31m\"", ":1");
	file("c1\0 slots=1\n", 12);
	refused((mural_hosts_choice){0}, "found \"c1?\"", ":1");
	char name[300];
	memset(name, 'x', 260);
	strcpy(name + 260, " slots=1");
	is_wrong(name, "expected a host's name", ":1");
	strcpy(path, "/nonexistent/hosts");
	refused((mural_hosts_choice){0}, "cannot open the host file", "/nonexistent/hosts");
}

static const char three[] = "c1 slots=4\nc2 slots=2\n# spare\nc3 slots=1\n";

static void includes(const char *text, const char *hosts)
{
	const char *found = chosen((mural_hosts_choice){.include = text});
	if (!found)
		fail_msg("%s: %s", text, err.message);
	assert_string_equal(found, hosts);
}

static void excludes(const char *text, const char *hosts)
{
	const char *found = chosen((mural_hosts_choice){.exclude = text});
	if (!found)
		fail_msg("%s: %s", text, err.message);
	assert_string_equal(found, hosts);
}

static void test_filters(void **state)
{
	(void)state;
	file(three, strlen(three));
	includes("c2", "c2:0,1");
	includes("c3@c1:2,0", "c1:0,2@c3:0"); /* the file's order */
	includes("c1:3@c2:1@c3:0", "c1:3@c2:1@c3:0");
	excludes("c2", "c1:0,1,2,3@c3:0");
	excludes("c1:0,3@c3", "c1:1,2@c2:0,1");
	excludes("c2:1,0", "c1:0,1,2,3@c3:0"); /* all of its slots: the host goes */
	static const char *const wrong[][3] = {
	        {"c4", "there is no host \"c4\" in the host file; did you mean \"c1\"?", "argument --include\n"},
	        {"nothing-like-it", "there is no host \"nothing-like-it\" in the host file", "argument --include\n"},
	        {"c1@c1:0", "host \"c1\" stands twice in the filter", ":1"},
	        {"c2:2", "host \"c2\" has no slot 2: its slots are 0 to 1", ":2"},
	        {"c2:0,0", "slot 0 stands twice", ":2"},
	        {"c2:", "expected slots as whole numbers", ":2"},
	        {"c2:0,", "expected slots as whole numbers", ":2"},
	        {"c2:-1", "expected slots as whole numbers", ":2"},
	        {"c2:0:1", "expected slots as whole numbers", ":2"},
	        {"c2:99999999999", "expected slots as whole numbers", ":2"},
	        {"@", "found an empty name", "argument --include"},
	        {"c1@", "found an empty name", "argument --include"},
	        {"", "found an empty name", "argument --include"},
	        {":0", "found an empty name", "argument --include"},
	};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		refused((mural_hosts_choice){.include = wrong[i][0]}, wrong[i][1], "argument --include");
		if (wrong[i][2][0] == ':')
			assert_non_null(strstr(strstr(err.where, path), wrong[i][2]));
		assert_null(chosen((mural_hosts_choice){.exclude = wrong[i][0]}));
	}
	refused((mural_hosts_choice){.exclude = "c1@c2@c3:0"}, "no host is left of those in ", "argument --exclude");
	refused((mural_hosts_choice){.include = "c1", .exclude = "c2"}, "do not go together", "--exclude");
	refused((mural_hosts_choice){.include = "c1", .nodes = 1}, "do not go together", "--num-nodes");
	refused((mural_hosts_choice){.exclude = "c1", .slots_per_node = 1}, "do not go together", "--num-gpus");
}

static void test_limits(void **state)
{
	(void)state;
	file(three, strlen(three));
	assert_string_equal(chosen((mural_hosts_choice){.nodes = 2}), "c1:0,1,2,3@c2:0,1");
	assert_string_equal(chosen((mural_hosts_choice){.nodes = 2, .slots_per_node = 2}), "c1:0,1@c2:0,1");
	assert_string_equal(chosen((mural_hosts_choice){.ranks = 5}), "c1:0,1,2,3@c2:0");
	assert_string_equal(chosen((mural_hosts_choice){.ranks = 4}), "c1:0,1,2,3");
	assert_string_equal(chosen((mural_hosts_choice){.ranks = 1, .include = "c2"}), "c2:0");
	assert_string_equal(chosen((mural_hosts_choice){.ranks = 7}), "c1:0,1,2,3@c2:0,1@c3:0");
	refused((mural_hosts_choice){.nodes = 4}, "expected at most 3, the number of hosts, got 4",
	        "argument --num-nodes\n");
	refused((mural_hosts_choice){.slots_per_node = 2}, "expected at most 1, the slots of host \"c3\", got 2",
	        "argument --num-gpus\n");
	assert_non_null(strstr(err.where, ":4"));
	refused((mural_hosts_choice){.ranks = 8}, "expected at most 7, the slots of 3 hosts, got 8", ":1-4");
}

static void test_this_machine(void **state)
{
	(void)state;
	mural_hosts *hosts;
	mural_hosts_choice choice = {.include = "localhost:0"};
	assert_int_equal(mural_hosts_open(&hosts, &choice, NULL), MURAL_OK);
	assert_int_equal(mural_hosts_ranks(hosts), 1);
	assert_null(mural_hosts_file(hosts));
	mural_hosts_free(hosts);
	choice = (mural_hosts_choice){.slots_per_node = mural_cores() + 1};
	err = (mural_error){0};
	assert_int_equal(mural_hosts_open(&hosts, &choice, &err), MURAL_USAGE);
	assert_string_equal(err.where, "argument --num-gpus\nlocalhost");
	err = (mural_error){0};
	choice = (mural_hosts_choice){.include = "c1"};
	assert_int_equal(mural_hosts_open(&hosts, &choice, &err), MURAL_USAGE);
	assert_string_equal(err.message, "there is no host \"c1\": without a host file, only \"localhost\"");
}

static void test_many(void **state)
{
	(void)state;
	static char text[MURAL_HOSTS_MOST * 16 + 64];
	size_t used = 0;
	for (int i = 0; i < MURAL_HOSTS_MOST; i++)
		used += (size_t)sprintf(text + used, "c%d slots=1\n", i);
	file(text, used);
	mural_hosts *hosts;
	mural_hosts_choice choice = {.file = path};
	assert_int_equal(mural_hosts_open(&hosts, &choice, NULL), MURAL_OK);
	assert_int_equal(mural_hosts_count(hosts), MURAL_HOSTS_MOST);
	assert_string_equal(mural_hosts_get(hosts, 4095)->name, "c4095");
	mural_hosts_free(hosts);
	strcpy(text + used, "one-more slots=1\n");
	is_wrong(text, "more than 4096 hosts", ":4097");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_files),        cmocka_unit_test(test_filters), cmocka_unit_test(test_limits),
	        cmocka_unit_test(test_this_machine), cmocka_unit_test(test_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
