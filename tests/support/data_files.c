/* Folders with IDX files for tests: what cannot be written aborts the suite. SPDX-License-Identifier: MIT */
#include "support/data_files.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static void must(int good, const char *what)
{
	if (good)
		return;
	perror(what);
	abort();
}

static void path_of(char path[1024], const char *folder, const char *name)
{
	must(snprintf(path, 1024, "%s/%s", folder, name) < 1024, "a short enough path");
}

mural_data_config test_data_config(const char *path)
{
	mural_data_config config = {.fraction = 1,
	                            .resize = MURAL_RESIZE_BILINEAR,
	                            .shuffle = true,
	                            .loader_threads = 1,
	                            .prefetch = 4,
	                            .synthetic_images = 100};
	snprintf(config.path, sizeof config.path, "%s", path);
	return config;
}

char *test_folder_create(void)
{
	const char *base = getenv("TMPDIR");
	char *folder = NULL;
	must(asprintf(&folder, "%s/mural-test-XXXXXX", base ? base : "/tmp") > 0, "asprintf");
	must(mkdtemp(folder) != NULL, folder);
	return folder;
}

static int remove_entry(const char *path, const struct stat *facts, int kind, struct FTW *place)
{
	(void)facts;
	(void)kind;
	(void)place;
	return remove(path);
}

void test_folder_remove(char *folder)
{
	must(nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS) == 0, folder);
	free(folder);
}

void test_file_write(const char *folder, const char *name, const void *bytes, size_t n)
{
	char path[1024];
	path_of(path, folder, name);
	FILE *file = fopen(path, "wb");
	must(file != NULL, path);
	must(fwrite(bytes, 1, n, file) == n && fclose(file) == 0, path);
}

size_t test_file_write_gzip(const char *folder, const char *name, const void *bytes, size_t n)
{
	z_stream z = {0};
	must(deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK, "deflateInit2");
	size_t bound = deflateBound(&z, n);
	uint8_t *packed = malloc(bound);
	must(packed != NULL, "malloc");
	z.next_in = (Bytef *)(uintptr_t)bytes;
	z.avail_in = (uInt)n;
	z.next_out = packed;
	z.avail_out = (uInt)bound;
	must(deflate(&z, Z_FINISH) == Z_STREAM_END, "deflate");
	test_file_write(folder, name, packed, z.total_out);
	size_t written = z.total_out;
	deflateEnd(&z);
	free(packed);
	return written;
}

uint8_t *test_file_read(const char *folder, const char *name, size_t *n)
{
	char path[1024];
	path_of(path, folder, name);
	FILE *file = fopen(path, "rb");
	must(file != NULL, path);
	must(fseek(file, 0, SEEK_END) == 0, path);
	*n = (size_t)ftell(file);
	rewind(file);
	uint8_t *bytes = malloc(*n + 1);
	must(bytes != NULL && fread(bytes, 1, *n, file) == *n, path);
	fclose(file);
	return bytes;
}

static uint8_t *header(size_t elements, unsigned rank, const uint32_t *sizes, size_t *n)
{
	size_t bytes = 4 + 4 * rank;
	uint8_t *content = calloc(1, bytes + elements);
	must(content != NULL, "calloc");
	content[2] = 8;
	content[3] = (uint8_t)rank;
	for (unsigned i = 0; i < rank; i++)
		for (unsigned b = 0; b < 4; b++)
			content[4 + 4 * i + b] = (uint8_t)(sizes[i] >> (24 - 8 * b));
	*n = bytes + elements;
	return content;
}

uint8_t *test_idx_images(uint32_t images, uint32_t height, uint32_t width, size_t *n)
{
	size_t pixels = (size_t)height * width;
	uint8_t *content = header(images * pixels, 3, (uint32_t[]){images, height, width}, n);
	for (size_t i = 0; i < images; i++)
		for (size_t p = 0; p < pixels; p++)
			content[16 + i * pixels + p] = (uint8_t)(i * 7 + p * 3);
	return content;
}

uint8_t *test_idx_labels(uint32_t images, unsigned classes, size_t *n)
{
	uint8_t *content = header(images, 1, &images, n);
	for (uint32_t i = 0; i < images; i++)
		content[8 + i] = (uint8_t)(i % classes);
	return content;
}

void test_idx_write_set(const char *folder, uint32_t images, uint32_t height, uint32_t width)
{
	static const char *const names[][2] = {{"train-images-idx3-ubyte", "train-labels-idx1-ubyte"},
	                                       {"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}};
	for (int split = 0; split < 2; split++) {
		uint32_t count = split ? images / 2 + 1 : images;
		size_t n;
		uint8_t *content = test_idx_images(count, height, width, &n);
		test_file_write(folder, names[split][0], content, n);
		free(content);
		content = test_idx_labels(count, 10, &n);
		test_file_write(folder, names[split][1], content, n);
		free(content);
	}
}
