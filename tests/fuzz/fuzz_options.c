/* Any command line: arguments with a NUL between them. Refused with words, or resolved; what is shown then is a
 * configuration that resolves again. --config and its other name are left out: fuzz_config reads files.
 * SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mural/config.h"

#define MOST 32

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t n);

static void resolve_again(const mural_config *config, const mural_config_report *report)
{
	char path[64];
	int fd = memfd_create("shown", 0);
	FILE *out = fd >= 0 ? fdopen(dup(fd), "w") : NULL;
	if (!out)
		abort();
	mural_config_print(config, report, out);
	fclose(out);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	mural_config again;
	mural_config_report *more;
	mural_error err = {0};
	const mural_config_sources sources = {.file = path, .ranks = config->ranks};
	if (mural_config_resolve(&again, &more, &sources, &err) != MURAL_OK ||
	    memcmp(&config->batch, &again.batch, sizeof again.batch) != 0)
		abort();
	mural_config_report_free(more);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t n)
{
	const char *argv[MOST];
	int argc = 0;
	char *text = malloc(n + 1);
	if (!text)
		abort();
	memcpy(text, input, n);
	text[n] = '\0';
	for (size_t at = 0; at < n && argc < MOST; at += strlen(text + at) + 1)
		if (!strstr(text + at, "config"))
			argv[argc++] = text + at;
	mural_config config;
	mural_config_report *report;
	mural_error err = {0};
	const mural_config_sources sources = {.argc = argc, .argv = argv, .ranks = 3};
	mural_status status = mural_config_resolve(&config, &report, &sources, &err);
	if (status != MURAL_OK && (status != MURAL_USAGE || report || !err.message[0]))
		abort();
	if (status == MURAL_OK && !config.run.strict)
		resolve_again(&config, report);
	mural_config_report_free(report);
	free(text);
	return 0;
}
