/* Bytes as a file of weights. SPDX-License-Identifier: MIT */
#include "support/weight_bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "weights/file.h"

static void read_all(const mu_weights_file *file)
{
	for (size_t i = 0; i < mu_weights_file_count(file); i++) {
		const mu_stored *tensor = mu_weights_file_at(file, i);
		mural_error err = {0};
		if (mu_weights_file_find(file, tensor->name) != tensor)
			abort();
		float *to = malloc((tensor->elements + 1) * sizeof *to);
		if (!to)
			abort(); /* no small file has so many elements */
		mural_status status = mu_weights_file_read(file, tensor, to, &err);
		if (status != MURAL_OK && (status != MURAL_DATA || !err.message[0] || !err.where[0]))
			abort();
		free(to);
	}
}

void test_weight_bytes(const void *bytes, size_t n)
{
	char path[64];
	mu_weights_file *file;
	mural_error err = {0};
	int fd = memfd_create("weights", 0);
	if (fd < 0 || write(fd, bytes, n) != (ssize_t)n)
		abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	mural_status status = mu_weights_file_open(&file, path, &err);
	if (status != MURAL_OK && (status != MURAL_DATA || file || !err.message[0] || !err.where[0]))
		abort();
	if (status == MURAL_OK)
		read_all(file);
	mu_weights_file_free(file);
	close(fd);
}
