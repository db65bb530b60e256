/* A picture's pixels as planes of another shape. SPDX-License-Identifier: MIT */
#include "data/reshape.h"

#include <stdlib.h>

/* What turning one picture into planes of another shape needs, in one block. */
typedef struct workshop {
	mu_resize resize;
	uint8_t *planes, *scratch;
} workshop;

static workshop lay_out(mu_arena *arena, mu_resize_wish wish, mu_image_shape from, mu_image_shape to)
{
	workshop shop = {.planes = mu_arena_take(arena, mu_image_bytes(from))};
	if (wish.how == MURAL_RESIZE_NONE)
		return shop;
	shop.resize = mu_resize_take(arena, from, to, wish);
	shop.scratch = mu_arena_take(arena, mu_resize_scratch_bytes(&shop.resize));
	return shop;
}

/* Grey by ITU-R 601's luma in 16-bit fixed point, as Pillow computes it. */
static void part_channels(const mu_picture *picture, size_t channels, uint8_t *planes)
{
	size_t pixels = picture->height * picture->width;
	for (size_t p = 0; p < pixels && channels == 1; p++) {
		const uint8_t *rgb = picture->rgb + p * MU_PICTURE_CHANNELS;
		planes[p] = (uint8_t)((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16);
	}
	for (size_t p = 0; p < pixels && channels != 1; p++)
		for (size_t c = 0; c < MU_PICTURE_CHANNELS; c++)
			planes[c * pixels + p] = picture->rgb[p * MU_PICTURE_CHANNELS + c];
}

mural_status mu_picture_reshape(const mu_picture *picture, mu_image_shape to, mu_resize_wish wish, uint8_t *pixels,
                                mural_error *err)
{
	mu_image_shape from = {to.channels, picture->height, picture->width};
	mu_arena arena;
	mu_arena_measure(&arena, "image");
	lay_out(&arena, wish, from, to);
	size_t bytes = arena.high;
	void *block = aligned_alloc(MU_ARENA_ALIGN, mu_arena_padded(bytes));
	if (!block)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory to resize an image of %zu x %zu",
		               picture->height, picture->width);
	mu_arena_reserve(&arena, "image", block, bytes);
	workshop shop = lay_out(&arena, wish, from, to);
	part_channels(picture, to.channels, shop.planes);
	if (wish.how == MURAL_RESIZE_NONE) {
		mu_fit(from, shop.planes, to, pixels);
	} else {
		mu_resize_prepare(&shop.resize);
		mu_resize_run(&shop.resize, shop.planes, pixels, shop.scratch);
	}
	free(block);
	return MURAL_OK;
}
