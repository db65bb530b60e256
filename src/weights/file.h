/* A file of named tensors, whatever its format: safetensors (one file, or several with an index), PyTorch's ZIP of a
 * pickle, NumPy's npz.
 *
 * Opening looks at everything but the tensors' bytes and allocates nothing that the file does not back with bytes of its own.
 * Reading hands out fp32, converted from fp16, bf16 or fp64 where needed. The file's content decides its format, not its
 * name. A wrapper's prefix ("module.", "_orig_mod.") is taken off the names.
 *
 *     mu_weights_file *file;
 *     MU_TRY(mu_weights_file_open(&file, path, err));
 *     const mu_stored *tensor = mu_weights_file_find(file, "cls_token");
 *     MU_TRY(mu_weights_file_read(file, tensor, floats, err));        tensor->elements of them
 *     mu_weights_file_free(file);
 *
 * A further format is a row of the table in file.c.
 * SPDX-License-Identifier: MIT */
#ifndef MU_WEIGHTS_FILE_H
#define MU_WEIGHTS_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fail.h"
#include "base/types.h"

#define MU_STORED_MAX_DIMS 8

typedef struct mu_stored {
	char *name;
	const char *dtype; /* as safetensors would write it: "F32" */
	mu_dtype type; /* MU_DTYPE_COUNT: one that Mural does not compute with */
	size_t n_dims;
	uint64_t dims[MU_STORED_MAX_DIMS];
	uint64_t elements;
	const void *place; /* the format's own note of where its bytes are */
} mu_stored;

typedef struct mu_weights_file mu_weights_file;

/* path: a file, or a folder in which one of the usual names is looked for (a run's, a checkpoint's, Hugging Face's).
 * MURAL_DATA with path and place for whatever is not what it should be. */
mural_status mu_weights_file_open(mu_weights_file **file, const char *path, mural_error *err);
void mu_weights_file_free(mu_weights_file *file); /* NULL is fine; tensors go with it */

const char *mu_weights_file_path(const mu_weights_file *file); /* of the file that was found */
const char *mu_weights_file_format(const mu_weights_file *file); /* "safetensors", "safetensors in 2 files", ... */
/* What safetensors' metadata say under this key, or NULL. */
const char *mu_weights_file_note(const mu_weights_file *file, const char *key);

/* Tensors by name. */
size_t mu_weights_file_count(const mu_weights_file *file);
const mu_stored *mu_weights_file_at(const mu_weights_file *file, size_t i);
const mu_stored *mu_weights_file_find(const mu_weights_file *file, const char *name); /* NULL if there is none */

bool mu_stored_is_float(const mu_stored *tensor);
/* All elements, row-major. MURAL_DATA when they are no floating-point numbers. */
mural_status mu_weights_file_read(const mu_weights_file *file, const mu_stored *tensor, float *to, mural_error *err);

#endif
