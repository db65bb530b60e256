/* Plain and gzip files as a stream of bytes. SPDX-License-Identifier: MIT */
#include "data/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/files.h"

#define BUFFER_BYTES 65536
#define DEFLATE_RATIO 1032 /* zlib's manual, "Maximum Compression Factor" */
#define PATH_BYTES 1200 /* a configured folder and a file name */

struct mu_reader {
	int file;
	bool gzip;
	bool inside; /* of a gzip member: the end of the file would cut it */
	bool ended; /* no more bytes in the file */
	uint64_t file_bytes;
	uint64_t loaded; /* bytes of the file read so far */
	z_stream inflater; /* next_in and avail_in serve plain files too */
	char path[PATH_BYTES];
	char where[PATH_BYTES + 48];
	unsigned char buffer[BUFFER_BYTES];
};

/* Place in the file itself. */
static const char *file_where(mu_reader *reader, uint64_t byte)
{
	snprintf(reader->where, sizeof reader->where, "%s:%llu", reader->path, (unsigned long long)byte);
	return reader->where;
}

const char *mu_reader_where(mu_reader *reader, uint64_t byte)
{
	file_where(reader, byte);
	if (reader->gzip)
		strcat(reader->where, " (decompressed)");
	return reader->where;
}

uint64_t mu_reader_limit(const mu_reader *reader)
{
	return reader->gzip ? reader->file_bytes * DEFLATE_RATIO : reader->file_bytes;
}

static uint64_t file_place(const mu_reader *reader)
{
	return reader->loaded - reader->inflater.avail_in;
}

/* Loads more of the file behind what is left in the buffer; sets `ended` when there is none. */
static mural_status load(mu_reader *reader, mural_error *err)
{
	z_stream *z = &reader->inflater;
	memmove(reader->buffer, z->next_in, z->avail_in);
	z->next_in = reader->buffer;
	ssize_t n;
	do
		n = read(reader->file, reader->buffer + z->avail_in, BUFFER_BYTES - z->avail_in);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return mu_fail(err, MURAL_FAILED, file_where(reader, reader->loaded), "cannot read the file: %s",
		               strerror(errno));
	reader->ended = n == 0;
	reader->loaded += (uint64_t)n;
	z->avail_in += (unsigned)n;
	return MURAL_OK;
}

/* Makes sure that `bytes` are in the buffer, unless the file ends before. */
static mural_status peek(mu_reader *reader, unsigned bytes, mural_error *err)
{
	while (reader->inflater.avail_in < bytes && !reader->ended)
		MU_TRY(load(reader, err));
	return MURAL_OK;
}

static bool gzip_magic(const mu_reader *reader)
{
	const unsigned char *next = reader->inflater.next_in;
	return reader->inflater.avail_in >= 2 && next[0] == 0x1f && next[1] == 0x8b;
}

static mural_status open_file(mu_reader *reader, mural_error *err)
{
	/* Not blocking: opening a pipe that nobody writes would wait for ever. */
	reader->file = mu_open_to_read(reader->path);
	if (reader->file < 0)
		return mu_fail(err, MURAL_DATA, reader->path, "cannot open the file: %s", strerror(errno));
	struct stat facts;
	if (fstat(reader->file, &facts) != 0)
		return mu_fail(err, MURAL_FAILED, reader->path, "cannot look at the file: %s", strerror(errno));
	if (!S_ISREG(facts.st_mode))
		return mu_fail(err, MURAL_DATA, reader->path, "expected a file, found a %s",
		               S_ISDIR(facts.st_mode) ? "folder" : "device or pipe");
	reader->file_bytes = (uint64_t)facts.st_size;
	return MURAL_OK;
}

static mural_status begin(mu_reader *reader, mural_error *err)
{
	reader->inflater.next_in = reader->buffer;
	MU_TRY(open_file(reader, err));
	MU_TRY(peek(reader, 2, err));
	if (!gzip_magic(reader))
		return MURAL_OK;
	if (inflateInit2(&reader->inflater, 16 + MAX_WBITS) != Z_OK) /* 16: gzip headers */
		return mu_fail(err, MURAL_OUT_OF_MEMORY, reader->path, "no memory to decompress the file");
	reader->gzip = reader->inside = true;
	return MURAL_OK;
}

