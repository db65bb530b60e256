/* Position tables for another grid of patches, as each project does it. SPDX-License-Identifier: MIT */
#ifndef MU_WEIGHTS_POSITIONS_H
#define MU_WEIGHTS_POSITIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "model/names.h"

typedef struct mu_grid {
	size_t height, width;
} mu_grid;

/* from: [old.height, old.width, width]; to: [wanted.height, wanted.width, width], separately allocated. Sums are in double.
 * False when there is no memory. */
bool mu_positions_resize(mu_naming naming, const float *from, mu_grid old, float *to, mu_grid wanted, size_t width);

/* "bicubic with antialiasing, as timm". */
const char *mu_positions_convention(mu_naming naming);

#endif
