/* safetensors: reading. The header's tree is kept, since names and types point into it.
 * SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/safetensors_header.h"

#define LENGTH_BYTES 8
#define LONGEST_HEADER 100000000u /* the format's own limit */

static mural_status system_failure(const char *path, const char *what, mural_error *err)
{
	int reason = errno;
	mural_status status = reason == ENOENT || reason == ENOTDIR ? MURAL_DATA : MURAL_FAILED;
	return mu_fail(err, status, path, "%s: %s", what, strerror(reason));
}

/* Exactly `bytes` from `offset`. */
static mural_status read_at(const mu_safetensors *file, uint64_t offset, void *to, size_t bytes, mural_error *err)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t got = pread(file->fd, (char *)to + done, bytes - done, (off_t)(offset + done));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return system_failure(file->path, "cannot read the safetensors file", err);
		if (got == 0)
			return mu_fail(err, MURAL_DATA, file->path,
			               "the safetensors file ends at byte %llu, while it is being read",
			               (unsigned long long)(offset + done));
		done += (size_t)got;
	}
	return MURAL_OK;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const mu_safetensor *)a)->name, ((const mu_safetensor *)b)->name);
}

static mural_status parse_header(mu_safetensors *file, size_t bytes, mural_error *err)
{
	char *text = malloc(bytes + 1);
	if (!text)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, file->path, "no memory for a header of %zu bytes", bytes);
	mural_status status = read_at(file, LENGTH_BYTES, text, bytes, err);
	if (status == MURAL_OK && (bytes == 0 || text[0] != '{'))
		status = mu_fail(err, MURAL_DATA, file->path,
		                 "no safetensors file: byte %d should begin the header with '{'", LENGTH_BYTES);
	if (status == MURAL_OK) {
		mu_hjson_source source = {
		        .name = file->path, .text = text, .bytes = bytes, .strict = true, .kind = MURAL_DATA};
		status = mu_hjson_read(&file->header, &source, err);
	}
	free(text);
	return status;
}

/* The header's length, once it fits the file and the format. */
static mural_status header_bytes(const mu_safetensors *file, uint64_t file_bytes, size_t *bytes, mural_error *err)
{
	unsigned char raw[LENGTH_BYTES];
	uint64_t length = 0;
	if (file_bytes < LENGTH_BYTES)
		return mu_fail(err, MURAL_DATA, file->path,
		               "no safetensors file: it has %llu bytes, and the header's length alone takes %d",
		               (unsigned long long)file_bytes, LENGTH_BYTES);
	MU_TRY(read_at(file, 0, raw, sizeof raw, err));
	for (int i = LENGTH_BYTES - 1; i >= 0; i--)
		length = length << 8 | raw[i];
	if (length > LONGEST_HEADER || length > file_bytes - LENGTH_BYTES)
		return mu_fail(err, MURAL_DATA, file->path,
		               "no safetensors file, or cut short: a header of %llu bytes in a file of %llu "
		               "(headers have at most %u)",
		               (unsigned long long)length, (unsigned long long)file_bytes, LONGEST_HEADER);
	*bytes = (size_t)length;
	return MURAL_OK;
}

static mural_status open_and_check(mu_safetensors *file, mural_error *err)
{
	struct stat facts;
	size_t bytes = 0;
	file->fd = mu_open_to_read(file->path);
	if (file->fd < 0 || fstat(file->fd, &facts) != 0)
		return system_failure(file->path, "cannot open the safetensors file", err);
	if (!S_ISREG(facts.st_mode))
		return mu_fail(err, MURAL_DATA, file->path, "no safetensors file: not a regular file");
	MU_TRY(header_bytes(file, (uint64_t)facts.st_size, &bytes, err));
	MU_TRY(parse_header(file, bytes, err));
	file->data = LENGTH_BYTES + (uint64_t)bytes;
	file->data_bytes = (uint64_t)facts.st_size - file->data;
	MU_TRY(mu_safetensors_take_entries(file, err));
	if (file->count)
		qsort(file->tensors, file->count, sizeof *file->tensors, by_name);
	return MURAL_OK;
}

mural_status mu_safetensors_open(mu_safetensors **result, const char *path, mural_error *err)
{
	*result = NULL;
	mu_safetensors *file = calloc(1, sizeof *file);
	if (!file)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, path, "no memory to open a file");
	file->fd = -1;
	file->path = strdup(path);
	mural_status status = file->path ? open_and_check(file, err)
	                                 : mu_fail(err, MURAL_OUT_OF_MEMORY, path, "no memory to open a file");
	if (status != MURAL_OK) {
		mu_safetensors_free(file);
		return status;
	}
	*result = file;
	return MURAL_OK;
}

void mu_safetensors_free(mu_safetensors *file)
{
	if (!file)
		return;
	if (file->fd >= 0)
		close(file->fd);
	mu_hjson_free(file->header);
	free(file->tensors);
	free(file->dims);
	free(file->path);
	free(file);
}

size_t mu_safetensors_count(const mu_safetensors *file)
{
	return file->count;
}

const mu_safetensor *mu_safetensors_at(const mu_safetensors *file, size_t i)
{
	return &file->tensors[i];
}

const mu_safetensor *mu_safetensors_find(const mu_safetensors *file, const char *name)
{
	mu_safetensor key = {.name = name};
	return file->count ? bsearch(&key, file->tensors, file->count, sizeof key, by_name) : NULL;
}

mural_status mu_safetensors_read(const mu_safetensors *file, const mu_safetensor *tensor, void *to, mural_error *err)
{
	return read_at(file, file->data + tensor->begin, to, (size_t)tensor->bytes, err);
}
