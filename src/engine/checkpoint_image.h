/* The large files of a set as they will lie on the disk: weights, optimizer state, average.
 *
 *     mu_images_make(&images, engine, &engine->store, err);       what they are
 *     mu_images_copy(&images, engine, memory, bytes, err);        of this moment, while the training goes on
 *     mu_image_write(&images.list[i], path, stop, &file, err);    from any thread
 *
 * The copy that a checkpoint in the background needs is made in the files' own layout, by all threads of a training that stands still
 * for it, which sum the pieces up in passing. So the thread that writes has nothing to do but tell the disk where the bytes lie: each
 * second of a processor that it would need, all threads of a training on processors would wait for. Without a copy a file is written,
 * byte for byte the same, from where the tensors are.
 * SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_CHECKPOINT_IMAGE_H
#define MU_ENGINE_CHECKPOINT_IMAGE_H

#include "base/safetensors.h"
#include "engine/checkpoint.h"

#define MU_IMAGES 3

typedef struct mu_image {
	const char *name; /* of the file */
	mu_safetensors_layout layout;
	unsigned char *copy; /* of layout.bytes, at a page; NULL: there is none */
	uint64_t *sums; /* of the copy's pieces of MU_CHECKSUM_PIECE */
	bool summed; /* they are known */
} mu_image;

typedef struct mu_images { /* zero-initialise */
	mu_image list[MU_IMAGES];
	size_t n;
} mu_images;

/* The store may lie anywhere, and is kept. Release the images also after a failure. */
mural_status mu_images_make(mu_images *images, const mural_engine *engine, const mu_store *store, mural_error *err);
void mu_images_release(mu_images *images); /* all-zero is fine */

/* Memory for copies of all of them. */
size_t mu_images_bytes(const mu_images *images);
/* The store as it is now into `memory`, borrowed until the images are released. */
mural_status mu_images_copy(mu_images *images, const mural_engine *engine, void *memory, size_t bytes,
                            mural_error *err);

/* The file, with its size and checksum; beside, synced, renamed. MURAL_STOPPED soon after *stop becomes true. */
mural_status mu_image_write(const mu_image *image, const char *path, const atomic_bool *stop, mu_manifest_file *file,
                            mural_error *err);

#endif
