/* How library code reports a failure: return mu_fail(...) where it happens, MU_TRY on the way up.
 *
 * err may be NULL (the caller does not want the words). The first failure stays: a second mu_fail on the same
 * mural_error changes nothing and returns the first status.
 * SPDX-License-Identifier: MIT */
#ifndef MU_BASE_FAIL_H
#define MU_BASE_FAIL_H

#include "mural/error.h"

#if defined(__GNUC__)
#define MU_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define MU_PRINTF(f, a)
#endif

/* where: "run.json:14:3: key", "data.gz:16", "argument --ranks", or NULL. */
MU_PRINTF(4, 5)
mural_status mu_fail(mural_error *err, mural_status status, const char *where, const char *format, ...);

#ifdef __clang_analyzer__
/* Static analysis reads one file at a time and has to be told that a failure is never MURAL_OK. */
#define mu_fail(err, status, ...) ((void)mu_fail(err, status, __VA_ARGS__), (status))
#endif

/* Adds one line of context to a failure already there; does nothing on success. */
MU_PRINTF(2, 3) void mu_context(mural_error *err, const char *format, ...);

/* An impossible state: place, version and "please report". */
mural_status mu_bug_at(mural_error *err, const char *file, int line, const char *what);
#ifdef __clang_analyzer__
#define mu_bug(err, what) ((void)mu_bug_at(err, __FILE__, __LINE__, what), MURAL_BUG)
#else
#define mu_bug(err, what) mu_bug_at(err, __FILE__, __LINE__, what)
#endif

#define MU_TRY(call)                                  \
	do {                                          \
		mural_status mu_try_status_ = (call); \
		if (mu_try_status_ != MURAL_OK)       \
			return mu_try_status_;        \
	} while (0)

/* For functions with one `out:` label: keeps the status in `status` and jumps. */
#define MU_TRY_OUT(call)                \
	do {                            \
		status = (call);        \
		if (status != MURAL_OK) \
			goto out;       \
	} while (0)

/* "31.2 GiB" in one of a few rotating thread-local buffers: for one message, not to be kept. */
const char *mu_size_text(unsigned long long bytes);
#define MU_SIZE(bytes) mu_size_text((unsigned long long)(bytes))

#endif
