/* A table that an earlier run left, with any content: cut for a resumed run, then opened to append. Byte 0 is the column
 * that counts, byte 1 the last number to keep. The cut keeps a beginning of the file and never makes it longer; cutting
 * twice is cutting once. SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/csv.h"
#include "support/data_files.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t n);

static char *folder;

static void remove_folder(void)
{
	test_folder_remove(folder);
}

/* Bytes of the table after a cut; it must begin as `whole` does. */
static size_t cut(const char *path, int column, uint64_t last, const uint8_t *whole, size_t n)
{
	mural_error err = {0};
	size_t left;
	if (mu_csv_cut(path, column, last, &err) != MURAL_OK)
		abort();
	uint8_t *bytes = test_file_read(folder, "table.csv", &left);
	if (left > n || memcmp(bytes, whole, left) != 0)
		abort();
	free(bytes);
	return left;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t n)
{
	char path[1024];
	if (!folder) {
		folder = test_folder_create();
		atexit(remove_folder);
	}
	if (n < 2)
		return 0;
	const int column = input[0];
	const uint64_t last = input[1];
	input += 2;
	n -= 2;
	snprintf(path, sizeof path, "%s/table.csv", folder);
	test_file_write(folder, "table.csv", input, n);
	size_t left = cut(path, column, last, input, n);
	if (cut(path, column, last, input, n) != left)
		abort();
	mu_csv csv = {0};
	mural_error err = {0};
	mural_status status = mu_csv_open(&csv, path, "step,loss", &err);
	if (status != MURAL_OK && (status != MURAL_FAILED || !err.message[0]))
		abort();
	mu_csv_close(&csv);
	return 0;
}
