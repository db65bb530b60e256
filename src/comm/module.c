/* Opening the MPI module. SPDX-License-Identifier: MIT */
#include "comm/module.h"

#include "base/module.h"

mural_status mu_comm_module_load(const char *file, const mu_comm_module **module, mural_error *err)
{
	const mu_module_kind kind = {
	        .file = file,
	        .symbol = "mu_comm_module_entry",
	        .name = "MPI",
	        .needed = "more than one rank needs MPI",
	        .build = "install the package mural-mpi, or build Mural with MPI (Debian: libopenmpi-dev)",
	        .global = true};
	const void *entry;
	const mural_status status = mu_module_load(&kind, &entry, err);
	*module = entry;
	return status;
}
