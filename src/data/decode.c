/* Tells PNG from JPEG, and which of them there is a decoder for. SPDX-License-Identifier: MIT */
#include "data/decode.h"

#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "data/dataset.h"

#define MAX_FILE ((size_t)1 << 30) /* bytes of one image file */

mural_status mu_picture_reserve(mu_picture *picture, const char *path, uint64_t height, uint64_t width,
                                mural_error *err)
{
	if (height == 0 || width == 0 || height > MU_MAX_SIDE || width > MU_MAX_SIDE || height * width > MU_MAX_PIXELS)
		return mu_fail(
		        err, MURAL_DATA, path,
		        "expected sides of 1 to %d pixels and at most %zu pixels in all, found an image of %llu x "
		        "%llu",
		        MU_MAX_SIDE, MU_MAX_PIXELS, (unsigned long long)height, (unsigned long long)width);
	*picture = (mu_picture){height, width, malloc(height * width * 3)};
	if (!picture->rgb)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, path, "no memory for an image of %llu x %llu",
		               (unsigned long long)height, (unsigned long long)width);
	return MURAL_OK;
}

static mural_status decode(mu_picture *picture, const char *path, const uint8_t *bytes, size_t n, mural_error *err)
{
	char where[PATH_MAX + 8];
	snprintf(where, sizeof where, "%s:0", path);
	if (n >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0)
		return mu_decode_png(picture, path, bytes, n, err);
	if (n >= 3 && memcmp(bytes, "\xff\xd8\xff", 3) == 0)
		return mu_decode_jpeg(picture, path, bytes, n, err);
	if (n < 8)
		return mu_fail(err, MURAL_DATA, where, "expected an image, found a file of %zu bytes", n);
	return mu_fail(
	        err, MURAL_DATA, where,
	        "neither PNG nor JPEG: expected it to start with 89 50 4e 47 or ff d8 ff, found %02x %02x %02x %02x",
	        bytes[0], bytes[1], bytes[2], bytes[3]);
}

mural_status mu_decode_file(mu_picture *picture, const char *path, mural_error *err)
{
	char *bytes;
	size_t n;
	*picture = (mu_picture){0};
	MU_TRY(mu_file_read(path, "image", MAX_FILE, MURAL_DATA, &bytes, &n, err));
	mural_status status = decode(picture, path, (const uint8_t *)bytes, n, err);
	free(bytes);
	if (status != MURAL_OK)
		mu_picture_release(picture);
	return status;
}

void mu_picture_release(mu_picture *picture)
{
	free(picture->rgb);
	*picture = (mu_picture){0};
}

const char *mu_decode_text(void)
{
#if defined(MU_WITH_SPNG) && defined(MU_WITH_TURBOJPEG)
	return "PNG (libspng), JPEG (libjpeg-turbo)";
#elif defined(MU_WITH_SPNG)
	return "PNG (libspng); no JPEG";
#elif defined(MU_WITH_TURBOJPEG)
	return "JPEG (libjpeg-turbo); no PNG";
#else
	return "none";
#endif
}
