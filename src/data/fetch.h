/* Fetching a data set: curl and tar do the work as child processes, a checksum decides. SPDX-License-Identifier: MIT */
#ifndef MU_DATA_FETCH_H
#define MU_DATA_FETCH_H

#include "base/fail.h"
#include "mural/data.h"

#define MU_FETCH_FILES 4

/* Where a set comes from and what it becomes. */
typedef struct mu_fetch_set {
	const char *name;
	mural_data_format format;
	const char *source; /* URL of the folder with the files */
	struct {
		const char *name, *md5;
	} files[MU_FETCH_FILES];
	bool archive; /* the one file is a tar.gz with `folder` inside */
	const char *folder; /* below the target */
} mu_fetch_set;

/* As mural_data_fetch does with the sets that it knows. */
mural_status mu_fetch_run(const mu_fetch_set *set, const char *target, bool progress, char *folder, size_t folder_bytes,
                          mural_error *err);

#endif
