/* A checksum of bytes and of files: XXH64 with seed 0, as `xxhsum -H64` computes it.
 *
 * It finds damage (a flipped bit, a torn write), not malice. It was chosen over a CRC because plain C computes it about as fast as
 * memory delivers, so that a checkpoint is written and verified at the disk's speed.
 * Yann Collet, "xxHash fast digest algorithm", specification 0.1.1.
 * SPDX-License-Identifier: MIT */
#ifndef MU_BASE_CHECKSUM_H
#define MU_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

#include "base/fail.h"

/* Of bytes that come in pieces. */
typedef struct mu_checksum {
	uint64_t lanes[4];
	uint64_t total; /* bytes so far */
	unsigned char rest[32]; /* the last total % 32 of them */
} mu_checksum;

void mu_checksum_init(mu_checksum *sum);
void mu_checksum_add(mu_checksum *sum, const void *bytes, size_t n);
/* Copies n bytes and adds them, in little more than the time of the copy: large copies of what is not soon read there. */
void mu_checksum_copy(mu_checksum *sum, void *to, const void *from, size_t n);
/* Of everything added so far; more may be added afterwards. */
uint64_t mu_checksum_value(const mu_checksum *sum);

uint64_t mu_checksum_of(const void *bytes, size_t n);

/* The checksum of pieces: of a file cut into pieces of one size (the last may be shorter), so that many threads can sum them up. It is
 * the checksum of the pieces' checksums in their order, eight bytes each, the most significant first: the digits that xxhsum prints. */
#define MU_CHECKSUM_PIECE ((uint64_t)1 << 20) /* bytes; what this version writes */
uint64_t mu_checksum_of_pieces(const uint64_t *pieces, size_t n);

/* The same of bytes that come one after the other. */
typedef struct mu_checksum_run {
	uint64_t piece; /* bytes; 0: the bytes are not cut, and their own checksum is the value */
	mu_checksum now, pieces; /* of the piece under way; of those before it */
} mu_checksum_run;

void mu_checksum_run_init(mu_checksum_run *run, uint64_t piece);
void mu_checksum_run_add(mu_checksum_run *run, const void *bytes, size_t n);
uint64_t mu_checksum_run_value(const mu_checksum_run *run);

/* Size and checksum of a file, cut into pieces or (0) not. MURAL_DATA when it is not there, MURAL_FAILED when it cannot be read. */
mural_status mu_checksum_file(const char *path, uint64_t piece, uint64_t *bytes, uint64_t *value, mural_error *err);

#endif
