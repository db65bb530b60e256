/* What Linux says about this process and its host, read from /proc and /sys.
 *
 * Every reader leaves a missing answer as it is named below and never fails: these numbers inform, nothing depends on
 * them.
 * SPDX-License-Identifier: MIT */
#ifndef MU_BASE_PROC_H
#define MU_BASE_PROC_H

#include <stdbool.h>
#include <stddef.h>

/* The value of the first line "key : value" of a file such as /proc/cpuinfo. false: no such line, `value` untouched. */
bool mu_proc_text(const char *path, const char *key, char *value, size_t size);

/* A line "key: 123 kB" of such a file in bytes; 0 when there is none. */
size_t mu_proc_bytes(const char *path, const char *key);

/* The processor's name, "unknown processor" when the system does not tell. */
void mu_proc_processor(char *name, size_t size);

#endif
