/* Reads ZIP archives: what PyTorch's and NumPy's weight files are made of.
 *
 * Opening reads the table at the end of the file and the short header in front of each member, and checks everything they
 * promise: offsets and sizes against the file, both names of a member against each other, that no two members share a byte,
 * and that a deflated member claims no more than deflate can yield. So later reads can trust the table. Archives of
 * several disks and encrypted members are refused; ZIP64 is read.
 *
 * Bytes are read on demand: any part of a stored member, deflated ones from the front.
 * Source: PKWARE's APPNOTE 6.3.
 * SPDX-License-Identifier: MIT */
#ifndef MU_WEIGHTS_ZIP_H
#define MU_WEIGHTS_ZIP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fail.h"

typedef struct mu_zip_member {
	char *name;
	bool deflated; /* else stored */
	uint32_t crc;
	uint64_t begin, packed, bytes; /* in the file; there; unpacked */
} mu_zip_member;

typedef struct mu_zip {
	char *path;
	int fd;
	uint64_t file_bytes;
	mu_zip_member *members; /* [n] by name */
	size_t n;
} mu_zip;

/* MURAL_DATA with path and place for anything that is not a whole archive. Release in every case. */
mural_status mu_zip_open(mu_zip *zip, const char *path, mural_error *err);
void mu_zip_release(mu_zip *zip);

/* NULL if there is none. */
const mu_zip_member *mu_zip_find(const mu_zip *zip, const char *name);

/* Bytes [offset, offset + n) of a stored member. A read of all of it compares the checksum. */
mural_status mu_zip_read(const mu_zip *zip, const mu_zip_member *member, uint64_t offset, void *to, size_t n,
                         mural_error *err);

/* The first n bytes of any member: all of them compare the checksum, too. */
mural_status mu_zip_read_front(const mu_zip *zip, const mu_zip_member *member, void *to, size_t n, mural_error *err);

#endif
