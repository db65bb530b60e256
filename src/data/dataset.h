/* The table of data formats. Every image of a set has the same shape; random access from several threads.
 *
 * A format opens one split completely: what it has opened it can also read, as far as that can be known beforehand.
 * SPDX-License-Identifier: MIT */
#ifndef MU_DATA_DATASET_H
#define MU_DATA_DATASET_H

#include "base/fail.h"
#include "data/class_names.h"
#include "mural/data.h"

#define MU_MAX_SIDE MURAL_MAX_SIDE /* offsets of crops are 16 bits wide */

/* What a format is asked to open. Everything is borrowed for the call. */
typedef struct mu_data_request {
	const char *folder; /* existing; "" for formats without files */
	const mural_data_config *config; /* already checked */
	mural_split split;
	uint32_t seed;
	size_t channels, height, width; /* of made-up images and those that are resized while they are read */
	size_t classes; /* of the model; 0: not known */
	const mural_data *train; /* of a validation set: whose classes it has; NULL otherwise */
} mu_data_request;

typedef struct mu_format {
	const char *name;
	/* Does the folder look like this format's? NULL for formats without files. */
	bool (*found_in)(const char *folder);
	/* Sets facts (but for name and path), mean and std, and class_names if it knows them. Allocates *data with malloc;
	 * on failure *data is untouched. */
	mural_status (*open)(mural_data **data, const mu_data_request *request, mural_error *err);
	/* Copies image `index` as planes [channels, height, width] and its label. Thread-safe. */
	mural_status (*read)(const mural_data *data, uint64_t index, uint8_t *pixels, int32_t *label, mural_error *err);
	/* The label that `read` gives. Thread-safe. */
	int32_t (*label)(const mural_data *data, uint64_t index);
	void (*free)(mural_data *data);
} mu_format;

extern const mu_format mu_format_idx, mu_format_synthetic, mu_format_cifar10, mu_format_cifar100, mu_format_folder;

/* Context of a test set's failure to normalise itself by the training images. */
extern const char mu_needs_training_images[];

/* Formats embed this as their first member. */
struct mural_data {
	const mu_format *format;
	mural_data_facts facts;
	float mean[MURAL_MAX_CHANNELS], std[MURAL_MAX_CHANNELS]; /* in force: the configuration's or the set's own */
	mu_class_names class_names; /* all of them, or none */
	uint32_t *selection; /* [facts.images] indexes into the format's images when not all are used, or NULL */
	mural_data *source; /* whose images these are, when they are not its own */
	uint64_t all_images; /* of the format, before any selection */
	unsigned users; /* itself, until it is freed, and those that have it as their source */
};

/* Opens all images of a split. path, format: as in mural_data_config; request->folder is set from them. */
mural_status mu_data_open_set(mural_data **data, const char *path, mural_data_format format, mu_data_request *request,
                              mural_error *err);

/* Reads image `index` in [0, facts.images) through the selection. Thread-safe. */
mural_status mu_data_read(const mural_data *data, uint64_t index, uint8_t *pixels, int32_t *label, mural_error *err);

#endif
