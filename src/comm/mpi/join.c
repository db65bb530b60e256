/* Which ways to the other ranks this MPI library has.
 *
 * Open MPI 4 ends the whole process inside MPI_Init when it finds no server to ask for the other ranks, as under
 * `srun --mpi=none`; version 5, which knows PMIx only, goes on alone with remarks of its own, and MPICH silently. So Open MPI is not
 * even started then. Of version 4 the plugins are looked at: pmix_s1 and pmix_s2 speak Slurm's own protocols and are there
 * if the site built them; the others need PMIx.
 * SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/mpi/inside.h"

#ifdef OPEN_MPI
enum { OPEN_MPI_VERSION = OMPI_MAJOR_VERSION };
#else
enum { OPEN_MPI_VERSION = 0 }; /* whose plugins may lie beside this library all the same */
#endif

/* Plugins that match. They lie in openmpi/ beside the library, in Debian in openmpi/lib/openmpi3/. */
static size_t count(const char *folder, const char *pattern)
{
	static const char *const below[] = {"openmpi*", "openmpi*/lib/openmpi*"};
	char path[4096];
	size_t n = 0;
	for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
		glob_t found = {0};
		snprintf(path, sizeof path, "%s/%s/%s", folder, below[i], pattern);
		n += glob(path, 0, NULL, &found) == 0 ? found.gl_pathc : 0;
		globfree(&found);
	}
	return n;
}

bool mu_mpi_needs_pmix(void)
{
	Dl_info library;
	if (OPEN_MPI_VERSION >= 5)
		return true;
	if (OPEN_MPI_VERSION == 0 || !dladdr((void *)(intptr_t)MPI_Init_thread, &library) || !library.dli_fname)
		return false;
	char *path = realpath(library.dli_fname, NULL);
	char *slash = path ? strrchr(path, '/') : NULL;
	bool needs = false;
	if (slash) {
		*slash = '\0';
		needs = count(path, "mca_pmix_*.so") > 0 && count(path, "mca_pmix_s[12].so") == 0;
	}
	free(path);
	return needs;
}
