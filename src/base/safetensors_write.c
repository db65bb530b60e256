/* safetensors: writing. A file is laid out first, so that everybody writes the same one: piece by piece from here, or from a copy that
 * others make of it in memory. SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/json.h"
#include "base/safetensors.h"

#define LENGTH_BYTES 8
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

/* Its length in 8 bytes, then the header's text, padded; the caller frees it, also after a failure. */
static mural_status make_header(const mu_safetensors_item *items, size_t n, const mu_safetensors_note *notes,
                                size_t n_notes, char **text, size_t *bytes, mural_error *err)
{
	mu_json json;
	size_t begin = 0;
	*text = NULL;
	FILE *memory = open_memstream(text, bytes);
	if (!memory)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the header of %zu tensors", n);
	fwrite("\0\0\0\0\0\0\0", 1, LENGTH_BYTES, memory);
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
	for (int i = 0; i < LENGTH_BYTES; i++)
		(*text)[i] = (char)(unsigned char)((uint64_t)(*bytes - LENGTH_BYTES) >> 8 * i);
	return MURAL_OK;
}

static void add_part(mu_safetensors_layout *layout, const void *data, size_t bytes)
{
	if (bytes == 0)
		return;
	layout->parts[layout->n_parts++] = (mu_safetensors_part){layout->bytes, data};
	layout->bytes += bytes;
}

mural_status mu_safetensors_lay_out(mu_safetensors_layout *layout, mu_safetensors_item *items, size_t n,
                                    const mu_safetensors_note *notes, size_t n_notes, mural_error *err)
{
	size_t header_bytes = 0;
	*layout = (mu_safetensors_layout){0};
	if (n)
		qsort(items, n, sizeof *items, by_alignment_and_name);
	for (size_t i = 1; i < n; i++)
		if (strcmp(items[i - 1].name, items[i].name) == 0)
			return mu_bug(err, "two tensors of one name for a safetensors file");
	layout->parts = calloc(n + 1, sizeof *layout->parts);
	mural_status status =
	        layout->parts ? make_header(items, n, notes, n_notes, &layout->header, &header_bytes, err)
	                      : mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for a table of %zu tensors", n);
	if (status != MURAL_OK) {
		mu_safetensors_layout_release(layout);
		return status;
	}
	add_part(layout, layout->header, header_bytes);
	for (size_t i = 0; i < n; i++)
		add_part(layout, items[i].data, item_bytes(&items[i]));
	return MURAL_OK;
}

void mu_safetensors_layout_release(mu_safetensors_layout *layout)
{
	free(layout->header);
	free(layout->parts);
	*layout = (mu_safetensors_layout){0};
}

const void *mu_safetensors_part_at(const mu_safetensors_layout *layout, uint64_t at, uint64_t *bytes)
{
	size_t low = 0, high = layout->n_parts; /* parts[low] begins at or before it, parts[high] behind it */
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;
		*(layout->parts[middle].begin <= at ? &low : &high) = middle;
	}
	*bytes = (high < layout->n_parts ? layout->parts[high].begin : layout->bytes) - at;
	return (const char *)layout->parts[low].data + (at - layout->parts[low].begin);
}

mural_status mu_safetensors_write_layout(const char *path, const mu_safetensors_layout *layout, mural_error *err)
{
	mu_file file = {0};
	uint64_t bytes;
	mural_status status = MURAL_OK;
	MU_TRY(mu_file_begin(&file, path, err));
	for (uint64_t at = 0; at < layout->bytes && status == MURAL_OK; at += bytes) {
		const void *part = mu_safetensors_part_at(layout, at, &bytes);
		status = mu_file_put(&file, part, bytes, NULL, err);
	}
	if (status == MURAL_OK)
		return mu_file_commit(&file, err);
	mu_file_abandon(&file);
	return status;
}

mural_status mu_safetensors_write(const char *path, mu_safetensors_item *items, size_t n, mural_error *err)
{
	return mu_safetensors_write_noted(path, items, n, NULL, 0, err);
}

mural_status mu_safetensors_write_noted(const char *path, mu_safetensors_item *items, size_t n,
                                        const mu_safetensors_note *notes, size_t n_notes, mural_error *err)
{
	mu_safetensors_layout layout;
	MU_TRY(mu_safetensors_lay_out(&layout, items, n, notes, n_notes, err));
	mural_status status = mu_safetensors_write_layout(path, &layout, err);
	mu_safetensors_layout_release(&layout);
	return status;
}
