/* What went wrong, in words for the person who has to mend it.
 *
 * Every call that can fail returns a mural_status and fills the mural_error that the caller passes. The first error
 * stays; calls on the way up only add lines of context. The library never prints and never exits.
 *
 *     mural_error err = {0};
 *     if (mural_config_create(&config, &sources, &err)) {
 *             mural_error_print(&err, stderr);
 *             return mural_exit_code(err.status);
 *     }
 *
 * SPDX-License-Identifier: MIT */
#ifndef MURAL_ERROR_H
#define MURAL_ERROR_H

#include <stdbool.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define MURAL_API __attribute__((visibility("default")))
#else
#define MURAL_API
#endif

/* Kinds of failure, by who can mend them. X(name, exit code, text). */
#define MURAL_STATUS_LIST(X)                                                                              \
	X(MURAL_OK, 0, "done")                                                                            \
	X(MURAL_FAILED, 1, "failed while running") /* the world's: disk, peer, library */                 \
	X(MURAL_OUT_OF_MEMORY, 1, "out of memory") /* the plan does not fit, or an allocation failed */   \
	X(MURAL_PEER, 1, "another rank failed") /* this rank is fine and leaves with the others */        \
	X(MURAL_BUG, 1, "bug in Mural") /* ours: please report */                                         \
	X(MURAL_USAGE, 2, "wrong usage or configuration") /* the user's: arguments, configuration file */ \
	X(MURAL_DATA, 3, "wrong data") /* the user's: data set, weights */                                \
	X(MURAL_STOPPED, 4, "stopped on request") /* with a checkpoint written */

typedef enum mural_status {
#define MURAL_X(name, code, text) name,
	MURAL_STATUS_LIST(MURAL_X)
#undef MURAL_X
} mural_status;

/* Zero-initialise. Texts are cut, never overrun. */
typedef struct mural_error {
	mural_status status;
	int rank; /* rank that failed, valid when has_rank */
	bool has_rank;
	mural_status cause; /* status MURAL_PEER: what that rank failed with; exit codes are the same on all ranks */
	char message[1024]; /* one sentence, lower case, no full stop */
	char where[768]; /* file:line:key, path:byte, argument; "" if none; may hold several lines */
	char context[1024]; /* lines added on the way up; "" if none */
} mural_error;

/* 0 done, 1 failed while running, 2 wrong usage or configuration, 3 wrong data, 4 stopped on request. */
MURAL_API int mural_exit_code(mural_status status);

/* "wrong data", ...; never NULL. */
MURAL_API const char *mural_status_text(mural_status status);

/* Prints "mural: message" and, indented, where and context. */
MURAL_API void mural_error_print(const mural_error *err, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
