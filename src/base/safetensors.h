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

#include <stdatomic.h>

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

/* Everything of a file to write. Borrowed; `items` gets sorted. */
typedef struct mu_safetensors_content {
	mu_safetensors_item *items;
	size_t n_items;
	const mu_safetensors_note *notes; /* more metadata */
	size_t n_notes;
} mu_safetensors_content;

/* A write that takes a while, and that another thread may look after. */
typedef struct mu_safetensors_writing {
	const atomic_bool *stop; /* in: gives up (MURAL_STOPPED) when it becomes true; NULL = never */
	uint64_t bytes, checksum; /* out: of the file, computed on the way */
} mu_safetensors_writing;

/* The same with more metadata. writing may be NULL. */
mural_status mu_safetensors_write_content(const char *path, const mu_safetensors_content *content,
                                          mu_safetensors_writing *writing, mural_error *err);

#endif
