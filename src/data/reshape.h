/* A decoded picture in the shape that a model takes. SPDX-License-Identifier: MIT */
#ifndef MU_DATA_RESHAPE_H
#define MU_DATA_RESHAPE_H

#include "data/decode.h"
#include "data/resize.h"

#define MU_PICTURE_CHANNELS 3

/* pixels: [to], planes; `to` has three channels, or one, for which the picture becomes grey as Pillow's convert("L") has it. Resized as wished, or padded and cut when wish.how is MURAL_RESIZE_NONE.
 * Thread-safe; allocates what it needs and frees it again. */
mural_status mu_picture_reshape(const mu_picture *picture, mu_image_shape to, mu_resize_wish wish, uint8_t *pixels,
                                mural_error *err);

#endif
