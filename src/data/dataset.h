/* The table of data formats. Every image of a set has the same shape; random access from several threads.
 * SPDX-License-Identifier: MIT */
#ifndef MU_DATA_DATASET_H
#define MU_DATA_DATASET_H

#include "base/fail.h"
#include "mural/data.h"

typedef struct mu_format {
	const char *name;
	/* Copies image `index` as planes [channels, height, width] and its label. Thread-safe. */
	mural_status (*read)(const mural_data *data, uint64_t index, uint8_t *pixels, int32_t *label, mural_error *err);
	void (*free)(mural_data *data);
} mu_format;

/* Formats embed this as their first member. */
struct mural_data {
	const mu_format *format;
	mural_data_facts facts;
	float mean[MURAL_MAX_CHANNELS], std[MURAL_MAX_CHANNELS]; /* in force: the configuration's or the set's own */
};

#endif
