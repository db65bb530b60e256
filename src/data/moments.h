/* Mean and standard deviation of an image set, per channel, from exact integer sums. SPDX-License-Identifier: MIT */
#ifndef MU_DATA_MOMENTS_H
#define MU_DATA_MOMENTS_H

#include <stddef.h>
#include <stdint.h>

#include "mural/data.h"

typedef struct mu_moments {
	uint64_t count[MURAL_MAX_CHANNELS], value[MURAL_MAX_CHANNELS],
	        square[MURAL_MAX_CHANNELS]; /* exact below 2^48 */
} mu_moments;

void mu_moments_add(mu_moments *moments, size_t channel, const uint8_t *bytes, size_t n);

/* Of pixels in [0, 1]. One channel stands for all: a model with more sees it repeated. The std of a single colour is 1:
 * there is nothing to scale. */
void mu_moments_set(const mu_moments *moments, size_t channels, float mean[MURAL_MAX_CHANNELS],
                    float std[MURAL_MAX_CHANNELS]);

#endif
