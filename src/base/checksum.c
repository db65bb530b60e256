/* XXH64: four lanes take eight bytes each of every 32, so that their multiplications overlap; the rest is folded in at the end.
 * SPDX-License-Identifier: MIT */
#include "base/checksum.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PIECE ((size_t)1 << 20) /* bytes read at once */

static const uint64_t P1 = 0x9E3779B185EBCA87u, P2 = 0xC2B2AE3D27D4EB4Fu, P3 = 0x165667B19E3779F9u,
                      P4 = 0x85EBCA77C2B2AE63u, P5 = 0x27D4EB2F165667C5u;

static uint64_t rotate(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

/* The format is little-endian. */
static uint64_t word64(const unsigned char *at)
{
	uint64_t value;
	memcpy(&value, at, sizeof value);
	return le64toh(value);
}

static uint32_t word32(const unsigned char *at)
{
	uint32_t value;
	memcpy(&value, at, sizeof value);
	return le32toh(value);
}

static uint64_t mix(uint64_t lane, uint64_t input)
{
	return rotate(lane + input * P2, 31) * P1;
}

static void take_block(uint64_t lanes[4], const unsigned char *at)
{
	for (int i = 0; i < 4; i++)
		lanes[i] = mix(lanes[i], word64(at + 8 * i));
}

void mu_checksum_init(mu_checksum *sum)
{
	*sum = (mu_checksum){.lanes = {P1 + P2, P2, 0, 0 - P1}};
}

void mu_checksum_add(mu_checksum *sum, const void *bytes, size_t n)
{
	const unsigned char *at = bytes;
	size_t held = sum->total % 32;
	sum->total += n;
	if (held) {
		size_t take = n < 32 - held ? n : 32 - held;
		memcpy(sum->rest + held, at, take);
		at += take;
		n -= take;
		if (held + take < 32)
			return;
		take_block(sum->lanes, sum->rest);
	}
	for (; n >= 32; at += 32, n -= 32)
		take_block(sum->lanes, at);
	if (n)
		memcpy(sum->rest, at, n);
}

static uint64_t join(const uint64_t lanes[4])
{
	uint64_t h = rotate(lanes[0], 1) + rotate(lanes[1], 7) + rotate(lanes[2], 12) + rotate(lanes[3], 18);
	for (int i = 0; i < 4; i++)
		h = (h ^ mix(0, lanes[i])) * P1 + P4;
	return h;
}

uint64_t mu_checksum_value(const mu_checksum *sum)
{
	const unsigned char *at = sum->rest;
	size_t left = sum->total % 32;
	uint64_t h = (sum->total >= 32 ? join(sum->lanes) : P5) + sum->total;
	for (; left >= 8; at += 8, left -= 8)
		h = rotate(h ^ mix(0, word64(at)), 27) * P1 + P4;
	if (left >= 4) {
		h = rotate(h ^ word32(at) * P1, 23) * P2 + P3;
		at += 4;
		left -= 4;
	}
	for (; left > 0; at++, left--)
		h = rotate(h ^ *at * P5, 11) * P1;
	h = (h ^ h >> 33) * P2;
	h = (h ^ h >> 29) * P3;
	return h ^ h >> 32;
}

uint64_t mu_checksum_of(const void *bytes, size_t n)
{
	mu_checksum sum;
	mu_checksum_init(&sum);
	mu_checksum_add(&sum, bytes, n);
	return mu_checksum_value(&sum);
}

static mural_status read_through(int fd, const char *path, unsigned char *piece, mu_checksum *sum, mural_error *err)
{
	for (;;) {
		ssize_t n = read(fd, piece, PIECE);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return mu_fail(err, MURAL_FAILED, path, "cannot read the file: %s", strerror(errno));
		if (n == 0)
			return MURAL_OK;
		mu_checksum_add(sum, piece, (size_t)n);
	}
}

mural_status mu_checksum_file(const char *path, uint64_t *bytes, uint64_t *value, mural_error *err)
{
	mu_checksum sum;
	mu_checksum_init(&sum);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return mu_fail(err, errno == ENOENT || errno == ENOTDIR ? MURAL_DATA : MURAL_FAILED, path,
		               "cannot open the file: %s", strerror(errno));
	unsigned char *piece = malloc(PIECE);
	mural_status status = piece ? read_through(fd, path, piece, &sum, err)
	                            : mu_fail(err, MURAL_OUT_OF_MEMORY, path, "no memory to read the file");
	free(piece);
	close(fd);
	*bytes = sum.total;
	*value = mu_checksum_value(&sum);
	return status;
}
