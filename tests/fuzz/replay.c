/* Runs a fuzz target on files, for builds without libFuzzer: each argument is a file, or a folder whose files are meant.
 * Arguments that begin with - are libFuzzer's options and are passed over. An empty corpus is a failure: a test that has
 * nothing to do would pass for ever. SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t n);

static unsigned long replayed;

static void give_up(const char *path)
{
	perror(path);
	exit(1);
}

static void replay_file(const char *path, size_t bytes)
{
	FILE *file = fopen(path, "rb");
	uint8_t *input = malloc(bytes + !bytes); /* exact, so that a sanitizer sees a byte too far */
	if (!file || !input || fread(input, 1, bytes, file) != bytes)
		give_up(path);
	fclose(file);
	LLVMFuzzerTestOneInput(input, bytes);
	free(input);
	replayed++;
}

static void replay(const char *path)
{
	struct stat facts;
	if (stat(path, &facts) != 0)
		give_up(path);
	if (!S_ISDIR(facts.st_mode)) {
		replay_file(path, (size_t)facts.st_size);
		return;
	}
	DIR *folder = opendir(path);
	if (!folder)
		give_up(path);
	for (struct dirent *entry; (entry = readdir(folder));) {
		char inside[4096];
		if (entry->d_name[0] == '.')
			continue;
		if (snprintf(inside, sizeof inside, "%s/%s", path, entry->d_name) >= (int)sizeof inside)
			give_up(path);
		replay(inside);
	}
	closedir(folder);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (argv[i][0] != '-')
			replay(argv[i]);
	printf("%lu inputs replayed\n", replayed);
	return replayed == 0;
}
