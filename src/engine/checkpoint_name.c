/* A complete set gets its name, and `latest` and `best` name it. SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/files.h"
#include "engine/checkpoint.h"

/* Two folders trade places: in one move, or in two where the file system cannot (NFS). */
static bool trade(const char *part, const char *set)
{
	char aside[MU_CHECKPOINT_FILE];
	if (renameat2(AT_FDCWD, part, AT_FDCWD, set, RENAME_EXCHANGE) == 0)
		return true;
	snprintf(aside, sizeof aside, "%s.old.part", set);
	return rename(set, aside) == 0 && rename(part, set) == 0 && rename(aside, part) == 0;
}

/* The complete set gets its name. There may be one already, when the run went back and came here again. */
static mural_status give_name(const char *part, const char *set, mural_error *err)
{
	bool done = rename(part, set) == 0;
	if (!done && (errno == EEXIST || errno == ENOTEMPTY)) {
		done = trade(part, set);
		if (done)
			mu_checkpoint_remove(part);
	}
	if (!done)
		return mu_fail(err, MURAL_FAILED, set, "the checkpoint cannot get its name: %s", strerror(errno));
	mu_sync_folder_of(set);
	return MURAL_OK;
}

mural_status mu_checkpoint_point_to(const char *run_dir, const char *which, uint64_t step, mural_error *err)
{
	char set[MURAL_CHECKPOINT_PATH], path[MU_CHECKPOINT_FILE];
	mu_file file = {0};
	MU_TRY(mu_checkpoint_path(set, run_dir, step, err));
	const char *name = strrchr(set, '/') + 1;
	snprintf(path, sizeof path, "%.*s%s", (int)(name - set), set, which);
	MU_TRY(mu_file_begin(&file, path, err));
	fprintf(file.out, "%s\n", name);
	return mu_file_commit(&file, err);
}

mural_status mu_checkpoint_publish(const char *part, const char *set, const char *run_dir, uint64_t step, uint64_t best,
                                   mural_error *err)
{
	MU_TRY(give_name(part, set, err));
	MU_TRY(mu_checkpoint_point_to(run_dir, "latest", step, err));
	return best ? mu_checkpoint_point_to(run_dir, "best", best, err) : MURAL_OK;
}
