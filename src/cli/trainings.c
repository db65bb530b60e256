/* What study and tune share. SPDX-License-Identifier: MIT */
#include "trainings.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "usage.h"

static volatile sig_atomic_t interrupted;

static void note_interrupt(int number)
{
	(void)number;
	interrupted = 1;
}

void trainings_watch_stop(void)
{
	struct sigaction action = {.sa_handler = note_interrupt};
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

bool trainings_stop_asked(void)
{
	return interrupted != 0;
}

enum { MOST = 1000000000 }; /* of any list */

bool trainings_list(const char *text, uint32_t *list, size_t room, size_t *n)
{
	char *end = NULL;
	uint64_t value;
	const char *at = text ? text : "";
	for (*n = 0; *n < room; at = end + 1) {
		if (!usage_whole(at, &end, 1, MOST, &value))
			return false;
		list[(*n)++] = (uint32_t)value;
		if (*end != ',')
			return *end == '\0';
	}
	return false;
}

mural_status trainings_refuse(const char *command, const char *const *own, const char *argument, mural_error *err)
{
	for (; *own; own++) {
		size_t length = strlen(*own);
		if (strncmp(argument, *own, length) != 0 || (argument[length] != '\0' && argument[length] != '='))
			continue;
		err->status = MURAL_USAGE;
		snprintf(err->message, sizeof err->message,
		         "argument %s: mural %s sets it for each of its trainings; `mural %s --help` lists what can be "
		         "chosen",
		         *own, command, command);
		return MURAL_USAGE;
	}
	return MURAL_OK;
}

mural_status trainings_program(char path[4096], mural_error *err)
{
	ssize_t n = readlink("/proc/self/exe", path, 4095);
	if (n < 0) {
		err->status = MURAL_FAILED;
		snprintf(err->message, sizeof err->message, "cannot tell where this program lies: %s", strerror(errno));
		return MURAL_FAILED;
	}
	path[n] = '\0';
	return MURAL_OK;
}

mural_status trainings_copy(const char *folder, const char *name, const char *to, mural_error *err)
{
	char from[4096], buffer[65536];
	bool output = strcmp(to, "-") == 0;
	snprintf(from, sizeof from, "%.4000s/%s", folder, name);
	FILE *in = fopen(from, "r"), *out = !in ? NULL : output ? stdout : fopen(to, "w");
	bool good = out != NULL;
	for (size_t n; good && (n = fread(buffer, 1, sizeof buffer, in)) > 0;)
		good = fwrite(buffer, 1, n, out) == n;
	if (in)
		fclose(in);
	if (out && !output && fclose(out) != 0)
		good = false;
	if (good)
		return MURAL_OK;
	err->status = MURAL_FAILED;
	snprintf(err->message, sizeof err->message, "cannot copy %.400s to %.400s: %s", from, to, strerror(errno));
	return MURAL_FAILED;
}
