/* One file of CIFAR's "python version": a pickle of one fixed shape, executing nothing (base/pickle.h).
 *
 *     batch   {"data": uint8 array [images, 3072], "labels" or "fine_labels" and "coarse_labels": list of small ints,
 *              "filenames": list of texts, "batch_label": text}
 *     meta    {"label_names" or "fine_label_names" and "coarse_label_names": list of texts, "num_vis": int,
 *              "num_cases_per_batch": int}
 *
 * in any order of keys. The array is rebuilt by numpy's _reconstruct and dtype, which are recognised, not called; in C
 * order or in Fortran's.
 * SPDX-License-Identifier: MIT */
#ifndef MU_DATA_CIFAR_PYTHON_H
#define MU_DATA_CIFAR_PYTHON_H

#include <stdint.h>

#include "data/class_names.h"

#define MU_CIFAR_PIXELS 3072 /* of an image: 3 planes of 32 x 32 */

typedef struct mu_cifar_batch {
	uint64_t images;
	const uint8_t *pixels; /* [images, 3072], inside `file` or `turned` */
	uint8_t *labels; /* [images] */
	uint8_t *file, *turned; /* malloc'ed; turned: an array that was in Fortran's order, or NULL */
} mu_cifar_batch;

/* Reads a batch, taking labels from the key `labels_key`: MURAL_DATA for any other shape, with "path:byte", and for a
 * label that is not below `classes`. On failure the batch is empty. */
mural_status mu_cifar_python_batch(mu_cifar_batch *batch, const char *path, const char *labels_key, size_t classes,
                                   mural_error *err);
void mu_cifar_batch_release(mu_cifar_batch *batch);

/* Adds the names under `names_key` of a meta file. */
mural_status mu_cifar_python_names(mu_class_names *names, const char *path, const char *names_key, mural_error *err);

#endif
