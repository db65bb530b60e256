/* What the CUDA operations know about the CUDA device: its queue is a stream. Part of the CUDA module, not of libmural.
 *
 * Everything here and in kernels/cuda works on the calling thread's current device; each function of the device table
 * makes its device current first. So operations run in a thread that has called the device table before, which is
 * always so: it opened the device.
 * SPDX-License-Identifier: MIT */
#ifndef MU_DEVICE_CUDA_CUDA_H
#define MU_DEVICE_CUDA_CUDA_H

#include <cuda_runtime_api.h>

#include "device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

struct mu_queue {
	mu_device_handle *device;
	cudaStream_t stream;
};

struct mu_device_handle {
	int index;
	int multiprocessors;
	int capability; /* 10 * major + minor */
	size_t shared_bytes; /* shared memory that one block may ask for */
};

extern const mu_device_table mu_device_cuda;

/* what: "a copy of 3.0 MiB". MURAL_OK for cudaSuccess; memory that ran out is MURAL_OUT_OF_MEMORY. */
mural_status mu_cuda_said(cudaError_t said, const char *what, mural_error *err);

/* Driver, card, code: see mu_cuda_module in kernels/cuda.h. */
mural_status mu_cuda_check(mural_error *err);

#ifdef __cplusplus
}
#endif

#endif
