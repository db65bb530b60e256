/* The CUDA module: operations and devices for NVIDIA cards, in a shared object that is opened when it is asked for
 * (base/module.h says how it is found). Nothing else in Mural knows CUDA, and libmural does not link it.
 *
 *     const mu_ops *ops;
 *     if (mu_cuda_ops(&ops, err) == MURAL_OK)
 *             mu_device_open(&device, ops->device, 0, err);
 *
 * SPDX-License-Identifier: MIT */
#ifndef MU_KERNELS_CUDA_H
#define MU_KERNELS_CUDA_H

#include "kernels/ops.h"

#define MU_CUDA_MODULE_SYMBOL "mu_cuda_module_entry"

/* What the module exports. */
typedef struct mu_cuda_module {
	const char *build_id; /* stays first */
	const mu_ops *ops; /* with the device table in it */
	/* Is there a driver that is new enough, and a card that this build has code for? Opens nothing. */
	mural_status (*check)(mural_error *err);
	/* "NVIDIA H200 (9.0), 139.8 GiB; driver 13.0, runtime 13.0, cuBLASLt 13.0.2"; only after a check that went well. */
	void (*describe)(char *text, size_t size);
} mu_cuda_module;

/* Loads the module and checks the machine. MURAL_FAILED says why no GPU is used and what to do: no module, no driver,
 * driver too old, no card, a card too old. On failure *module is NULL. */
mural_status mu_cuda_load(const mu_cuda_module **module, mural_error *err);

/* The same for those who want operations only. */
mural_status mu_cuda_ops(const mu_ops **ops, mural_error *err);

#endif
