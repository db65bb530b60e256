/* PyTorch's format, as file_pth.c describes it. The pickle says nothing twice, so it needs no memo. Members are stored and begin
 * at multiples of 64 bytes, which lets torch map them; places beyond 4 GiB are told in ZIP64's way.
 * SPDX-License-Identifier: MIT */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/files.h"
#include "weights/export.h"

#define ALIGN 64
#define LOCAL_BYTES 30
#define EXTRA_BYTES 4 /* id and length of the padding */

/* What the table at the end will say. */
typedef struct entry {
	char name[128];
	uint32_t crc, bytes;
	uint64_t header;
} entry;

typedef struct writer {
	FILE *out;
	uint64_t at;
	char root[80];
	entry *entries;
	size_t n;
} writer;

static void put(writer *w, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		putc((int)(value >> 8 * i & 0xff), w->out);
	w->at += bytes;
}

static void put_bytes(writer *w, const void *bytes, size_t n)
{
	fwrite(bytes, 1, n, w->out);
	w->at += n;
}

/* Sizes and names, alike in both places: from "version needed" to "extra length". */
static void put_facts(writer *w, const entry *e, unsigned version, size_t extra)
{
	put(w, version, 2);
	put(w, 0, 2); /* flags */
	put(w, 0, 2); /* stored */
	put(w, 0, 2); /* time */
	put(w, 0x21, 2); /* 1 January 1980: the same bytes for the same weights */
	put(w, e->crc, 4);
	put(w, e->bytes, 4);
	put(w, e->bytes, 4);
	put(w, strlen(e->name), 2);
	put(w, extra, 2);
}

static void put_member(writer *w, const char *name, const void *bytes, size_t n)
{
	entry *e = &w->entries[w->n++];
	snprintf(e->name, sizeof e->name, "%s/%s", w->root, name);
	e->crc = (uint32_t)crc32_z(crc32(0, NULL, 0), bytes, n);
	e->bytes = (uint32_t)n;
	e->header = w->at;
	size_t plain = LOCAL_BYTES + strlen(e->name) + EXTRA_BYTES;
	size_t padding = (size_t)((ALIGN - (w->at + plain) % ALIGN) % ALIGN);
	put(w, 0x04034b50, 4);
	put_facts(w, e, 20, EXTRA_BYTES + padding);
	put_bytes(w, e->name, strlen(e->name));
	put(w, 0x4246, 2); /* "FB", as torch's writer marks its padding */
	put(w, padding, 2);
	for (size_t i = 0; i < padding; i++)
		put(w, 0, 1);
	put_bytes(w, bytes, n);
}

static void put_table(writer *w)
{
	uint64_t begin = w->at;
	for (size_t i = 0; i < w->n; i++) {
		const entry *e = &w->entries[i];
		bool far = e->header >= UINT32_MAX;
		put(w, 0x02014b50, 4);
		put(w, 45, 2); /* made by */
		put_facts(w, e, far ? 45 : 20, far ? 12 : 0);
		put(w, 0, 2); /* comment */
		put(w, 0, 2); /* disk */
		put(w, 0, 2 + 4); /* attributes */
		put(w, far ? UINT32_MAX : e->header, 4);
		put_bytes(w, e->name, strlen(e->name));
		if (far) {
			put(w, 1, 2);
			put(w, 8, 2);
			put(w, e->header, 8);
		}
	}
	uint64_t end = w->at, bytes = end - begin;
	put(w, 0x06064b50, 4); /* ZIP64's record; 44: its bytes from here on */
	put(w, 44, 8);
	put(w, 45, 2);
	put(w, 45, 2);
	put(w, 0, 4);
	put(w, 0, 4);
	put(w, w->n, 8);
	put(w, w->n, 8);
	put(w, bytes, 8);
	put(w, begin, 8);
	put(w, 0x07064b50, 4); /* where it is */
	put(w, 0, 4);
	put(w, end, 8);
	put(w, 1, 4);
	put(w, 0x06054b50, 4);
	put(w, 0, 4);
	put(w, w->n < UINT16_MAX ? w->n : UINT16_MAX, 2);
	put(w, w->n < UINT16_MAX ? w->n : UINT16_MAX, 2);
	put(w, bytes < UINT32_MAX ? bytes : UINT32_MAX, 4);
	put(w, begin < UINT32_MAX ? begin : UINT32_MAX, 4);
	put(w, 0, 2);
}

/* ---- The pickle. ---- */

