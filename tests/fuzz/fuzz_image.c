/* Can an image file hurt us? Decodes the fuzzer's bytes as a PNG or JPEG file. What decodes has the promised size and is
 * readable whole. Built with clang -fsanitize=fuzzer,address,undefined and both image libraries; tests/golden/pictures is
 * a seed corpus.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "data/dataset.h"
#include "data/decode.h"

#define MAX_PIXELS 1000000 /* larger ones only cost time: decoding is the libraries' */

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t n);

/* Sides as the headers of both formats store them, most significant byte first; 0 when it is neither. */
static uint64_t promised_pixels(const uint8_t *input, size_t n)
{
	if (n > 24 && input[0] == 0x89)
		return ((uint64_t)input[16] << 24 | input[17] << 16 | input[18] << 8 | input[19]) *
		       ((uint64_t)input[20] << 24 | input[21] << 16 | input[22] << 8 | input[23]);
	for (size_t i = 2; n > 9 && input[0] == 0xff && i < n - 9; i++)
		if (input[i] == 0xff && input[i + 1] >= 0xc0 && input[i + 1] <= 0xc2)
			return (uint64_t)(input[i + 5] << 8 | input[i + 6]) *
			       (uint64_t)(input[i + 7] << 8 | input[i + 8]);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t n)
{
	mu_picture picture = {0};
	mural_error err = {0};
	if (n < 8 || promised_pixels(input, n) > MAX_PIXELS)
		return 0;
	mural_status status = input[0] == 0x89 ? mu_decode_png(&picture, "fuzz", input, n, &err)
	                                       : mu_decode_jpeg(&picture, "fuzz", input, n, &err);
	if (status != MURAL_OK && (status != MURAL_DATA || !err.message[0] || !err.where[0]))
		abort();
	unsigned sum = 0;
	for (size_t i = 0; status == MURAL_OK && i < picture.height * picture.width * 3; i++)
		sum += picture.rgb[i];
	if (status == MURAL_OK && (picture.height > MU_MAX_SIDE || picture.width > MU_MAX_SIDE || sum > 1u << 31))
		abort();
	mu_picture_release(&picture);
	return 0;
}
