/* Files: whole or not at all.
 *
 * A file appears under its name only when it is complete: it is written beside, synced, renamed, and the folder is
 * synced. A crash leaves the old file or the new one, and at worst a leftover "NAME.PID-N.part".
 *
 *     mu_file file = {0};
 *     MU_TRY(mu_file_begin(&file, path, err));
 *     fprintf(file.out, ...);
 *     MU_TRY(mu_file_commit(&file, err));      or mu_file_abandon(&file)
 *
 * Large contents go through mu_file_put, which keeps their checksum and has the system write early: so the sync at the end has little
 * left to do, and a disk's speed shows from the first second on. Contents that lie in memory as they will on the disk go through
 * mu_file_put_pages, which costs the processor next to nothing.
 *
 * A path that names a device or a pipe (/dev/stdout) is written directly, since it cannot be replaced. A symbolic link
 * stays a link: the file it points to is replaced.
 * SPDX-License-Identifier: MIT */
#ifndef MU_BASE_FILES_H
#define MU_BASE_FILES_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/checksum.h"
#include "base/fail.h"

#define MU_FILE_PAGE ((size_t)4096) /* bytes; no disk asks for a larger alignment */

typedef struct mu_file {
	FILE *out; /* write here; NULL when nothing is open */
	char path[PATH_MAX]; /* final name */
	char beside[PATH_MAX]; /* name until commit; "" when written directly */
	uint64_t put, pushed; /* bytes that went through mu_file_put; that the system was told to write */
	mu_checksum_run sum; /* of them, in pieces of MU_CHECKSUM_PIECE */
} mu_file;

/* Makes the folders on the way, too. MURAL_FAILED says what the system refused; nothing is open then. */
mural_status mu_file_begin(mu_file *file, const char *path, mural_error *err);
/* Writes `n` bytes. Leaves with MURAL_STOPPED soon after *stop becomes true (NULL: never). The caller abandons the file after a
 * failure. */
mural_status mu_file_put(mu_file *file, const void *bytes, size_t n, const atomic_bool *stop, mural_error *err);
/* The same for a file that nothing else is written to, without a checksum. bytes: at a multiple of MU_FILE_PAGE, and n one as well but in
 * the last call. Where the file system allows it (O_DIRECT), the disk reads them from there itself: nothing is copied into the page
 * cache, where it would push out other people's files; elsewhere they are written plainly. They must not change meanwhile. */
mural_status mu_file_put_pages(mu_file *file, const void *bytes, size_t n, const atomic_bool *stop, mural_error *err);
/* Closes in every case. On failure (a full disk shows here) the unfinished file is removed, an older one stays. */
mural_status mu_file_commit(mu_file *file, mural_error *err);
/* Closes and removes what was written; does nothing after a commit or on an all-zero struct. */
void mu_file_abandon(mu_file *file);

/* A folder and those above it. An existing one is fine; several processes may do it at once. */
mural_status mu_make_folders(const char *path, mural_error *err);

/* Do both name the same existing file or folder? */
bool mu_same_place(const char *a, const char *b);

/* Brings the folder that holds `path` to the disk, and with it names that were given or taken away there. Folders that
 * cannot be synced (some network file systems) are left to the system. */
void mu_sync_folder_of(const char *path);

/* open() for reading that does not wait for the writer of a pipe, which may never come: without one it is an empty file. -1 and errno as
 * open(). */
int mu_open_to_read(const char *path);

/* The whole file with a NUL behind it, which *bytes does not count; the caller frees *text. A file that is missing,
 * unreadable, a folder, or larger than `limit` bytes fails with `kind`: MURAL_USAGE for a configuration, MURAL_DATA for
 * data. A pipe is read as well; only a configuration waits for its writer. what: "configuration file", for the message. */
mural_status mu_file_read(const char *path, const char *what, size_t limit, mural_status kind, char **text,
                          size_t *bytes, mural_error *err);

#endif
