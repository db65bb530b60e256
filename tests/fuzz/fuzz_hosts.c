/* Any bytes as a host file, with any bytes before the first NUL as a filter: refused with words, or a list that holds together.
 * SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mural/hosts.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check(mural_hosts_choice choice)
{
	mural_hosts *hosts;
	mural_error err = {0};
	if (mural_hosts_open(&hosts, &choice, &err) != MURAL_OK) {
		if (hosts || !err.message[0] || (err.status != MURAL_USAGE && err.status != MURAL_OUT_OF_MEMORY))
			abort();
		return;
	}
	int ranks = 0;
	for (size_t i = 0; i < mural_hosts_count(hosts); i++) {
		const mural_host *host = mural_hosts_get(hosts, i);
		if (!host->name[0] || host->n_slots < 1 || host->n_slots > MURAL_HOST_SLOTS)
			abort();
		for (int s = 1; s < host->n_slots; s++)
			if (host->slots[s] <= host->slots[s - 1])
				abort();
		ranks += host->n_slots;
	}
	if (ranks < 1 || ranks != mural_hosts_ranks(hosts))
		abort();
	mural_hosts_free(hosts);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	char path[64], filter[256] = "";
	const uint8_t *nul = memchr(bytes, 0, size);
	size_t length = nul ? (size_t)(nul - bytes) : 0;
	snprintf(filter, sizeof filter, "%.*s", (int)length, (const char *)bytes);
	const uint8_t *text = nul ? nul + 1 : bytes;
	size_t n = size - (size_t)(text - bytes);
	int fd = memfd_create("hosts", 0);
	if (fd < 0 || write(fd, text, n) != (ssize_t)n)
		abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	check((mural_hosts_choice){.file = path});
	check((mural_hosts_choice){.file = path, .include = filter});
	check((mural_hosts_choice){.file = path, .exclude = filter, .ranks = 2});
	check((mural_hosts_choice){.file = path, .nodes = 1, .slots_per_node = 1});
	close(fd);
	return 0;
}
