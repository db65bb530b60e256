/* Can a data set hurt us? Opens a folder whose two files are the fuzzer's.
 *
 * Byte 0 of the input chooses the names' split and whether each file is packed by gzip here, so that the fuzzer reaches
 * what is inside without finding checksums by luck; byte 1 and 2 say where the second file begins. What opens must be
 * readable whole. Built with clang -fsanitize=fuzzer,address,undefined.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "data/dataset.h"
#include "support/data_files.h"

enum { TEST_SPLIT = 1, PACK_IMAGES = 2, PACK_LABELS = 4, CHECK_CLASSES = 8, GIVEN_NORMALISATION = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t n);

static char *folder;

static void remove_folder(void)
{
	test_folder_remove(folder);
}

static void write_file(const char *name, const uint8_t *bytes, size_t n, int packed)
{
	if (packed)
		test_file_write_gzip(folder, name, bytes, n);
	else
		test_file_write(folder, name, bytes, n);
}

static void read_all(const mural_data *data)
{
	const mural_data_facts *facts = mural_data_get_facts(data);
	uint8_t *pixels = malloc(facts->channels * facts->height * facts->width);
	if (!pixels)
		abort();
	for (uint64_t i = 0; i < facts->images; i++) {
		int32_t label;
		if (mu_data_read(data, i, pixels, &label, NULL) != MURAL_OK || label < 0 ||
		    (size_t)label >= facts->classes)
			abort();
	}
	free(pixels);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t n)
{
	if (!folder) {
		folder = test_folder_create();
		atexit(remove_folder);
	}
	if (n < 3)
		return 0;
	int flags = input[0];
	size_t second = (size_t)(input[1] | input[2] << 8) % (n - 2);
	input += 3;
	n -= 3;
	/* The test split is normalised by the training images, which are then the fuzzer's as well. */
	write_file("train-images-idx3-ubyte", input, second, flags & PACK_IMAGES);
	write_file("t10k-images-idx3-ubyte", input, second, flags & PACK_IMAGES);
	write_file("train-labels-idx1-ubyte", input + second, n - second, flags & PACK_LABELS);
	write_file("t10k-labels-idx1-ubyte", input + second, n - second, flags & PACK_LABELS);
	mural_data_config config = test_data_config(folder);
	config.normalise_given = flags & GIVEN_NORMALISATION;
	config.std[0] = 1;
	mural_data *data;
	mural_error err = {0};
	mural_status status = mural_data_open(&data, &config, flags & TEST_SPLIT ? MURAL_SPLIT_TEST : MURAL_SPLIT_TRAIN,
	                                      0, 1, 0, 0, flags & CHECK_CLASSES ? 10 : 0, &err);
	if (status != MURAL_OK && (status != MURAL_DATA || data || !err.message[0] || !err.where[0]))
		abort(); /* memory stays small, so there is no other reason to fail */
	if (status == MURAL_OK)
		read_all(data);
	mural_data_free(data);
	return 0;
}
