/* Any bytes as a safetensors file: refused with words, or every tensor lies inside the file, none over another, and can be
 * read. SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t n);

#define COMPARED 64 /* tensors that are held against each other; more only cost time */

static bool overlap(const mu_safetensor *a, const mu_safetensor *b)
{
	return a->bytes > 0 && b->bytes > 0 && a->begin < b->begin + b->bytes && b->begin < a->begin + a->bytes;
}

static void read_all(const mu_safetensors *file, size_t n)
{
	for (size_t i = 0; i < mu_safetensors_count(file); i++) {
		const mu_safetensor *tensor = mu_safetensors_at(file, i);
		mural_error err = {0};
		if (tensor->begin > n || tensor->bytes > n - tensor->begin)
			abort();
		if (mu_safetensors_find(file, tensor->name) != tensor)
			abort();
		for (size_t k = 0; k < i && k < COMPARED; k++)
			if (overlap(tensor, mu_safetensors_at(file, k)))
				abort();
		char *to = malloc(tensor->bytes + !tensor->bytes);
		if (!to || mu_safetensors_read(file, tensor, to, &err) != MURAL_OK)
			abort();
		free(to);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t n)
{
	char path[64];
	int fd = memfd_create("tensors", 0);
	if (fd < 0 || write(fd, input, n) != (ssize_t)n)
		abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	mu_safetensors *file;
	mural_error err = {0};
	mural_status status = mu_safetensors_open(&file, path, &err);
	if (status != MURAL_OK && (status != MURAL_DATA || file || !err.message[0] || !err.where[0]))
		abort();
	if (status == MURAL_OK)
		read_all(file, n);
	mu_safetensors_free(file);
	close(fd);
	return 0;
}
