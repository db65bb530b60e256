/* Modules: shared objects that need a library which may be absent, so they are opened when they are asked for.
 *
 * A module exports one symbol, a struct whose first member is the build id that it was compiled with:
 *
 *     typedef struct entry {
 *             const char *build_id;     stays first, so that any version can be read
 *             ...tables...
 *     } entry;
 *
 * It is looked for in the folders of MURAL_MODULE_PATH (separated by colons), then beside the program or libmural
 * (`mural/` and `../lib/mural/`), then where Mural was installed. The first file found is the one: if it does not load
 * or was built for another Mural, that is an error, never a reason to look further.
 * SPDX-License-Identifier: MIT */
#ifndef MU_BASE_MODULE_H
#define MU_BASE_MODULE_H

#include "base/fail.h"

typedef struct mu_module_kind {
	const char *file; /* "mural_comm_mpi.so" */
	const char *symbol; /* "mu_comm_module_entry" */
	const char *name; /* "MPI": goes into messages */
	const char *needed; /* who needs it: "more than one rank needs MPI" */
	const char *build; /* how to get it: "build Mural with MPI (Debian: libopenmpi-dev)" */
	const char *driver; /* NULL, or a library without which the module is not opened: "libcuda.so.1" */
	const char *no_driver; /* what is said then */
	bool global; /* its libraries' symbols become visible to everyone: Open MPI's plugins expect that */
} mu_module_kind;

/* The entry, which stays valid until the process ends. MURAL_FAILED says which folders were looked in, or what the
 * loader said; on failure *entry is NULL. */
mural_status mu_module_load(const mu_module_kind *kind, const void **entry, mural_error *err);

#endif
