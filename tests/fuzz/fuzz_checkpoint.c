/* A checkpoint's JSON files with any content: byte 0 says which, 0 the manifest, 1 the state, and the rest is its text. A
 * manifest's own checksum is put behind it here, so that the fuzzer reaches what is inside. Refused with words, or what was
 * read stays within its limits. SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "engine/checkpoint.h"
#include "support/data_files.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t n);

static char *folder;

static void remove_folder(void)
{
	test_folder_remove(folder);
}

/* No status but these may come of a small file's content. */
static void check_refused(mural_status status, const mural_error *err)
{
	if ((status != MURAL_DATA && status != MURAL_USAGE) || !err->message[0] || !err->where[0])
		abort();
}

static void manifest(const uint8_t *input, size_t n)
{
	static const char tail[] = ",\n  \"xxh64\": \"%016" PRIx64 "\"\n}\n";
	char *text = malloc(n + sizeof tail + 16);
	if (!text)
		abort();
	memcpy(text, input, n);
	size_t bytes = n + (size_t)sprintf(text + n, tail, mu_checksum_of(input, n));
	test_file_write(folder, MU_CHECKPOINT_MANIFEST, text, bytes);
	free(text);
	mu_manifest read;
	mural_error err = {0};
	mural_status status = mu_manifest_read(&read, folder, &err);
	if (status != MURAL_OK)
		check_refused(status, &err);
	for (size_t i = 0; status == MURAL_OK && i < read.n_files; i++)
		if (!read.files[i].name[0] || strchr(read.files[i].name, '/'))
			abort();
	mu_manifest_release(&read);
}

static void state(const uint8_t *input, size_t n)
{
	char path[1024];
	const mu_match matches[] = {{"model", "vit"}, {"seed", "0"}};
	test_file_write(folder, MU_CHECKPOINT_STATE, input, n);
	snprintf(path, sizeof path, "%s/%s", folder, MU_CHECKPOINT_STATE);
	mu_checkpoint_state read;
	mural_error err = {0};
	mural_status status = mu_checkpoint_state_read(path, &read, matches, 2, &err);
	if (status != MURAL_OK)
		check_refused(status, &err);
	else if (read.ranks < 0)
		abort();
	free(read.totals.epochs);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t n)
{
	if (!folder) {
		folder = test_folder_create();
		atexit(remove_folder);
	}
	if (n < 1)
		return 0;
	if (input[0] % 2)
		state(input + 1, n - 1);
	else
		manifest(input + 1, n - 1);
	return 0;
}
