/* Inside the reader of weight files: the table of formats.
 *
 * A format's `open` adds tensors by mu_weights_file_add and keeps in `own` what it needs to read them.
 * SPDX-License-Identifier: MIT */
#ifndef MU_WEIGHTS_FILE_INSIDE_H
#define MU_WEIGHTS_FILE_INSIDE_H

#include "weights/file.h"

typedef struct mu_weights_format {
	/* Fills the file; what was made goes with `release`, also after a failure. */
	mural_status (*open)(mu_weights_file *file, mural_error *err);
	/* All bytes of a tensor, row-major, as they are stored. */
	mural_status (*read)(const mu_weights_file *file, const mu_stored *tensor, void *to, mural_error *err);
	const char *(*note)(const mu_weights_file *file, const char *key); /* NULL: has none */
	void (*release)(mu_weights_file *file);
} mu_weights_format;

struct mu_weights_file {
	char *path;
	char described[64]; /* the format in words */
	const mu_weights_format *format;
	mu_stored *tensors;
	size_t n, room;
	void *own;
};

extern const mu_weights_format mu_weights_safetensors, mu_weights_index, mu_weights_pth, mu_weights_npz;

/* Appends a tensor with its name copied, shape and type to be filled in; NULL when there is no memory. Pointers to earlier
 * ones are void then. */
mu_stored *mu_weights_file_add(mu_weights_file *file, const char *name, size_t bytes);

/* Fills elements from dims. MURAL_DATA when there are too many of them or of dims. */
mural_status mu_stored_count(mu_stored *tensor, const char *path, mural_error *err);

/* Element type by safetensors' name for it. */
mu_dtype mu_stored_type(const char *dtype);

#endif