mural_status mu_reader_create(mu_reader **reader, const char *path, mural_error *err)
{
	*reader = NULL;
	mu_reader *created = calloc(1, sizeof *created);
	if (!created)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, path, "no memory to read the file");
	created->file = -1;
	mural_status status = MURAL_OK;
	if (strlen(path) >= sizeof created->path)
		status = mu_fail(err, MURAL_DATA, path, "the path is longer than %d bytes", PATH_BYTES - 1);
	else
		strcpy(created->path, path);
	if (status == MURAL_OK)
		status = begin(created, err);
	if (status != MURAL_OK)
		mu_reader_free(created);
	else
		*reader = created;
	return status;
}

void mu_reader_free(mu_reader *reader)
{
	if (!reader)
		return;
	if (reader->gzip)
		inflateEnd(&reader->inflater);
	if (reader->file >= 0)
		close(reader->file);
	free(reader);
}

/* Behind a gzip member: another one, the end, or something that does not belong here. */
static mural_status next_member(mu_reader *reader, mural_error *err)
{
	reader->inside = false;
	MU_TRY(peek(reader, 2, err));
	if (reader->inflater.avail_in == 0)
		return MURAL_OK;
	if (!gzip_magic(reader))
		return mu_fail(err, MURAL_DATA, file_where(reader, file_place(reader)),
		               "expected the end of the file behind the gzip data, found %llu more bytes",
		               (unsigned long long)(reader->file_bytes - file_place(reader)));
	inflateReset(&reader->inflater);
	reader->inside = true;
	return MURAL_OK;
}

/* Produces some bytes, at most `bytes`; none only at the end. */
static mural_status inflate_some(mu_reader *reader, unsigned char *into, unsigned bytes, unsigned *got,
                                 mural_error *err)
{
	z_stream *z = &reader->inflater;
	*got = 0;
	while (*got == 0 && reader->inside) {
		MU_TRY(peek(reader, 1, err));
		if (z->avail_in == 0)
			return mu_fail(err, MURAL_DATA, file_where(reader, reader->loaded),
			               "the file ends inside its gzip data: it was cut; fetch it again");
		z->next_out = into;
		z->avail_out = bytes;
		int result = inflate(z, Z_NO_FLUSH);
		*got = bytes - z->avail_out;
		if (result == Z_STREAM_END)
			MU_TRY(next_member(reader, err));
		else if (result != Z_OK && result != Z_BUF_ERROR)
			return mu_fail(err, MURAL_DATA, file_where(reader, file_place(reader)),
			               "the gzip data is damaged (%s); fetch the file again",
			               z->msg ? z->msg : zError(result));
	}
	return MURAL_OK;
}

static mural_status copy_some(mu_reader *reader, unsigned char *into, unsigned bytes, unsigned *got, mural_error *err)
{
	z_stream *z = &reader->inflater;
	MU_TRY(peek(reader, 1, err));
	*got = z->avail_in < bytes ? z->avail_in : bytes;
	memcpy(into, z->next_in, *got);
	z->next_in += *got;
	z->avail_in -= *got;
	return MURAL_OK;
}

mural_status mu_reader_read(mu_reader *reader, void *into, size_t bytes, size_t *got, mural_error *err)
{
	*got = 0;
	while (*got < bytes) {
		unsigned most = bytes - *got < (1u << 30) ? (unsigned)(bytes - *got) : 1u << 30, n;
		unsigned char *to = (unsigned char *)into + *got;
		MU_TRY(reader->gzip ? inflate_some(reader, to, most, &n, err) : copy_some(reader, to, most, &n, err));
		if (n == 0)
			break;
		*got += n;
	}
	return MURAL_OK;
}
