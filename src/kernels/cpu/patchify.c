/* Bytes to normalised patches. A pixel has 256 values, so each channel's formula is computed 256 times in double and
 * then looked up: as exact as the reference, one load and one store per pixel for every patch size (a patch of 4 pixels
 * is too short for vectors). 5 bytes per pixel; under 0.1 % of a training step. A part is a row of patches.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "kernels/cpu/real.h"

struct cutter {
	const mu_patchify *op;
	size_t rows, columns; /* patches */
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

MU_CPU_KERNEL(cut_rows)
{
	const struct cutter *k = work;
	const mu_patchify *op = k->op;
	const size_t P = op->patch, elements = k->columns * op->channels * P * P;
	for (size_t part = begin; part < end; part++) {
		const size_t b = part / k->rows, first_y = part % k->rows * P;
		mu_real *to = (mu_real *)op->patches + part * elements;
		if (b >= op->micro->count) {
			memset(to, 0, elements * sizeof *to);
			continue;
		}
		const mu_image_cut cut = op->cut_B ? op->cut_B[b] : (mu_image_cut){0};
		const uint8_t *image = op->pixels + b * op->channels * op->height * op->width;
		for (size_t px = 0; px < k->columns; px++)
			for (size_t channel = 0; channel < op->channels; channel++) {
				const uint8_t *plane = image + channel * op->height * op->width;
				for (size_t y = 0; y < P; y++, to += P)
					cut_line(op, cut, k->value[channel], plane, first_y + y, px * P, to);
			}
	}
}

mural_status mu_cpu_patchify(mu_ops_context *c, const mu_patchify *op, mural_error *err)
{
	(void)err;
	struct cutter k = {.op = op, .rows = op->height / op->patch, .columns = op->width / op->patch};
	for (size_t channel = 0; channel < op->channels; channel++)
		for (int pixel = 0; pixel < 256; pixel++)
			k.value[channel][pixel] = mu_narrow(
			        (float)((pixel / 255.0 - (double)op->mean[channel]) / (double)op->std[channel]));
	mu_cpu_run(c, cut_rows, &k, op->images * k.rows);
	return MURAL_OK;
}
