/* Small ZIP archives. SPDX-License-Identifier: MIT */
#include "support/archive.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define LOCAL 30
#define ENTRY 46
#define END 22

void test_put(char **at, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		*(*at)++ = (char)(value >> 8 * i & 0xff);
}

static size_t pack(const test_member *m, char *to, size_t room)
{
	z_stream stream = {
	        .next_in = (Bytef *)m->bytes, .avail_in = (uInt)m->n, .next_out = (Bytef *)to, .avail_out = (uInt)room};
	if (!m->deflate) {
		if (m->n)
			memcpy(to, m->bytes, m->n);
		return m->n;
	}
	if (deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK ||
	    deflate(&stream, Z_FINISH) != Z_STREAM_END)
		abort();
	deflateEnd(&stream);
	return stream.total_out;
}

/* What both headers of a member have in common. */
static void put_facts(char **at, const test_member *m, size_t packed, size_t more)
{
	test_put(at, m->deflate ? 8 : 0, 2);
	test_put(at, 0, 4);
	test_put(at, crc32_z(crc32(0, NULL, 0), m->bytes, m->n), 4);
	test_put(at, packed + (m->deflate ? 0 : more), 4);
	test_put(at, m->n + more, 4);
	test_put(at, strlen(m->name), 2);
}

char *test_archive(const test_member *members, size_t n_members, size_t *n)
{
	size_t room = END, begin[TEST_ARCHIVE_MEMBERS], packed[TEST_ARCHIVE_MEMBERS];
	for (size_t i = 0; i < n_members; i++)
		room += LOCAL + ENTRY + 2 * strlen(members[i].name) + members[i].n + members[i].n / 8 + 64;
	char *archive = malloc(room), *at = archive;
	if (!archive || n_members > TEST_ARCHIVE_MEMBERS)
		abort();
	for (size_t i = 0; i < n_members; i++) {
		const test_member *m = &members[i];
		size_t name = strlen(m->name);
		begin[i] = (size_t)(at - archive);
		packed[i] = pack(m, at + LOCAL + name, room - begin[i] - LOCAL - name);
		test_put(&at, 0x04034b50, 4);
		test_put(&at, 0, 4);
		put_facts(&at, m, packed[i], 0);
		test_put(&at, 0, 2);
		memcpy(at, m->name, name);
		at += name + packed[i];
	}
	size_t table = (size_t)(at - archive);
	for (size_t i = 0; i < n_members; i++) {
		const test_member *m = &members[i];
		test_put(&at, 0x02014b50, 4);
		test_put(&at, 0, 6);
		put_facts(&at, m, packed[i], m->more);
		test_put(&at, 0, 8);
		test_put(&at, 0, 4);
		test_put(&at, begin[i], 4);
		memcpy(at, m->name, strlen(m->name));
		at += strlen(m->name);
	}
	size_t end = (size_t)(at - archive);
	test_put(&at, 0x06054b50, 4);
	test_put(&at, 0, 4);
	test_put(&at, n_members, 2);
	test_put(&at, n_members, 2);
	test_put(&at, end - table, 4);
	test_put(&at, table, 4);
	test_put(&at, 0, 2);
	*n = (size_t)(at - archive);
	return archive;
}
