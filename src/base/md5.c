/* MD5 as RFC 1321 defines it. SPDX-License-Identifier: MIT */
#include "base/md5.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static uint32_t turn_left(uint32_t x, unsigned bits)
{
	return x << bits | x >> (32 - bits);
}

/* Step i of round i / 16: the mixing function and the word of the block that it takes. */
static uint32_t mix(unsigned i, uint32_t b, uint32_t c, uint32_t d, unsigned *word)
{
	switch (i / 16) {
	case 0: *word = i; return (b & c) | (~b & d);
	case 1: *word = (5 * i + 1) % 16; return (b & d) | (c & ~d);
	case 2: *word = (3 * i + 5) % 16; return b ^ c ^ d;
	default: *word = 7 * i % 16; return c ^ (b | ~d);
	}
}

static void add_block(mu_md5 *md5)
{
	static const uint8_t turns[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
	const uint8_t *block = md5->block;
	uint32_t *state = md5->state;
	uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
	for (unsigned i = 0; i < 64; i++) {
		unsigned word;
		uint32_t mixed = mix(i, b, c, d, &word);
		const uint8_t *m = block + 4 * word;
		uint32_t value = m[0] | (uint32_t)m[1] << 8 | (uint32_t)m[2] << 16 | (uint32_t)m[3] << 24;
		uint32_t next = b + turn_left(a + mixed + value + md5->sine[i], turns[i / 16][i % 4]);
		a = d;
		d = c;
		c = b;
		b = next;
	}
	state[0] += a;
	state[1] += b;
	state[2] += c;
	state[3] += d;
}

void mu_md5_init(mu_md5 *md5)
{
	*md5 = (mu_md5){.state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476}};
	for (unsigned i = 0; i < 64; i++)
		md5->sine[i] = (uint32_t)(fabs(sin(i + 1.0)) * 4294967296.0);
}

void mu_md5_add(mu_md5 *md5, const void *bytes, size_t n)
{
	const uint8_t *from = bytes;
	for (; n > 0; n--) {
		md5->block[md5->bytes++ % 64] = *from++;
		if (md5->bytes % 64 == 0)
			add_block(md5);
	}
}

void mu_md5_finish(mu_md5 *md5, char hex[33])
{
	uint64_t bits = md5->bytes * 8;
	mu_md5_add(md5, "\x80", 1);
	while (md5->bytes % 64 != 56)
		mu_md5_add(md5, "", 1);
	for (unsigned i = 0; i < 8; i++)
		mu_md5_add(md5, &(uint8_t){(uint8_t)(bits >> 8 * i)}, 1);
	for (unsigned i = 0; i < 16; i++)
		snprintf(hex + 2 * i, 3, "%02x", md5->state[i / 4] >> i % 4 * 8 & 255);
}

mural_status mu_md5_file(const char *path, char hex[33], mural_error *err)
{
	FILE *in = fopen(path, "rbe");
	if (!in)
		return mu_fail(err, MURAL_FAILED, path, "cannot open the file: %s", strerror(errno));
	uint8_t bytes[65536];
	size_t n;
	mu_md5 md5;
	mu_md5_init(&md5);
	while ((n = fread(bytes, 1, sizeof bytes, in)) > 0)
		mu_md5_add(&md5, bytes, n);
	mural_status status = MURAL_OK;
	if (ferror(in))
		status = mu_fail(err, MURAL_FAILED, path, "cannot read the file: %s", strerror(errno));
	fclose(in);
	mu_md5_finish(&md5, hex);
	return status;
}
