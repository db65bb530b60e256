/* safetensors: the header's entries, each checked alone and then all together. What they promise about sizes is compared
 * with the file before anybody reads or allocates by it.
 * SPDX-License-Identifier: MIT */
#include "base/safetensors_header.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define METADATA "__metadata__"

/* Element types of the format. */
static const struct {
	const char *name;
	unsigned bits;
} types[] = {
        {"BOOL", 8},        {"U8", 8},          {"I8", 8},      {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8},
        {"F8_E5M2FNUZ", 8}, {"F8_E4M3FNUZ", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16},    {"BF16", 16},
        {"I32", 32},        {"U32", 32},        {"F32", 32},    {"C64", 64},    {"I64", 64},    {"U64", 64},
        {"F64", 64},        {"F4", 4},          {"F6_E2M3", 6}, {"F6_E3M2", 6},
};

static unsigned bits_of(const char *dtype)
{
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
		if (strcmp(types[i].name, dtype) == 0)
			return types[i].bits;
	return 0;
}

static mu_dtype type_of(const char *dtype)
{
	mu_dtype type = 0;
	while (type < MU_DTYPE_COUNT && strcmp(mu_dtype_text(type), dtype) != 0)
		type++;
	return type;
}

/* Says which tensor of which file. */
static mural_status tensor_fault(const mu_safetensors *file, const char *name, mural_error *err, const char *format,
                                 ...) __attribute__((format(printf, 4, 5)));

static mural_status tensor_fault(const mu_safetensors *file, const char *name, mural_error *err, const char *format,
                                 ...)
{
	char message[256];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(message, sizeof message, format, arguments);
	va_end(arguments);
	return mu_fail(err, MURAL_DATA, file->path, "tensor '%.200s' %s", name, message);
}

/* A count in plain digits. */
static bool whole(const mu_hjson_value *value, uint64_t *number)
{
	if (value->kind != MU_HJSON_NUMBER || !value->number.whole)
		return false;
	for (size_t i = 0; i < value->raw_bytes; i++)
		if (value->raw[i] < '0' || value->raw[i] > '9')
			return false;
	*number = value->number.magnitude;
	return true;
}

static mural_status take_shape(const mu_safetensors *file, const mu_hjson_value *entry, uint64_t *dims,
                               mu_safetensor *tensor, mural_error *err)
{
	const mu_hjson_value *shape = mu_hjson_member(entry, "shape");
	if (!shape || shape->kind != MU_HJSON_ARRAY)
		return tensor_fault(file, tensor->name, err, "has no shape, an array of counts");
	tensor->dims = dims;
	tensor->n_dims = 0;
	for (const mu_hjson_value *dim = shape->first; dim; dim = dim->next)
		if (!whole(dim, &dims[tensor->n_dims++]))
			return tensor_fault(file, tensor->name, err, "has a shape whose dim %zu is no count",
			                    tensor->n_dims - 1);
	return MURAL_OK;
}

static mural_status take_offsets(const mu_safetensors *file, const mu_hjson_value *entry, mu_safetensor *tensor,
                                 mural_error *err)
{
	const mu_hjson_value *offsets = mu_hjson_member(entry, "data_offsets");
	uint64_t end;
	if (!offsets || offsets->kind != MU_HJSON_ARRAY || offsets->count != 2 ||
	    !whole(offsets->first, &tensor->begin) || !whole(offsets->first->next, &end))
		return tensor_fault(file, tensor->name, err, "has no data_offsets, two counts");
	if (end < tensor->begin || end > file->data_bytes)
		return tensor_fault(
		        file, tensor->name, err,
		        "lies at bytes %llu to %llu of the data, which has %llu bytes: the file is cut or damaged",
		        (unsigned long long)tensor->begin, (unsigned long long)end,
		        (unsigned long long)file->data_bytes);
	tensor->bytes = end - tensor->begin;
	return MURAL_OK;
}

static mural_status take_type(const mu_safetensors *file, const mu_hjson_value *entry, mu_safetensor *tensor,
                              mural_error *err)
{
	const mu_hjson_value *dtype = mu_hjson_member(entry, "dtype");
	if (!dtype || dtype->kind != MU_HJSON_STRING)
		return tensor_fault(file, tensor->name, err, "has no dtype, a text");
	if (bits_of(dtype->text) == 0)
		return tensor_fault(file, tensor->name, err, "has the unknown dtype '%.40s'", dtype->text);
	tensor->dtype = dtype->text;
	tensor->type = type_of(dtype->text);
	return MURAL_OK;
}

