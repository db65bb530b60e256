/* Reader and writer of safetensors files: named tensors, checked before a byte of them is used.
 *
 *     u64 little-endian N | N bytes of JSON: name -> {dtype, shape, data_offsets} | tensors, row-major
 *
 * Opening reads and checks the header alone: its size against the file and the format's limit before anything is
 * allocated, plain JSON without duplicate names, known element types, shape against bytes, and that the tensors tile
 * the rest of the file without hole, overlap or rest. Tensor data are read on demand into the caller's memory.
 * SPDX-License-Identifier: MIT */
#ifndef MU_BASE_SAFETENSORS_H
#define MU_BASE_SAFETENSORS_H

#include "base/fail.h"
#include "base/types.h"

typedef struct mu_safetensor {
	const char *name;
	const char *dtype; /* "F32", "F8_E4M3", ... */
	mu_dtype type; /* the same, or MU_DTYPE_COUNT for a type that Mural does not compute with */
	size_t n_dims;
	const uint64_t *dims;
	uint64_t begin, bytes; /* in the data behind the header */
} mu_safetensor;

typedef struct mu_safetensors mu_safetensors;

/* MURAL_DATA with path and place when the file is not what it should be, also when it does not exist. */
mural_status mu_safetensors_open(mu_safetensors **file, const char *path, mural_error *err);
void mu_safetensors_free(mu_safetensors *file); /* NULL is fine; tensors go with it */

/* Tensors by name, in the order of bytes. */
size_t mu_safetensors_count(const mu_safetensors *file);
const mu_safetensor *mu_safetensors_at(const mu_safetensors *file, size_t i);
/* NULL if there is none. */
const mu_safetensor *mu_safetensors_find(const mu_safetensors *file, const char *name);
/* What the file's metadata say under this key, or NULL. */
const char *mu_safetensors_note_of(const mu_safetensors *file, const char *key);
/* All bytes of a tensor of this file. */
mural_status mu_safetensors_read(const mu_safetensors *file, const mu_safetensor *tensor, void *to, mural_error *err);

/* A tensor to write; all borrowed for the call. */
typedef struct mu_safetensors_item {
	const char *name;
	mu_dtype type;
	size_t n_dims;
	const size_t *dims;
	const void *data;
} mu_safetensors_item;

/* A text for the metadata; borrowed. */
typedef struct mu_safetensors_note {
	const char *key, *text;
} mu_safetensors_note;

/* Writes beside, syncs, renames. Sorts `items` as the format likes it: falling alignment, then name. The metadata say
 * {"format": "pt"}, without which some readers refuse a file. */
mural_status mu_safetensors_write(const char *path, mu_safetensors_item *items, size_t n, mural_error *err);
/* The same with more metadata. */
mural_status mu_safetensors_write_noted(const char *path, mu_safetensors_item *items, size_t n,
                                        const mu_safetensors_note *notes, size_t n_notes, mural_error *err);

/* A file as it will lie on the disk: its header, and where each tensor's bytes come. */
typedef struct mu_safetensors_part {
	uint64_t begin; /* in the file */
	const void *data; /* borrowed, but for the header; may lie in a device's memory */
} mu_safetensors_part;

typedef struct mu_safetensors_layout { /* zero-initialise */
	uint64_t bytes; /* of the file */
	char *header; /* with its length in front */
	mu_safetensors_part
	        *parts; /* the header, then tensors that are not empty; in the file's order, without holes */
	size_t n_parts;
} mu_safetensors_layout;

/* `items` as above, not needed afterwards; data may be any addresses, which only those read who look at the parts. */
mural_status mu_safetensors_lay_out(mu_safetensors_layout *layout, mu_safetensors_item *items, size_t n,
                                    const mu_safetensors_note *notes, size_t n_notes, mural_error *err);
void mu_safetensors_layout_release(mu_safetensors_layout *layout); /* all-zero is fine */
/* Writes beside, syncs, renames; parts in host memory. */
mural_status mu_safetensors_write_layout(const char *path, const mu_safetensors_layout *layout, mural_error *err);
/* The part that holds byte `at` < layout->bytes; *bytes: of it from there on. */
const void *mu_safetensors_part_at(const mu_safetensors_layout *layout, uint64_t at, uint64_t *bytes);

#endif
