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

mural_status mu_safetensors_write(const char *path, mu_safetensors_item *items, size_t n, mural_error *err)
{
	return mu_safetensors_write_noted(path, items, n, NULL, 0, err);
}

mural_status mu_safetensors_write_noted(const char *path, mu_safetensors_item *items, size_t n,
                                        const mu_safetensors_note *notes, size_t n_notes, mural_error *err)
{
	char *header;
	size_t bytes;
	mu_file file = {0};
	if (n)
		qsort(items, n, sizeof *items, by_alignment_and_name);
	for (size_t i = 1; i < n; i++)
		if (strcmp(items[i - 1].name, items[i].name) == 0)
			return mu_bug(err, "two tensors of one name for a safetensors file");
	mural_status status = make_header(items, n, notes, n_notes, &header, &bytes, err);
	if (status == MURAL_OK)
		status = mu_file_begin(&file, path, err);
	if (status == MURAL_OK) {
		for (int shift = 0; shift < 64; shift += 8)
			putc((int)((uint64_t)bytes >> shift & 0xff), file.out);
		fwrite(header, 1, bytes, file.out);
		for (size_t i = 0; i < n; i++)
			fwrite(items[i].data, 1, item_bytes(&items[i]), file.out);
		status = mu_file_commit(&file, err); /* sees what the stream could not take */
	}
	free(header);
	return status;
}
