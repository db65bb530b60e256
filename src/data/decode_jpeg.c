/* JPEG through libjpeg-turbo's TurboJPEG: accurate DCT and smooth chroma, as Pillow has it. A decoder per image: making
 * one costs little beside an image, and threads share nothing. SPDX-License-Identifier: MIT */
#include "data/decode.h"

#ifdef MU_WITH_TURBOJPEG
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>

static mural_status failed(tjhandle decoder, const char *path, size_t n, mural_error *err)
{
	char where[PATH_MAX + 32];
	const char *words = tjGetErrorStr2(decoder);
	bool cut = strcasestr(words, "premature end") != NULL;
	snprintf(where, sizeof where, "%s:%zu", path, cut ? n : 0);
	if (cut)
		return mu_fail(err, MURAL_DATA, where, "the JPEG image is cut (%s); fetch the file again", words);
	return mu_fail(err, MURAL_DATA, where, "the JPEG image cannot be decoded (%s)", words);
}

/* Bytes too many between two parts of the file harm nothing, and cameras write them; every other warning of the decoder
 * means that pixels were made up. */
static bool is_whole(tjhandle decoder, int result)
{
	return result == 0 ||
	       (tjGetErrorCode(decoder) == TJERR_WARNING && strstr(tjGetErrorStr2(decoder), "extraneous bytes"));
}

/* a * b / 255, rounded. */
static uint8_t scaled(unsigned a, unsigned b)
{
	unsigned product = a * b + 128;
	return (uint8_t)(((product >> 8) + product) >> 8);
}

/* Inks are stored inverted: 255 is no ink. */
static void mix_inks(const uint8_t *cmyk, size_t pixels, uint8_t *rgb)
{
	for (size_t i = 0; i < pixels; i++, cmyk += 4)
		for (size_t c = 0; c < 3; c++)
			*rgb++ = (uint8_t)(cmyk[3] - scaled(255u - cmyk[c], cmyk[3]));
}

static mural_status decode_inks(tjhandle decoder, const uint8_t *bytes, size_t n, mu_picture *picture, const char *path,
                                mural_error *err)
{
	size_t pixels = picture->height * picture->width;
	uint8_t *cmyk = malloc(pixels * 4);
	if (!cmyk)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, path, "no memory to decode the image");
	mural_status status = MURAL_OK;
	if (!is_whole(decoder, tjDecompress2(decoder, bytes, n, cmyk, (int)picture->width, 0, (int)picture->height,
	                                     TJPF_CMYK, TJFLAG_ACCURATEDCT)))
		status = failed(decoder, path, n, err);
	else
		mix_inks(cmyk, pixels, picture->rgb);
	free(cmyk);
	return status;
}

static mural_status decode(tjhandle decoder, const uint8_t *bytes, size_t n, mu_picture *picture, const char *path,
                           mural_error *err)
{
	int width = 0, height = 0, sampling, colours;
	if (!is_whole(decoder, tjDecompressHeader3(decoder, bytes, n, &width, &height, &sampling, &colours)) ||
	    width < 0 || height < 0)
		return failed(decoder, path, n, err);
	MU_TRY(mu_picture_reserve(picture, path, (uint64_t)height, (uint64_t)width, err));
	if (colours == TJCS_CMYK || colours == TJCS_YCCK)
		return decode_inks(decoder, bytes, n, picture, path, err);
	if (!is_whole(decoder,
	              tjDecompress2(decoder, bytes, n, picture->rgb, width, 0, height, TJPF_RGB, TJFLAG_ACCURATEDCT)))
		return failed(decoder, path, n, err);
	return MURAL_OK;
}

mural_status mu_decode_jpeg(mu_picture *picture, const char *path, const uint8_t *bytes, size_t n, mural_error *err)
{
	tjhandle decoder = tjInitDecompress();
	if (!decoder)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, path, "no memory to decode the image");
	mural_status status = decode(decoder, bytes, n, picture, path, err);
	tjDestroy(decoder);
	return status;
}

#else

mural_status mu_decode_jpeg(mu_picture *picture, const char *path, const uint8_t *bytes, size_t n, mural_error *err)
{
	(void)picture, (void)bytes, (void)n;
	return mu_fail(
	        err, MURAL_DATA, path,
	        "this build cannot read JPEG images: install libjpeg-turbo (Debian: libturbojpeg0-dev) and build "
	        "again");
}
#endif
