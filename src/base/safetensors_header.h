/* Inside the safetensors reader: the file, and what its header turns into.
 * SPDX-License-Identifier: MIT */
#ifndef MU_BASE_SAFETENSORS_HEADER_H
#define MU_BASE_SAFETENSORS_HEADER_H

#include "base/hjson.h"
#include "base/safetensors.h"

struct mu_safetensors {
	char *path;
	int fd;
	uint64_t data; /* where tensors begin in the file */
	uint64_t data_bytes;
	mu_hjson *header;
	mu_safetensor *tensors;
	uint64_t *dims; /* of all tensors, one behind the other */
	size_t count;
};

/* Fills tensors, dims and count from the header's tree and checks all of it against data_bytes. The tensors end up by
 * place in the file. What was allocated goes with mu_safetensors_free, also after a failure. */
mural_status mu_safetensors_take_entries(mu_safetensors *file, mural_error *err);

#endif