/* Multiplies from the left, as the format's own reader does: it too refuses a product that overflows before a 0. */
static mural_status check_size(const mu_safetensors *file, const mu_safetensor *tensor, mural_error *err)
{
	uint64_t bits = bits_of(tensor->dtype);
	for (size_t i = 0; i < tensor->n_dims; i++)
		if (__builtin_mul_overflow(bits, tensor->dims[i], &bits))
			return tensor_fault(file, tensor->name, err, "has a shape of more than 2^64 bits");
	if (bits % 8)
		return tensor_fault(file, tensor->name, err, "ends inside a byte: %llu bits of %s",
		                    (unsigned long long)bits, tensor->dtype);
	if (bits / 8 != tensor->bytes)
		return tensor_fault(file, tensor->name, err, "should have %llu bytes by shape and %s, and has %llu",
		                    (unsigned long long)(bits / 8), tensor->dtype, (unsigned long long)tensor->bytes);
	return MURAL_OK;
}

static mural_status check_metadata(const mu_safetensors *file, const mu_hjson_value *metadata, mural_error *err)
{
	if (metadata->kind != MU_HJSON_OBJECT)
		return mu_fail(err, MURAL_DATA, file->path, METADATA " of the safetensors header is no object");
	for (const mu_hjson_value *member = metadata->first; member; member = member->next)
		if (member->kind != MU_HJSON_STRING)
			return mu_fail(err, MURAL_DATA, file->path,
			               METADATA " of the safetensors header may hold texts only, and '%.80s' is none",
			               member->key);
	return MURAL_OK;
}

static int by_place(const void *a, const void *b)
{
	const mu_safetensor *x = a, *y = b;
	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* Each tensor begins where the one before it ends, the last ends with the file. */
static mural_status check_tiling(mu_safetensors *file, mural_error *err)
{
	uint64_t end = 0;
	if (file->count)
		qsort(file->tensors, file->count, sizeof *file->tensors, by_place);
	for (size_t i = 0; i < file->count; i++) {
		const mu_safetensor *tensor = &file->tensors[i];
		if (tensor->begin != end)
			return tensor_fault(
			        file, tensor->name, err, "begins at byte %llu of the data, where %llu was expected: %s",
			        (unsigned long long)tensor->begin, (unsigned long long)end,
			        tensor->begin > end ? "there is a hole in front" : "it overlaps another tensor");
		end += tensor->bytes;
	}
	if (end != file->data_bytes)
		return mu_fail(err, MURAL_DATA, file->path,
		               "the tensors end at byte %llu of the safetensors data, which has %llu bytes",
		               (unsigned long long)end, (unsigned long long)file->data_bytes);
	return MURAL_OK;
}

static mural_status take_entry(mu_safetensors *file, const mu_hjson_value *entry, uint64_t *dims, mural_error *err)
{
	mu_safetensor *tensor = &file->tensors[file->count++];
	tensor->name = entry->key;
	if (entry->kind != MU_HJSON_OBJECT)
		return tensor_fault(file, tensor->name, err, "is described by something else than an object");
	MU_TRY(take_type(file, entry, tensor, err));
	MU_TRY(take_shape(file, entry, dims, tensor, err));
	MU_TRY(take_offsets(file, entry, tensor, err));
	return check_size(file, tensor, err);
}

mural_status mu_safetensors_take_entries(mu_safetensors *file, mural_error *err)
{
	const mu_hjson_value *root = mu_hjson_root(file->header);
	size_t n_dims = 0;
	for (const mu_hjson_value *entry = root->first; entry; entry = entry->next) {
		const mu_hjson_value *shape = mu_hjson_member(entry, "shape");
		n_dims += shape ? shape->count : 0;
	}
	file->tensors = calloc(root->count + 1, sizeof *file->tensors);
	file->dims = calloc(n_dims + 1, sizeof *file->dims);
	if (!file->tensors || !file->dims)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, file->path, "no memory for a table of %zu tensors",
		               root->count);
	uint64_t *dims = file->dims;
	for (const mu_hjson_value *entry = root->first; entry; entry = entry->next) {
		if (strcmp(entry->key, METADATA) == 0) {
			MU_TRY(check_metadata(file, entry, err));
			continue;
		}
		MU_TRY(take_entry(file, entry, dims, err));
		dims += file->tensors[file->count - 1].n_dims;
	}
	return check_tiling(file, err);
}

const char *mu_safetensors_note_of(const mu_safetensors *file, const char *key)
{
	const mu_hjson_value *note = mu_hjson_member(mu_hjson_member(mu_hjson_root(file->header), METADATA), key);
	return note ? note->text : NULL;
}
