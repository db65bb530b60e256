/* Options in words. SPDX-License-Identifier: MIT */
#include "usage.h"

#include <errno.h>
#include <stdlib.h>

mural_status usage_wrong(const char *command, const char *option, const char *expected, const char *found,
                         mural_error *err)
{
	err->status = MURAL_USAGE;
	snprintf(err->message, sizeof err->message, "argument %s: expected %s, got %s; `mural %s --help` explains",
	         option, expected, found && *found ? found : "nothing", command);
	return MURAL_USAGE;
}

void usage_option(FILE *out, const char *name, const char *value, const char *help)
{
	char left[64];
	snprintf(left, sizeof left, "%s%s%s", name, value ? " " : "", value ? value : "");
	fprintf(out, "  %-26s %s\n", left, help);
}

bool usage_whole(const char *text, char **end, uint64_t least, uint64_t most, uint64_t *value)
{
	errno = 0;
	*end = (char *)text;
	unsigned long long number = *text >= '0' && *text <= '9' ? strtoull(text, end, 10) : 0;
	if (*end == text || errno || number < least || number > most)
		return false;
	*value = number;
	return true;
}

mural_status usage_count(const char *command, const char *option, const char *text, uint64_t most, uint64_t *count,
                         mural_error *err)
{
	char *end = NULL, expected[64];
	if (text && usage_whole(text, &end, 1, most, count) && *end == '\0')
		return MURAL_OK;
	snprintf(expected, sizeof expected, "a whole number from 1 to %llu", (unsigned long long)most);
	return usage_wrong(command, option, expected, text, err);
}
