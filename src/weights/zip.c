/* ZIP archives: the table of members. SPDX-License-Identifier: MIT */
#include "weights/zip.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/files.h"

#define LOCAL_BYTES 30
#define ENTRY_BYTES 46
#define END_BYTES 22
#define END64_BYTES 56
#define LOCATOR_BYTES 20
#define LONGEST_COMMENT 65535
#define ENCRYPTED 1 /* bit of the flags */
#define STORED 0
#define DEFLATED 8
#define MOST_FROM_DEFLATE 1032 /* bytes out of one: the format's limit */
#define CHUNK 65536

static uint64_t number(const uint8_t *at, unsigned bytes)
{
	uint64_t value = 0;
	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)at[i] << 8 * i;
	return value;
}

static mural_status damaged(const mu_zip *zip, uint64_t at, const char *what, mural_error *err)
{
	char where[1100];
	snprintf(where, sizeof where, "%.1000s:%llu", zip->path, (unsigned long long)at);
	return mu_fail(err, MURAL_DATA, where, "the archive is cut or damaged: %s", what);
}

static mural_status read_at(const mu_zip *zip, uint64_t offset, void *to, size_t bytes, mural_error *err)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t got = pread(zip->fd, (char *)to + done, bytes - done, (off_t)(offset + done));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return mu_fail(err, MURAL_FAILED, zip->path, "cannot read the archive: %s", strerror(errno));
		if (got == 0)
			return damaged(zip, offset + done, "it ends here, while it is being read", err);
		done += (size_t)got;
	}
	return MURAL_OK;
}

/* The table of members: where it begins, its bytes and entries. */
typedef struct table {
	uint64_t begin, bytes, entries;
} table;

/* ZIP64's larger record of the same facts, when a locator stands in front of the end record. */
static mural_status find_table64(const mu_zip *zip, uint64_t end, table *t, mural_error *err)
{
	uint8_t locator[LOCATOR_BYTES], record[END64_BYTES];
	if (end < LOCATOR_BYTES)
		return MURAL_OK;
	MU_TRY(read_at(zip, end - LOCATOR_BYTES, locator, sizeof locator, err));
	if (memcmp(locator, "PK\6\7", 4) != 0)
		return MURAL_OK;
	uint64_t at = number(locator + 8, 8);
	if (end < LOCATOR_BYTES + END64_BYTES || at > end - LOCATOR_BYTES - END64_BYTES)
		return damaged(zip, end - LOCATOR_BYTES, "the ZIP64 record is said to lie outside of it", err);
	MU_TRY(read_at(zip, at, record, sizeof record, err));
	if (memcmp(record, "PK\6\6", 4) != 0)
		return damaged(zip, at, "there is no ZIP64 record here", err);
	*t = (table){
	        .begin = number(record + 48, 8), .bytes = number(record + 40, 8), .entries = number(record + 32, 8)};
	return MURAL_OK;
}

/* The end record is the last one whose comment reaches to the end of the file. */
static mural_status find_table(const mu_zip *zip, table *t, mural_error *err)
{
	uint64_t tail = zip->file_bytes < END_BYTES + LONGEST_COMMENT ? zip->file_bytes : END_BYTES + LONGEST_COMMENT;
	uint8_t *bytes = malloc(tail + 1);
	if (!bytes)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, zip->path, "no memory to read the archive");
	mural_status status = read_at(zip, zip->file_bytes - tail, bytes, tail, err);
	uint64_t end = UINT64_MAX;
	for (uint64_t i = tail; status == MURAL_OK && end == UINT64_MAX && i-- > 0;)
		if (tail - i >= END_BYTES && memcmp(bytes + i, "PK\5\6", 4) == 0 &&
		    number(bytes + i + 20, 2) == tail - i - END_BYTES) {
			end = zip->file_bytes - tail + i;
			*t = (table){number(bytes + i + 16, 4), number(bytes + i + 12, 4), number(bytes + i + 10, 2)};
			if (number(bytes + i + 4, 2) != number(bytes + i + 6, 2))
				status = damaged(zip, end, "it is one of several disks", err);
		}
	free(bytes);
	if (status == MURAL_OK && end == UINT64_MAX)
		status = damaged(zip, zip->file_bytes, "the table of members at its end is missing", err);
	if (status == MURAL_OK)
		status = find_table64(zip, end, t, err);
	if (status == MURAL_OK && (t->begin > end || t->bytes > end - t->begin || t->entries > t->bytes / ENTRY_BYTES))
		status = damaged(zip, end, "the table of members is said to lie outside of it", err);
	return status;
}

/* Sizes and offset that do not fit 32 bits stand in the extra field, in this order. */
static bool widen(const uint8_t *extra, size_t n, uint64_t *values[3])
{
	bool needed = false;
	for (int i = 0; i < 3; i++)
		needed |= *values[i] == UINT32_MAX;
	for (size_t at = 0; needed && n - at >= 4;) {
		size_t bytes = (size_t)number(extra + at + 2, 2), next = at + 4;
		if (bytes > n - next)
			return false;
		for (int i = 0; number(extra + at, 2) == 1 && i < 3; i++) {
			if (*values[i] != UINT32_MAX)
				continue;
			if (next + 8 > at + 4 + bytes)
				return false;
			*values[i] = number(extra + next, 8);
			next += 8;
		}
		if (number(extra + at, 2) == 1)
			return true;
		at += 4 + bytes;
	}
	return true; /* without a field the values are what they are */
}

