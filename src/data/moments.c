/* Sums of bytes and of their squares. SPDX-License-Identifier: MIT */
#include "data/moments.h"

#include <math.h>

void mu_moments_add(mu_moments *moments, size_t channel, const uint8_t *bytes, size_t n)
{
	uint64_t value = 0, square = 0;
	for (size_t i = 0; i < n; i++) {
		value += bytes[i];
		square += (uint64_t)(bytes[i] * bytes[i]);
	}
	moments->count[channel] += n;
	moments->value[channel] += value;
	moments->square[channel] += square;
}

void mu_moments_set(const mu_moments *moments, size_t channels, float mean[MURAL_MAX_CHANNELS],
                    float std[MURAL_MAX_CHANNELS])
{
	for (size_t c = 0; c < MURAL_MAX_CHANNELS; c++) {
		size_t from = channels == 1 ? 0 : c;
		double n = moments->count[from] ? (double)moments->count[from] : 1;
		double average = (double)moments->value[from] / n;
		double variance = (double)moments->square[from] / n - average * average;
		mean[c] = (float)(average / 255);
		std[c] = (float)(variance > 0 ? sqrt(variance) / 255 : 1);
	}
}
