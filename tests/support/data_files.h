/* Folders with IDX files, good and broken, for tests. SPDX-License-Identifier: MIT */
#ifndef MU_TESTS_DATA_FILES_H
#define MU_TESTS_DATA_FILES_H

#include <stddef.h>
#include <stdint.h>

#include "mural/data.h"

/* A configuration with the documented defaults and this path. */
mural_data_config test_data_config(const char *path);

/* A new empty folder under TMPDIR; the text is the caller's to free through test_folder_remove, which deletes it all. */
char *test_folder_create(void);
void test_folder_remove(char *folder);

void test_file_write(const char *folder, const char *name, const void *bytes, size_t n);
/* The same content as a gzip member; returns the compressed bytes written. */
size_t test_file_write_gzip(const char *folder, const char *name, const void *bytes, size_t n);
/* Whole file, malloc'ed. */
uint8_t *test_file_read(const char *folder, const char *name, size_t *n);

/* Content of IDX files, malloc'ed. Pixel p of image i is (i * 7 + p * 3) % 256, label i is i % classes. */
uint8_t *test_idx_images(uint32_t images, uint32_t height, uint32_t width, size_t *n);
uint8_t *test_idx_labels(uint32_t images, unsigned classes, size_t *n);

/* train-* and t10k-* of such content, `images` and images / 2 + 1 of them, 10 classes. */
void test_idx_write_set(const char *folder, uint32_t images, uint32_t height, uint32_t width);

#endif
