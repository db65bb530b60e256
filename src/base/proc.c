/* /proc as text: one key, one value, per line. SPDX-License-Identifier: MIT */
#include "base/proc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool mu_proc_text(const char *path, const char *key, char *value, size_t size)
{
	FILE *file = fopen(path, "r");
	if (!file)
		return false;
	char line[4096]; /* the flags of /proc/cpuinfo are about 2000 characters */
	size_t key_length = strlen(key);
	bool found = false;
	while (!found && fgets(line, sizeof line, file)) {
		if (strncmp(line, key, key_length) != 0)
			continue;
		char *text = line + key_length + strspn(line + key_length, " \t");
		if (*text != ':')
			continue;
		text += 1 + strspn(text + 1, " \t");
		text[strcspn(text, "\n")] = '\0';
		snprintf(value, size, "%s", text);
		found = true;
	}
	fclose(file);
	return found;
}

size_t mu_proc_bytes(const char *path, const char *key)
{
	char text[64] = "0";
	mu_proc_text(path, key, text, sizeof text);
	return (size_t)strtoull(text, NULL, 10) * 1024;
}

void mu_proc_processor(char *name, size_t size)
{
	snprintf(name, size, "unknown processor");
	if (!mu_proc_text("/proc/cpuinfo", "model name", name, size))
		mu_proc_text("/proc/cpuinfo", "Processor", name, size); /* ARM */
}