/* Member from its entry in the table and the header in front of its bytes. `end`: where members end. */
static mural_status take_member(mu_zip *zip, const uint8_t *entry, uint64_t at, uint64_t end, mural_error *err)
{
	size_t name_bytes = (size_t)number(entry + 28, 2), extra = (size_t)number(entry + 30, 2);
	mu_zip_member *member = &zip->members[zip->n];
	uint64_t header = number(entry + 42, 4);
	member->packed = number(entry + 20, 4);
	member->bytes = number(entry + 24, 4);
	member->crc = (uint32_t)number(entry + 16, 4);
	member->deflated = number(entry + 10, 2) == DEFLATED;
	member->name = strndup((const char *)entry + ENTRY_BYTES, name_bytes);
	if (!member->name)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, zip->path, "no memory for the archive's table");
	zip->n++;
	if (strlen(member->name) != name_bytes)
		return damaged(zip, at, "a member's name holds a zero byte", err);
	if (!widen(entry + ENTRY_BYTES + name_bytes, extra, (uint64_t *[]){&member->bytes, &member->packed, &header}))
		return damaged(zip, at, "the sizes of a large member do not fit their field", err);
	if (number(entry + 8, 2) & ENCRYPTED)
		return mu_fail(err, MURAL_DATA, zip->path, "member '%.200s' is encrypted", member->name);
	if (!member->deflated && number(entry + 10, 2) != STORED)
		return mu_fail(err, MURAL_DATA, zip->path,
		               "member '%.200s' is packed by method %d: only stored and deflated ones can be read",
		               member->name, (int)number(entry + 10, 2));

	uint8_t local[LOCAL_BYTES];
	if (header > end || end - header < LOCAL_BYTES)
		return damaged(zip, at, "a member is said to lie outside of it", err);
	MU_TRY(read_at(zip, header, local, sizeof local, err));
	member->begin = header + LOCAL_BYTES + number(local + 26, 2) + number(local + 28, 2);
	char again[512];
	bool same = memcmp(local, "PK\3\4", 4) == 0 && number(local + 26, 2) == name_bytes && name_bytes < sizeof again;
	if (same && name_bytes)
		MU_TRY(read_at(zip, header + LOCAL_BYTES, again, name_bytes, err));
	if (!same || memcmp(again, member->name, name_bytes) != 0)
		return damaged(zip, header, "the header of a member is not the one that the table names", err);
	if (member->begin > end || member->packed > end - member->begin)
		return damaged(zip, header, "a member is said to reach behind its end", err);
	if (member->deflated ? member->bytes / MOST_FROM_DEFLATE > member->packed : member->bytes != member->packed)
		return damaged(zip, header, "a member's two sizes contradict each other", err);
	return MURAL_OK;
}

static int by_place(const void *a, const void *b)
{
	const mu_zip_member *x = a, *y = b;
	return (x->begin > y->begin) - (x->begin < y->begin);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const mu_zip_member *)a)->name, ((const mu_zip_member *)b)->name);
}

static mural_status check_members(mu_zip *zip, mural_error *err)
{
	if (zip->n == 0)
		return mu_fail(err, MURAL_DATA, zip->path, "the archive is empty");
	qsort(zip->members, zip->n, sizeof *zip->members, by_place);
	for (size_t i = 1; i < zip->n; i++)
		if (zip->members[i].begin < zip->members[i - 1].begin + zip->members[i - 1].packed)
			return damaged(zip, zip->members[i].begin, "two members share this place", err);
	qsort(zip->members, zip->n, sizeof *zip->members, by_name);
	for (size_t i = 1; i < zip->n; i++)
		if (by_name(&zip->members[i - 1], &zip->members[i]) == 0)
			return mu_fail(err, MURAL_DATA, zip->path, "the archive has two members '%.200s'",
			               zip->members[i].name);
	return MURAL_OK;
}

static mural_status take_table(mu_zip *zip, const table *t, const uint8_t *bytes, mural_error *err)
{
	for (uint64_t i = 0, at = 0; i < t->entries; i++) {
		const uint8_t *entry = bytes + at;
		if (t->bytes - at < ENTRY_BYTES || memcmp(entry, "PK\1\2", 4) != 0)
			return damaged(zip, t->begin + at, "an entry of the table of members is missing", err);
		uint64_t whole = ENTRY_BYTES + number(entry + 28, 2) + number(entry + 30, 2) + number(entry + 32, 2);
		if (whole > t->bytes - at)
			return damaged(zip, t->begin + at, "an entry of the table of members is cut", err);
		MU_TRY(take_member(zip, entry, t->begin + at, t->begin, err));
		at += whole;
	}
	return check_members(zip, err);
}

