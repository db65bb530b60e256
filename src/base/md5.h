/* MD5 of a file: what data sets publish to check a download. Against accidents only, not against attackers (RFC 6151).
 * SPDX-License-Identifier: MIT */
#ifndef MU_BASE_MD5_H
#define MU_BASE_MD5_H

#include <stddef.h>
#include <stdint.h>

#include "base/fail.h"

typedef struct mu_md5 {
	uint32_t state[4];
	uint32_t sine[64]; /* the RFC's table */
	uint64_t bytes;
	uint8_t block[64];
} mu_md5;

void mu_md5_init(mu_md5 *md5);
void mu_md5_add(mu_md5 *md5, const void *bytes, size_t n);
/* 32 hexadecimal digits and a NUL. */
void mu_md5_finish(mu_md5 *md5, char hex[33]);

/* MURAL_FAILED when the file cannot be read. */
mural_status mu_md5_file(const char *path, char hex[33], mural_error *err);

#endif
