/* Modules: collectives tables that need a library which may be absent, so they are opened when they are asked for.
 *
 * A module is a shared object that exports one symbol, MU_COMM_MODULE_SYMBOL, of type mu_comm_module. It is looked for in
 * the folders of MURAL_MODULE_PATH (separated by colons), then beside the program or libmural (`mural/` and
 * `../lib/mural/`), then where Mural was installed. The first file found is the one: if it does not load or was built
 * for another Mural, that is an error, never a reason to look further.
 * SPDX-License-Identifier: MIT */
#ifndef MU_COMM_MODULE_H
#define MU_COMM_MODULE_H

#include "comm/comm.h"

#define MU_COMM_MODULE_SYMBOL "mu_comm_module_entry"

typedef struct mu_comm_module {
	const char *build_id; /* MU_BUILD_ID it was compiled with; stays first, so that any version can be read */
	const char *flavour; /* "openmpi", "mpich": MPI libraries do not understand each other */
	const mu_comm_table *table;
	void (*library)(char *text, size_t size); /* "Open MPI 4.1.4", asked without starting it */
} mu_comm_module;

/* file: "mural_comm_mpi.so". The module stays open until the process ends. MURAL_FAILED says which folders were looked
 * in, or what the loader said; on failure *module is NULL. */
mural_status mu_comm_module_load(const char *file, const mu_comm_module **module, mural_error *err);

#endif
