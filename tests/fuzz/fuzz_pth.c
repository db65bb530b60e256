/* Any bytes as a PyTorch file: refused with words, or every tensor can be read whole.
 *
 * Byte 0: 0, the rest is an archive; 1, a pickle, in an archive with one storage of 64 bytes, so that the fuzzer need not
 * keep checksums right.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "support/archive.h"
#include "support/weight_bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t n)
{
	static const char storage[64] = "some numbers";
	if (n == 0)
		return 0;
	if (input[0] % 2 == 0) {
		test_weight_bytes(input + 1, n - 1);
		return 0;
	}
	const test_member members[] = {{"a/data.pkl", input + 1, n - 1, false, 0},
	                               {"a/data/0", storage, sizeof storage, false, 0}};
	size_t bytes;
	char *archive = test_archive(members, 2, &bytes);
	test_weight_bytes(archive, bytes);
	free(archive);
	return 0;
}