static void pickle_text(writer *w, const char *text)
{
	put(w, 'X', 1);
	put(w, strlen(text), 4);
	put_bytes(w, text, strlen(text));
}

static void pickle_count(writer *w, uint64_t count)
{
	if (count <= INT32_MAX) {
		put(w, 'J', 1);
		put(w, count, 4);
	} else {
		put(w, 0x8a, 1);
		put(w, 8, 1);
		put(w, count, 8);
	}
}

static void pickle_words(writer *w, const char *words)
{
	put_bytes(w, words, strlen(words));
}

static void pickle_tensor(writer *w, const mu_safetensors_item *item, size_t number)
{
	char key[24];
	uint64_t elements = 1, strides[MU_STORED_MAX_DIMS];
	for (size_t i = item->n_dims; i-- > 0; elements *= item->dims[i])
		strides[i] = elements;
	snprintf(key, sizeof key, "%zu", number);
	pickle_text(w, item->name);
	pickle_words(w, "ctorch._utils\n_rebuild_tensor_v2\n((");
	pickle_text(w, "storage");
	pickle_words(w, "ctorch\nFloatStorage\n");
	pickle_text(w, key);
	pickle_text(w, "cpu");
	pickle_count(w, elements);
	pickle_words(w, "tQ");
	pickle_count(w, 0); /* offset */
	pickle_words(w, "(");
	for (size_t i = 0; i < item->n_dims; i++)
		pickle_count(w, item->dims[i]);
	pickle_words(w, "t(");
	for (size_t i = 0; i < item->n_dims; i++)
		pickle_count(w, strides[i]);
	pickle_words(w, "t\x89"
	                "ccollections\nOrderedDict\n)RtR"); /* no gradient, no hooks */
}

static bool make_pickle(const mu_safetensors_item *items, size_t n, char **text, size_t *bytes)
{
	writer w = {.out = open_memstream(text, bytes)};
	if (!w.out)
		return false;
	pickle_words(&w, "\x80\x02"
	                 "ccollections\nOrderedDict\n)R(");
	for (size_t i = 0; i < n; i++)
		pickle_tensor(&w, &items[i], i);
	pickle_words(&w, "u.");
	return fclose(w.out) == 0;
}

/* ---- The file. ---- */

static size_t bytes_of(const mu_safetensors_item *item)
{
	size_t bytes = sizeof(float);
	for (size_t i = 0; i < item->n_dims; i++)
		bytes *= item->dims[i];
	return bytes;
}

/* The archive's folder has the file's name, as torch.save does it. */
static void name_root(writer *w, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	snprintf(w->root, sizeof w->root, "%.*s", (int)strcspn(name, "."), name);
	if (!w->root[0])
		snprintf(w->root, sizeof w->root, "archive");
}

static void put_all(writer *w, const mu_safetensors_item *items, size_t n, const char *pickle, size_t bytes)
{
	char key[32];
	put_member(w, "data.pkl", pickle, bytes);
	put_member(w, "byteorder", "little", 6);
	for (size_t i = 0; i < n; i++) {
		snprintf(key, sizeof key, "data/%zu", i);
		put_member(w, key, items[i].data, bytes_of(&items[i]));
	}
	put_member(w, "version", "3\n", 2);
	put_table(w);
}

mural_status mu_pth_write(const char *path, const mu_safetensors_item *items, size_t n, mural_error *err)
{
	char *pickle = NULL;
	size_t bytes = 0;
	mu_file file = {0};
	writer w = {.entries = calloc(n + 3, sizeof *w.entries)};
	name_root(&w, path);
	mural_status status = MURAL_OK;
	for (size_t i = 0; i < n; i++)
		if (bytes_of(&items[i]) >= UINT32_MAX)
			status = mu_fail(err, MURAL_USAGE, path,
			                 "tensor '%.200s' is too large for this format: write .safetensors",
			                 items[i].name);
	if (status == MURAL_OK && (!w.entries || !make_pickle(items, n, &pickle, &bytes)))
		status = mu_fail(err, MURAL_OUT_OF_MEMORY, path, "no memory for the table of weights");
	if (status == MURAL_OK)
		status = mu_file_begin(&file, path, err);
	if (status == MURAL_OK) {
		w.out = file.out;
		put_all(&w, items, n, pickle, bytes);
		status = mu_file_commit(&file, err); /* sees what the stream could not take */
	}
	free(pickle);
	free(w.entries);
	return status;
}
