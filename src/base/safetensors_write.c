/* safetensors: writing. SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/json.h"
#include "base/safetensors.h"

#define DATA_ALIGN 8 /* the header is padded with spaces so that tensors begin at a multiple */

static int by_alignment_and_name(const void *a, const void *b)
{
	const mu_safetensors_item *x = a, *y = b;
	size_t x_bytes = mu_dtype_bytes(x->type), y_bytes = mu_dtype_bytes(y->type);
	if (x_bytes != y_bytes)
		return x_bytes > y_bytes ? -1 : 1;
	return strcmp(x->name, y->name);
}

static size_t item_bytes(const mu_safetensors_item *item)
{
	size_t bytes = mu_dtype_bytes(item->type);
	for (size_t i = 0; i < item->n_dims; i++)
		bytes *= item->dims[i];
	return bytes;
}

static void describe(mu_json *json, const mu_safetensors_item *item, size_t begin)
{
	mu_json_object_begin(json, item->name);
	mu_json_string(json, "dtype", mu_dtype_text(item->type));
	mu_json_array_begin(json, "shape");
	for (size_t i = 0; i < item->n_dims; i++)
		mu_json_unsigned(json, NULL, item->dims[i]);
	mu_json_array_end(json);
	mu_json_array_begin(json, "data_offsets");
	mu_json_unsigned(json, NULL, begin);
	mu_json_unsigned(json, NULL, begin + item_bytes(item));
	mu_json_array_end(json);
	mu_json_object_end(json);
}

/* The header's text, padded; the caller frees it. */
static mural_status make_header(const mu_safetensors_item *items, size_t n, const mu_safetensors_note *notes,
                                size_t n_notes, char **text, size_t *bytes, mural_error *err)
{
	mu_json json;
	size_t begin = 0;
	*text = NULL;
	FILE *memory = open_memstream(text, bytes);
	if (!memory)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the header of %zu tensors", n);
	mu_json_init(&json, memory, MU_JSON_COMPACT);
	mu_json_object_begin(&json, NULL);
	mu_json_object_begin(&json, "__metadata__");
	mu_json_string(&json, "format", "pt");
	for (size_t i = 0; i < n_notes; i++)
		mu_json_string(&json, notes[i].key, notes[i].text);
	mu_json_object_end(&json);
	for (size_t i = 0; i < n; i++) {
		describe(&json, &items[i], begin);
		begin += item_bytes(&items[i]);
	}
	mu_json_object_end(&json);
	bool finished = mu_json_finished(&json);
	for (long at = ftell(memory); at >= 0 && at % DATA_ALIGN; at++)
		putc(' ', memory);
	if (fclose(memory) != 0 || !finished)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the header of %zu tensors", n);
	return MURAL_OK;
}

static mural_status put_all(mu_file *file, const char *header, size_t bytes, const mu_safetensors_content *content,
                            const atomic_bool *stop, mural_error *err)
{
	unsigned char length[8];
	for (int i = 0; i < 8; i++)
		length[i] = (unsigned char)((uint64_t)bytes >> 8 * i);
	MU_TRY(mu_file_put(file, length, sizeof length, stop, err));
	MU_TRY(mu_file_put(file, header, bytes, stop, err));
	for (size_t i = 0; i < content->n_items; i++)
		MU_TRY(mu_file_put(file, content->items[i].data, item_bytes(&content->items[i]), stop, err));
	return MURAL_OK;
}

static mural_status write_file(const char *path, const char *header, size_t bytes,
                               const mu_safetensors_content *content, mu_safetensors_writing *writing, mural_error *err)
{
	mu_file file = {0};
	MU_TRY(mu_file_begin(&file, path, err));
	mural_status status = put_all(&file, header, bytes, content, writing->stop, err);
	if (status != MURAL_OK) {
		mu_file_abandon(&file);
		return status;
	}
	writing->bytes = file.sum.total;
	writing->checksum = mu_checksum_value(&file.sum);
	return mu_file_commit(&file, err);
}

mural_status mu_safetensors_write_content(const char *path, const mu_safetensors_content *content,
                                          mu_safetensors_writing *writing, mural_error *err)
{
	char *header;
	size_t bytes, n = content->n_items;
	mu_safetensors_item *items = content->items;
	mu_safetensors_writing unwatched = {0};
	if (n)
		qsort(items, n, sizeof *items, by_alignment_and_name);
	for (size_t i = 1; i < n; i++)
		if (strcmp(items[i - 1].name, items[i].name) == 0)
			return mu_bug(err, "two tensors of one name for a safetensors file");
	mural_status status = make_header(items, n, content->notes, content->n_notes, &header, &bytes, err);
	if (status == MURAL_OK)
		status = write_file(path, header, bytes, content, writing ? writing : &unwatched, err);
	free(header);
	return status;
}

mural_status mu_safetensors_write(const char *path, mu_safetensors_item *items, size_t n, mural_error *err)
{
	return mu_safetensors_write_noted(path, items, n, NULL, 0, err);
}

mural_status mu_safetensors_write_noted(const char *path, mu_safetensors_item *items, size_t n,
                                        const mu_safetensors_note *notes, size_t n_notes, mural_error *err)
{
	const mu_safetensors_content content = {items, n, notes, n_notes};
	return mu_safetensors_write_content(path, &content, NULL, err);
}
