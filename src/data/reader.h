/* The bytes of a file, plain or gzip, front to back, with the place of every fault.
 *
 * The content decides, not the name: what starts with 1f 8b is gzip (RFC 1952, several members allowed). Gzip's length
 * and checksum are checked when the end is reached, so a caller that wants to know reads until nothing comes. Nothing
 * is produced beyond what is asked for: a file that would inflate to terabytes costs what the caller reads of it.
 * SPDX-License-Identifier: MIT */
#ifndef MU_DATA_READER_H
#define MU_DATA_READER_H

#include <stdint.h>

#include "base/fail.h"

typedef struct mu_reader mu_reader;

/* MURAL_DATA for what is missing, forbidden or not a regular file. path is copied. */
mural_status mu_reader_create(mu_reader **reader, const char *path, mural_error *err);
void mu_reader_free(mu_reader *reader); /* NULL is fine */

/* Fills `into`; *got < bytes only at the end of the content. MURAL_DATA for damaged or cut gzip, MURAL_FAILED when the
 * system cannot read. */
mural_status mu_reader_read(mu_reader *reader, void *into, size_t bytes, size_t *got, mural_error *err);

/* The most bytes of content that the file can hold: deflate packs at most 1032 to one. */
uint64_t mu_reader_limit(const mu_reader *reader);

/* "path:byte" of the content, for messages, in one buffer of the reader: valid until the next call. */
const char *mu_reader_where(mu_reader *reader, uint64_t byte);

#endif
