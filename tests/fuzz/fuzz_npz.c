/* Any bytes as NumPy's npz: refused with words, or every array can be read whole.
 *
 * Byte 0: 0, the rest is an archive; 1, an array in a stored member; 2, in a deflated one; 3, the deflated bytes themselves,
 * of a member whose size is bytes 1 and 2.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "support/archive.h"
#include "support/weight_bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t n);

/* A stored member's headers, turned into those of a deflated one of another size. */
static void claim_deflated(char *archive, size_t bytes, size_t packed, unsigned size)
{
	size_t table = bytes - 22 - 46 - strlen("w.npy");
	char *at[] = {archive + 8, archive + 22, archive + table + 10, archive + table + 24};
	(void)packed;
	test_put(&at[0], 8, 2);
	test_put(&at[1], size, 4);
	test_put(&at[2], 8, 2);
	test_put(&at[3], size, 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t n)
{
	if (n < 3)
		return 0;
	unsigned mode = input[0] % 4, size = input[1] | (unsigned)input[2] << 8;
	size_t skipped = mode == 3 ? 3 : 1, bytes;
	if (mode == 0) {
		test_weight_bytes(input + 1, n - 1);
		return 0;
	}
	const test_member member = {"w.npy", input + skipped, n - skipped, mode == 2, 0};
	char *archive = test_archive(&member, 1, &bytes);
	if (mode == 3)
		claim_deflated(archive, bytes, n - skipped, size);
	test_weight_bytes(archive, bytes);
	free(archive);
	return 0;
}
