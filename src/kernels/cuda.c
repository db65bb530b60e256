/* Opening the CUDA module. SPDX-License-Identifier: MIT */
#include "kernels/cuda.h"

#include "base/module.h"

mural_status mu_cuda_load(const mu_cuda_module **module, mural_error *err)
{
	/* With the module comes cuBLASLt, 145 MiB in every process: not where there is no driver. */
	static const mu_module_kind kind = {.file = "mural_cuda.so",
	                                    .symbol = MU_CUDA_MODULE_SYMBOL,
	                                    .name = "CUDA",
	                                    .needed = "a GPU needs CUDA",
	                                    .build = "build Mural where nvcc is",
	                                    .driver = "libcuda.so.1",
	                                    .no_driver = "no NVIDIA driver is loaded on this machine"};
	const void *entry;
	*module = NULL;
	MU_TRY(mu_module_load(&kind, &entry, err));
	const mu_cuda_module *found = entry;
	MU_TRY(found->check(err));
	*module = found;
	return MURAL_OK;
}

mural_status mu_cuda_ops(const mu_ops **ops, mural_error *err)
{
	const mu_cuda_module *module;
	const mural_status status = mu_cuda_load(&module, err);
	*ops = status == MURAL_OK ? module->ops : NULL;
	return status;
}
