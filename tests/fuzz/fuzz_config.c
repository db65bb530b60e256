/* Any bytes as a configuration file: refused with words, or resolved; what is shown then resolves to the same batch.
 *
 * SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mural/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Resolves bytes through a file in memory. */
static mural_status resolve(const void *bytes, size_t size, mural_config *config, char **shown)
{
	char path[64];
	int fd = memfd_create("config", 0);
	if (fd < 0 || write(fd, bytes, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	mural_config_report *report;
	mural_error err = {0}, unsupported = {0};
	mural_config_sources sources = {.file = path, .ranks = 2};
	mural_status status = mural_config_resolve(config, &report, &sources, &err);
	if (status != MURAL_OK && (!err.message[0] || status != MURAL_USAGE))
		abort();
	if (status == MURAL_OK) {
		size_t n;
		FILE *out = open_memstream(shown, &n);
		mural_config_print(config, report, out);
		fclose(out);
		mural_config_check_supported(config, report, &unsupported);
		for (size_t i = 0; i < mural_config_warnings(report); i++)
			if (strncmp(mural_config_warning(report, i), "W-", 2))
				abort();
	}
	mural_config_report_free(report);
	close(fd);
	return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	mural_config first, again;
	char *shown = NULL, *shown_again = NULL;
	if (resolve(bytes, size, &first, &shown) == MURAL_OK && !first.run.strict) {
		if (resolve(shown, strlen(shown), &again, &shown_again) != MURAL_OK)
			abort();
		if (memcmp(&first.batch, &again.batch, sizeof first.batch) ||
		    memcmp(&first.optimizer.lr, &again.optimizer.lr, sizeof first.optimizer.lr))
			abort();
	}
	free(shown);
	free(shown_again);
	return 0;
}
