/* PNG through libspng. The file goes through a stream of ours, so that a fault has a place. SPDX-License-Identifier: MIT */
#include "data/decode.h"

#ifdef MU_WITH_SPNG
#include <limits.h>
#include <spng.h>
#include <string.h>

typedef struct stream {
	const uint8_t *bytes;
	size_t n, next;
} stream;

static int read_stream(spng_ctx *context, void *user, void *into, size_t bytes)
{
	stream *s = user;
	(void)context;
	if (bytes > s->n - s->next)
		return SPNG_IO_EOF;
	memcpy(into, s->bytes + s->next, bytes);
	s->next += bytes;
	return 0;
}

static mural_status failed(int result, const stream *s, const char *path, mural_error *err)
{
	char where[PATH_MAX + 32];
	snprintf(where, sizeof where, "%s:%zu", path, s->next);
	if (result == SPNG_EMEM)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, path, "no memory to decode the image");
	if (result == SPNG_IO_EOF)
		return mu_fail(err, MURAL_DATA, where, "the PNG image is cut; fetch the file again");
	return mu_fail(err, MURAL_DATA, where, "the PNG image is damaged at or before this byte (%s)",
	               spng_strerror(result));
}

static mural_status decode(spng_ctx *context, stream *s, mu_picture *picture, const char *path, mural_error *err)
{
	struct spng_ihdr header;
	size_t bytes;
	int result = spng_set_png_stream(context, read_stream, s);
	if (result == 0)
		result = spng_get_ihdr(context, &header);
	if (result != 0)
		return failed(result, s, path, err);
	MU_TRY(mu_picture_reserve(picture, path, header.height, header.width, err));
	result = spng_decoded_image_size(context, SPNG_FMT_RGB8, &bytes);
	if (result == 0 && bytes != picture->height * picture->width * 3)
		return mu_bug(err, "libspng sizes an image otherwise");
	if (result == 0)
		result = spng_decode_image(context, picture->rgb, bytes, SPNG_FMT_RGB8, 0);
	if (result == 0)
		result = spng_decode_chunks(context); /* to the end: is the file whole? */
	return result == 0 ? MURAL_OK : failed(result, s, path, err);
}

mural_status mu_decode_png(mu_picture *picture, const char *path, const uint8_t *bytes, size_t n, mural_error *err)
{
	stream s = {bytes, n, 0};
	spng_ctx *context = spng_ctx_new(0);
	if (!context)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, path, "no memory to decode the image");
	mural_status status = decode(context, &s, picture, path, err);
	spng_ctx_free(context);
	return status;
}

#else

mural_status mu_decode_png(mu_picture *picture, const char *path, const uint8_t *bytes, size_t n, mural_error *err)
{
	(void)picture, (void)bytes, (void)n;
	return mu_fail(err, MURAL_DATA, path,
	               "this build cannot read PNG images: install libspng (Debian: libspng-dev) and build again");
}
#endif
