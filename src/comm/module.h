/* The collectives module: a collectives table that needs MPI, opened when it is asked for (base/module.h says how it is
 * found). SPDX-License-Identifier: MIT */
#ifndef MU_COMM_MODULE_H
#define MU_COMM_MODULE_H

#include "comm/comm.h"

typedef struct mu_comm_module {
	const char *build_id; /* MU_BUILD_ID it was compiled with; stays first, so that any version can be read */
	const char *flavour; /* "openmpi", "mpich": MPI libraries do not understand each other */
	const mu_comm_table *table;
	void (*library)(char *text, size_t size); /* "Open MPI 4.1.4", asked without starting it */
	bool (*needs_pmix)(void); /* cannot find the other ranks without PMIx, and would say so in its own words */
} mu_comm_module;

/* file: "mural_comm_mpi.so". The module stays open until the process ends; on failure *module is NULL. */
mural_status mu_comm_module_load(const char *file, const mu_comm_module **module, mural_error *err);

#endif
