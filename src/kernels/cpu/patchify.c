/* Bytes to normalised patches. A pixel has 256 values, so each channel's formula is computed 256 times in double and
 * then looked up: as exact as the reference, one load and one store per pixel for every patch size (a patch of 4 pixels
 * is too short for vectors). 5 bytes per pixel; under 0.1 % of a training step. A part is a row of patches.
 *
 * Images that are enlarged on the way mix four bytes per pixel by shares that depend on its place modulo the factor: a table
 * for the columns, one share per line. Division is slow, so quotient and remainder go along with the column.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "kernels/cpu/real.h"

struct cutter {
	const mu_patchify *op;
	size_t rows, columns; /* patches */
	size_t channels, height, width; /* of the images as they come */
	uint32_t factor;
	uint32_t share[MU_ENLARGE_MOST]; /* by phase, when factor > 1 */
	mu_real value[MU_MAX_CHANNELS][256];
};

/* One line of a patch: output pixels [x, x + patch) of output line y. */
MU_CPU_INLINE void cut_line(const mu_patchify *op, mu_image_cut cut, const mu_real *value, const uint8_t *plane,
                            size_t y, size_t x, mu_real *to)
{
	const size_t P = op->patch;
	const ptrdiff_t width = (ptrdiff_t)op->width;
	const ptrdiff_t source_y = (ptrdiff_t)y + cut.dy, step = cut.flip ? -1 : 1;
	const ptrdiff_t source_x = (cut.flip ? width - 1 - (ptrdiff_t)x : (ptrdiff_t)x) + cut.dx;
	const ptrdiff_t last_x = source_x + step * (ptrdiff_t)(P - 1);
	const bool line_inside = source_y >= 0 && source_y < (ptrdiff_t)op->height;
	const uint8_t *line = line_inside ? plane + source_y * width : NULL;
	if (line && source_x >= 0 && source_x < width && last_x >= 0 && last_x < width) {
		const uint8_t *from = line + source_x;
		for (size_t i = 0; i < P; i++)
			to[i] = value[from[step * (ptrdiff_t)i]];
		return;
	}
	for (size_t i = 0; i < P; i++) {
		const ptrdiff_t column = source_x + step * (ptrdiff_t)i;
		to[i] = value[line && column >= 0 && column < width ? line[column] : 0];
	}
}

/* Input pixel `lower` or the nearest that there is. */
MU_CPU_INLINE size_t clamped(ptrdiff_t at, size_t length)
{
	return at < 0 ? 0 : at < (ptrdiff_t)length ? (size_t)at : length - 1;
}

/* The same of an image that is enlarged. */
MU_CPU_INLINE void enlarge_line(const struct cutter *k, mu_image_cut cut, const mu_real *value, const uint8_t *plane,
                                size_t y, size_t x, mu_real *to)
{
	const mu_patchify *op = k->op;
	const size_t P = op->patch;
	const ptrdiff_t width = (ptrdiff_t)op->width, factor = k->factor;
	const ptrdiff_t row = (ptrdiff_t)y + cut.dy, step = cut.flip ? -1 : 1;
	ptrdiff_t column = (cut.flip ? width - 1 - (ptrdiff_t)x : (ptrdiff_t)x) + cut.dx;
	if (row < 0 || row >= (ptrdiff_t)op->height) {
		for (size_t i = 0; i < P; i++)
			to[i] = value[0];
		return;
	}
	const uint32_t down = (uint32_t)(row % factor), low_share = k->share[down];
	const ptrdiff_t above = mu_enlarge_lower(row / factor, down, k->factor);
	const uint8_t *top = plane + clamped(above, k->height) * k->width,
	              *bottom = plane + clamped(above + 1, k->height) * k->width;
	/* Rounded down, so that columns left of the image count on as well. */
	ptrdiff_t quotient = column / factor - (column % factor < 0), phase = column - quotient * factor;
	for (size_t i = 0; i < P; i++, column += step, phase += step) {
		if (phase == factor || phase < 0) {
			quotient += step;
			phase -= step * factor;
		}
		if (column < 0 || column >= width) {
			to[i] = value[0];
			continue;
		}
		const ptrdiff_t before = mu_enlarge_lower(quotient, (uint32_t)phase, k->factor);
		const size_t left = clamped(before, k->width), right = clamped(before + 1, k->width);
		const uint32_t share = k->share[phase];
		to[i] = value[mu_enlarge_mix(mu_enlarge_mix(top[left], top[right], share),
		                             mu_enlarge_mix(bottom[left], bottom[right], share), low_share)];
	}
}

MU_CPU_KERNEL(cut_rows)
{
	const struct cutter *k = work;
	const mu_patchify *op = k->op;
	const size_t P = op->patch, elements = k->columns * op->channels * P * P, plane_bytes = k->height * k->width;
	for (size_t part = begin; part < end; part++) {
		const size_t b = part / k->rows, first_y = part % k->rows * P;
		mu_real *to = (mu_real *)op->patches + part * elements;
		if (b >= op->micro->count) {
			memset(to, 0, elements * sizeof *to);
			continue;
		}
		const mu_image_cut cut = op->cut_B ? op->cut_B[b] : (mu_image_cut){0};
		const uint8_t *image = op->pixels + b * k->channels * plane_bytes;
		for (size_t px = 0; px < k->columns; px++)
			for (size_t channel = 0; channel < op->channels; channel++) {
				const uint8_t *plane = image + (k->channels == 1 ? 0 : channel) * plane_bytes;
				for (size_t y = 0; y < P; y++, to += P)
					if (k->factor > 1)
						enlarge_line(k, cut, k->value[channel], plane, first_y + y, px * P, to);
					else
						cut_line(op, cut, k->value[channel], plane, first_y + y, px * P, to);
			}
	}
}

mural_status mu_cpu_patchify(mu_ops_context *c, const mu_patchify *op, mural_error *err)
{
	(void)err;
	const size_t factor = op->factor ? op->factor : 1;
	struct cutter k = {.op = op,
	                   .rows = op->height / op->patch,
	                   .columns = op->width / op->patch,
	                   .channels = op->image_channels ? op->image_channels : op->channels,
	                   .height = op->height / factor,
	                   .width = op->width / factor,
	                   .factor = (uint32_t)factor};
	for (uint32_t phase = 0; phase < k.factor; phase++)
		k.share[phase] = mu_enlarge_share(phase, k.factor);
	for (size_t channel = 0; channel < op->channels; channel++)
		for (int pixel = 0; pixel < 256; pixel++)
			k.value[channel][pixel] = mu_narrow(
			        (float)((pixel / 255.0 - (double)op->mean[channel]) / (double)op->std[channel]));
	mu_cpu_run(c, cut_rows, &k, op->images * k.rows);
	return MURAL_OK;
}