static mural_status open_file(mu_zip *zip, mural_error *err)
{
	struct stat facts;
	zip->fd = mu_open_to_read(zip->path);
	if (zip->fd < 0 || fstat(zip->fd, &facts) != 0)
		return mu_fail(err, errno == ENOENT || errno == ENOTDIR ? MURAL_DATA : MURAL_FAILED, zip->path,
		               "cannot open the archive: %s", strerror(errno));
	if (!S_ISREG(facts.st_mode))
		return mu_fail(err, MURAL_DATA, zip->path, "no archive: not a regular file");
	zip->file_bytes = (uint64_t)facts.st_size;
	return MURAL_OK;
}

mural_status mu_zip_open(mu_zip *zip, const char *path, mural_error *err)
{
	table t = {0};
	*zip = (mu_zip){.fd = -1, .path = strdup(path)};
	if (!zip->path)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, path, "no memory to open a file");
	MU_TRY(open_file(zip, err));
	MU_TRY(find_table(zip, &t, err));
	uint8_t *bytes = malloc(t.bytes + 1);
	zip->members = calloc(t.entries + 1, sizeof *zip->members);
	mural_status status = bytes && zip->members
	                              ? read_at(zip, t.begin, bytes, t.bytes, err)
	                              : mu_fail(err, MURAL_OUT_OF_MEMORY, path, "no memory for the archive's table");
	if (status == MURAL_OK)
		status = take_table(zip, &t, bytes, err);
	free(bytes);
	return status;
}

void mu_zip_release(mu_zip *zip)
{
	for (size_t i = 0; i < zip->n; i++)
		free(zip->members[i].name);
	free(zip->members);
	if (zip->path && zip->fd >= 0)
		close(zip->fd);
	free(zip->path);
	*zip = (mu_zip){.fd = -1};
}

const mu_zip_member *mu_zip_find(const mu_zip *zip, const char *name)
{
	mu_zip_member key = {.name = (char *)name};
	return zip->n ? bsearch(&key, zip->members, zip->n, sizeof key, by_name) : NULL;
}

static mural_status check_sum(const mu_zip *zip, const mu_zip_member *member, const void *bytes, mural_error *err)
{
	uLong sum = crc32_z(crc32(0, NULL, 0), bytes, (size_t)member->bytes);
	if (sum == member->crc)
		return MURAL_OK;
	return mu_fail(err, MURAL_DATA, zip->path, "member '%.200s' is damaged: its checksum is %08lx instead of %08x",
	               member->name, (unsigned long)sum, member->crc);
}

mural_status mu_zip_read(const mu_zip *zip, const mu_zip_member *member, uint64_t offset, void *to, size_t n,
                         mural_error *err)
{
	if (member->deflated || offset > member->bytes || n > member->bytes - offset)
		return mu_bug(err, "a read outside of a stored member");
	MU_TRY(read_at(zip, member->begin + offset, to, n, err));
	return offset == 0 && n == member->bytes ? check_sum(zip, member, to, err) : MURAL_OK;
}

/* Inflates until `n` bytes are there. */
static mural_status inflate_front(const mu_zip *zip, const mu_zip_member *member, z_stream *stream, uint8_t *packed,
                                  uint8_t *to, size_t n, mural_error *err)
{
	uint64_t read = 0;
	int code = Z_OK;
	for (size_t done = 0; done < n && code == Z_OK;) {
		if (stream->avail_in == 0) {
			uint64_t left = member->packed - read;
			size_t now = left < CHUNK ? (size_t)left : CHUNK;
			if (now == 0)
				break;
			MU_TRY(read_at(zip, member->begin + read, packed, now, err));
			read += now;
			stream->next_in = packed;
			stream->avail_in = (uInt)now;
		}
		size_t room = n - done < ((size_t)1 << 30) ? n - done : (size_t)1 << 30;
		stream->next_out = to + done;
		stream->avail_out = (uInt)room;
		code = inflate(stream, Z_NO_FLUSH);
		done += room - stream->avail_out;
		if (done == n)
			return MURAL_OK;
	}
	if (n == 0)
		return MURAL_OK;
	return mu_fail(err, MURAL_DATA, zip->path, "member '%.200s' is damaged: it cannot be unpacked to %llu bytes",
	               member->name, (unsigned long long)member->bytes);
}

mural_status mu_zip_read_front(const mu_zip *zip, const mu_zip_member *member, void *to, size_t n, mural_error *err)
{
	if (!member->deflated)
		return mu_zip_read(zip, member, 0, to, n, err);
	if (n > member->bytes)
		return mu_bug(err, "a read outside of a deflated member");
	z_stream stream = {0};
	uint8_t *packed = malloc(CHUNK);
	if (!packed || inflateInit2(&stream, -MAX_WBITS) != Z_OK) {
		free(packed);
		return mu_fail(err, MURAL_OUT_OF_MEMORY, zip->path, "no memory to unpack a member");
	}
	mural_status status = inflate_front(zip, member, &stream, packed, to, n, err);
	inflateEnd(&stream);
	free(packed);
	return status == MURAL_OK && n == member->bytes ? check_sum(zip, member, to, err) : status;
}
