/* Can a CIFAR file hurt us? Opens a folder whose files are the fuzzer's: pickles and binary records.
 *
 * Byte 0 of the input chooses the set, the version, the split and whether there is a file with names, bytes 1 and 2 say
 * where that file begins. What opens must be readable whole. Built with clang
 * -fsanitize=fuzzer,address,undefined; tests/golden/cifar is a seed corpus once a byte is put in front of its files.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <unistd.h>

#include "data/dataset.h"
#include "support/data_files.h"

enum { HUNDRED = 1, PYTHON = 2, TEST_SPLIT = 4, NAMES = 8, GIVEN_NORMALISATION = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t n);

static char *folder;

static void remove_folder(void)
{
	test_folder_remove(folder);
}

static void remove_file(const char *name)
{
	char path[1024];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	remove(path);
}

/* Files of one set and version: training, test, names. */
static const char *const files[4][3][5] = {
        {{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"},
         {"test_batch.bin"},
         {"batches.meta.txt"}},
        {{"train.bin"}, {"test.bin"}, {"fine_label_names.txt"}},
        {{"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5"},
         {"test_batch"},
         {"batches.meta"}},
        {{"train"}, {"test"}, {"meta"}},
};

static void read_all(const mural_data *data)
{
	const mural_data_facts *facts = mural_data_get_facts(data);
	uint8_t pixels[3072];
	if (facts->channels * facts->height * facts->width != sizeof pixels)
		abort();
	for (uint64_t i = 0; i < facts->images; i++) {
		int32_t label;
		if (mu_data_read(data, i, pixels, &label, NULL) != MURAL_OK || label < 0 ||
		    (size_t)label >= facts->classes)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t n)
{
	if (!folder) {
		folder = test_folder_create();
		atexit(remove_folder);
	}
	if (n < 3)
		return 0;
	unsigned flags = input[0], set = flags & (HUNDRED | PYTHON);
	size_t names = flags & NAMES ? (size_t)(input[1] | input[2] << 8) % (n - 2) : n - 3;
	input += 3;
	n -= 3;
	for (size_t kind = 0; kind < 2; kind++)
		for (size_t i = 0; i < 5 && files[set][kind][i]; i++)
			test_file_write(folder, files[set][kind][i], input, names);
	if (flags & NAMES)
		test_file_write(folder, files[set][2][0], input + names, n - names);
	mural_data_config config = test_data_config(folder);
	config.normalise_given = flags & GIVEN_NORMALISATION;
	config.std[0] = 1;
	mural_data *data;
	mural_error err = {0};
	mural_status status = mural_data_open(&data, &config, flags & TEST_SPLIT ? MURAL_SPLIT_TEST : MURAL_SPLIT_TRAIN,
	                                      0, 1, 0, 0, 0, &err);
	if (status != MURAL_OK && (status != MURAL_DATA || data || !err.message[0]))
		abort(); /* memory stays small, so there is no other reason to fail */
	if (status == MURAL_OK)
		read_all(data);
	mural_data_free(data);
	for (size_t kind = 0; kind < 3; kind++)
		for (size_t i = 0; i < 5 && files[set][kind][i]; i++)
			remove_file(files[set][kind][i]);
	return 0;
}
