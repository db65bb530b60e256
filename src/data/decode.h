/* PNG and JPEG files as RGB pixels, the values that Pillow's Image.open(...).convert("RGB") gives.
 *
 * The content decides, not the name. Grey is repeated, palettes are looked up, alpha is dropped, CMYK (as Adobe stores
 * it, inverted) is mixed as Pillow mixes it; 16-bit samples keep their upper byte (Pillow clips 16-bit grey instead, which
 * leaves white). EXIF orientation, colour profiles and gamma are not applied, as in torchvision's loaders. An image that
 * is cut or damaged is an error, never half an image; sizes are checked before memory is asked for.
 *
 * libspng and TurboJPEG are optional when Mural is built; without one its files are refused in words.
 * SPDX-License-Identifier: MIT */
#ifndef MU_DATA_DECODE_H
#define MU_DATA_DECODE_H

#include <stdint.h>

#include "base/fail.h"

#define MU_MAX_PIXELS ((size_t)178956970) /* of one image: where Pillow refuses, too */

typedef struct mu_picture {
	size_t height, width;
	uint8_t *rgb; /* [height, width, 3], malloc'ed */
} mu_picture;

/* MURAL_DATA with "path:byte" as exactly as the decoder tells; nothing is left to free then. Thread-safe. */
mural_status mu_decode_file(mu_picture *picture, const char *path, mural_error *err);
void mu_picture_release(mu_picture *picture);

/* What can be decoded: "PNG (libspng), JPEG (libjpeg-turbo)", or "none". */
const char *mu_decode_text(void);

/* For decode_*.c: checks a size and allocates the pixels. */
mural_status mu_picture_reserve(mu_picture *picture, const char *path, uint64_t height, uint64_t width,
                                mural_error *err);
/* The decoders of decode_png.c and decode_jpeg.c: a whole file in memory. May leave pixels behind on failure. */
mural_status mu_decode_png(mu_picture *picture, const char *path, const uint8_t *bytes, size_t n, mural_error *err);
mural_status mu_decode_jpeg(mu_picture *picture, const char *path, const uint8_t *bytes, size_t n, mural_error *err);

#endif
