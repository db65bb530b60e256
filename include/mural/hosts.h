/* The machines that ranks are started on: DeepSpeed's host file and its filters.
 *
 *     # NAME slots=COUNT, one host per line: as many ranks, or as many cards, as it has slots
 *     c1 slots=4
 *     c2 slots=2
 *
 *     mural_hosts *hosts = NULL;
 *     const mural_hosts_choice choice = {.file = "hosts", .include = "c1:0,2@c2"};
 *     if (mural_hosts_open(&hosts, &choice, &err)) ...
 *     mural_hosts_ranks(hosts);   // 4: ranks 0 and 1 on c1 with its slots 0 and 2, ranks 2 and 3 on c2
 *
 * Ranks follow the order of the file, whatever the order in a filter, and within a host that of the slots.
 *
 * SPDX-License-Identifier: MIT */
#ifndef MURAL_HOSTS_H
#define MURAL_HOSTS_H

#include <stddef.h>

#include "mural/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mural_hosts mural_hosts;

#define MURAL_HOSTS_MOST 4096
#define MURAL_HOST_SLOTS 1024

typedef struct mural_host {
	char name[254]; /* letters, digits, ".", "-", "_" */
	int line; /* of the file, from 1; 0 without a file */
	int n_slots; /* at least 1 */
	short slots[MURAL_HOST_SLOTS]; /* ascending numbers, from 0 */
} mural_host;

/* Zero-initialise. Strings are borrowed for the call. */
typedef struct mural_hosts_choice {
	const char *file; /* NULL: this machine alone, as "localhost" with a slot for each of its cores */
	const char *include; /* "c1@c2:0,2": these hosts, or these of their slots; NULL = all */
	const char *exclude; /* the same form: not these; NULL = none */
	int nodes; /* the first so many hosts; 0 = all; not together with a filter */
	int slots_per_node; /* the first so many slots of each; 0 = all; not together with a filter */
	int ranks; /* the first so many slots of what is left; 0 = all */
} mural_hosts_choice;

/* MURAL_USAGE, with file:line or the argument (--include ...): a file that is missing, malformed or empty, a host that
 * stands twice, a filter that names an unknown host or slot or leaves nothing, more ranks than slots. On failure *hosts is NULL. */
MURAL_API mural_status mural_hosts_open(mural_hosts **hosts, const mural_hosts_choice *choice, mural_error *err);

/* NULL is fine. */
MURAL_API void mural_hosts_free(mural_hosts *hosts);

MURAL_API size_t mural_hosts_count(const mural_hosts *hosts);

/* Borrowed; lives as long as hosts. i < count. */
MURAL_API const mural_host *mural_hosts_get(const mural_hosts *hosts, size_t i);

/* Slots of all hosts together. */
MURAL_API int mural_hosts_ranks(const mural_hosts *hosts);

/* The file as it was given; NULL without one. */
MURAL_API const char *mural_hosts_file(const mural_hosts *hosts);

#ifdef __cplusplus
}
#endif
#endif
