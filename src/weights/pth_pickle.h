/* The pickle inside a PyTorch file, turned into a list of tensor descriptions. Nothing is ever executed.
 *
 * A small machine keeps a stack of inert values: texts, numbers, tuples, dictionaries, tensors' descriptions. What Python
 * would call (REDUCE, NEWOBJ) is recognised by name, from a list: _rebuild_tensor_v2 becomes a description, OrderedDict a
 * dictionary, a few harmless classes that training scripts leave in checkpoints (argparse.Namespace, ...) a value
 * without content. Everything else is refused with its name and byte. Memory is bounded by the pickle's size.
 * SPDX-License-Identifier: MIT */
#ifndef MU_WEIGHTS_PTH_PICKLE_H
#define MU_WEIGHTS_PTH_PICKLE_H

#include "weights/file.h"

#define MU_PTH_LONGEST_PICKLE ((size_t)4 << 20) /* bytes; a ViT-G and its optimizer's state take a tenth */

typedef struct mu_pth_tensor {
	const char *name, *storage; /* not NUL-terminated: in the pickle's bytes */
	size_t name_bytes, storage_bytes;
	const char *dtype; /* "F32" */
	uint64_t storage_elements, offset; /* in elements */
	size_t n_dims;
	uint64_t dims[MU_STORED_MAX_DIMS], strides[MU_STORED_MAX_DIMS];
} mu_pth_tensor;

/* The tensors of the state_dict: the outermost dictionary, or the one below "state_dict", "model", "model_state_dict",
 * "module". The caller frees *tensors. Shapes and strides are not yet compared with the storages. */
mural_status mu_pth_pickle_read(const char *path, const uint8_t *bytes, size_t n, mu_pth_tensor **tensors,
                                size_t *n_tensors, mural_error *err);

#endif
