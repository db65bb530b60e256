/* Bytes to normalised patches: for each output pixel, find its source pixel, enlarged or as it is. SPDX-License-Identifier: MIT */
#include "kernels/reference/element.h"
#include "kernels/reference/reference.h"

/* Output pixel (y, x) of channel c: mirrored, shifted, black outside. */
static double source_pixel(const mu_patchify *op, size_t b, size_t c, size_t y, size_t x)
{
	const mu_image_cut cut = op->cut_B ? op->cut_B[b] : (mu_image_cut){0};
	const ptrdiff_t row = (ptrdiff_t)y + cut.dy;
	const ptrdiff_t column = (ptrdiff_t)(cut.flip ? op->width - 1 - x : x) + cut.dx;
	if (row < 0 || row >= (ptrdiff_t)op->height || column < 0 || column >= (ptrdiff_t)op->width)
		return 0;
	const size_t channels = op->image_channels ? op->image_channels : op->channels,
	             factor = op->factor ? op->factor : 1;
	const size_t height = op->height / factor, width = op->width / factor;
	const uint8_t *plane = op->pixels + (b * channels + c % channels) * height * width;
	return mu_enlarged_pixel(plane, (uint32_t)height, (uint32_t)width, (uint32_t)factor, (uint32_t)row,
	                         (uint32_t)column);
}

static double patch_value(const mu_patchify *op, size_t b, size_t c, size_t y, size_t x)
{
	if (b >= op->micro->count)
		return 0;
	return (source_pixel(op, b, c, y, x) / 255 - op->mean[c]) / op->std[c];
}

mural_status mu_reference_patchify(mu_ops_context *context, const mu_patchify *op, mural_error *err)
{
	(void)context;
	(void)err;
	const size_t P = op->patch, rows = op->height / P, columns = op->width / P;
	size_t element = 0;
	for (size_t b = 0; b < op->images; b++)
		for (size_t py = 0; py < rows; py++)
			for (size_t px = 0; px < columns; px++)
				for (size_t c = 0; c < op->channels; c++)
					for (size_t y = 0; y < P; y++)
						for (size_t x = 0; x < P; x++)
							mu_element_store(op->type, op->patches, element++,
							                 patch_value(op, b, c, py * P + y, px * P + x));
	return MURAL_OK;
}
