/* safetensors: reading. The header's tree is kept, since names and types point into it.
 * SPDX-License-Identifier: MIT */
#include "base/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hjson.h"

#define LENGTH_BYTES 8
#define LONGEST_HEADER 100000000u /* the format's own limit */
#define METADATA "__metadata__"
#define WHERE 1280 /* path, tensor and more words */

struct mu_safetensors {
	char *path;
	int fd;
	uint64_t data; /* where tensors begin in the file */
	uint64_t data_bytes;
	mu_hjson *header;
	mu_safetensor *tensors;
	uint64_t *dims; /* of all tensors, one behind the other */
	size_t count;
};

/* X(name, bits). */
#define TYPES(X)          \
	X(BOOL, 8)        \
	X(U8, 8)          \
	X(I8, 8)          \
	X(F8_E5M2, 8)     \
	X(F8_E4M3, 8)     \
	X(F8_E8M0, 8)     \
	X(F8_E5M2FNUZ, 8) \
	X(F8_E4M3FNUZ, 8) \
	X(I16, 16)        \
	X(U16, 16)        \
	X(F16, 16)        \
	X(BF16, 16)       \
	X(I32, 32)        \
	X(U32, 32)        \
	X(F32, 32)        \
	X(C64, 64)        \
	X(I64, 64)        \
	X(U64, 64)        \
	X(F64, 64)        \
	X(F4, 4)          \
	X(F6_E2M3, 6)     \
	X(F6_E3M2, 6)

static const struct {
	const char *name;
	unsigned bits;
} types[] = {
#define X(name, bits) {#name, bits},
        TYPES(X)
#undef X
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

static mural_status system_failure(const char *path, const char *what, mural_error *err)
{
	int reason = errno;
	mural_status status = reason == ENOENT || reason == ENOTDIR ? MURAL_DATA : MURAL_FAILED;
	return mu_fail(err, status, path, "%s: %s", what, strerror(reason));
}

/* Exactly `bytes` from `offset`. */
static mural_status read_at(const mu_safetensors *file, uint64_t offset, void *to, size_t bytes, mural_error *err)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t got = pread(file->fd, (char *)to + done, bytes - done, (off_t)(offset + done));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return system_failure(file->path, "cannot read the safetensors file", err);
		if (got == 0)
			return mu_fail(err, MURAL_DATA, file->path,
			               "the safetensors file ends at byte %llu, while it is being read",
			               (unsigned long long)(offset + done));
		done += (size_t)got;
	}
	return MURAL_OK;
}

/* Says which tensor of which file. */
static mural_status tensor_fault(const mu_safetensors *file, const char *name, mural_error *err, const char *format,
                                 ...) __attribute__((format(printf, 4, 5)));

static mural_status tensor_fault(const mu_safetensors *file, const char *name, mural_error *err, const char *format,
                                 ...)
{
	char where[WHERE], message[256];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(message, sizeof message, format, arguments);
	va_end(arguments);
	snprintf(where, sizeof where, "%s: tensor '%.200s'", file->path, name);
	return mu_fail(err, MURAL_DATA, where, "%s", message);
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
			return tensor_fault(file, tensor->name, err, "dim %zu of the shape is no count",
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
		return tensor_fault(file, tensor->name, err,
		                    "lies at bytes %llu to %llu of the data, which has %llu bytes",
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

static int by_name(const void *a, const void *b)
{
	return strcmp(((const mu_safetensor *)a)->name, ((const mu_safetensor *)b)->name);
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
			        file, tensor->name, err, "%s: begins at byte %llu of the data, where %llu was expected",
			        tensor->begin > end ? "there is a hole in front" : "overlaps another tensor",
			        (unsigned long long)tensor->begin, (unsigned long long)end);
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

static mural_status take_entries(mu_safetensors *file, mural_error *err)
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
	return MURAL_OK;
}

static mural_status parse_header(mu_safetensors *file, size_t bytes, mural_error *err)
{
	char *text = malloc(bytes + 1);
	if (!text)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, file->path, "no memory for a header of %zu bytes", bytes);
	mural_status status = read_at(file, LENGTH_BYTES, text, bytes, err);
	if (status == MURAL_OK && (bytes == 0 || text[0] != '{'))
		status = mu_fail(err, MURAL_DATA, file->path,
		                 "no safetensors file: byte %d should begin the header with '{'", LENGTH_BYTES);
	if (status == MURAL_OK) {
		mu_hjson_source source = {
		        .name = file->path, .text = text, .bytes = bytes, .strict = true, .kind = MURAL_DATA};
		status = mu_hjson_read(&file->header, &source, err);
	}
	free(text);
	return status;
}

/* The header's length, once it fits the file and the format. */
static mural_status header_bytes(const mu_safetensors *file, uint64_t file_bytes, size_t *bytes, mural_error *err)
{
	unsigned char raw[LENGTH_BYTES];
	uint64_t length = 0;
	if (file_bytes < LENGTH_BYTES)
		return mu_fail(err, MURAL_DATA, file->path,
		               "no safetensors file: it has %llu bytes, and the header's length alone takes %d",
		               (unsigned long long)file_bytes, LENGTH_BYTES);
	MU_TRY(read_at(file, 0, raw, sizeof raw, err));
	for (int i = LENGTH_BYTES - 1; i >= 0; i--)
		length = length << 8 | raw[i];
	if (length > LONGEST_HEADER || length > file_bytes - LENGTH_BYTES)
		return mu_fail(err, MURAL_DATA, file->path,
		               "no safetensors file, or cut short: a header of %llu bytes in a file of %llu "
		               "(headers have at most %u)",
		               (unsigned long long)length, (unsigned long long)file_bytes, LONGEST_HEADER);
	*bytes = (size_t)length;
	return MURAL_OK;
}

static mural_status open_and_check(mu_safetensors *file, mural_error *err)
{
	struct stat facts;
	size_t bytes = 0;
	file->fd = open(file->path, O_RDONLY | O_CLOEXEC);
	if (file->fd < 0 || fstat(file->fd, &facts) != 0)
		return system_failure(file->path, "cannot open the safetensors file", err);
	if (!S_ISREG(facts.st_mode))
		return mu_fail(err, MURAL_DATA, file->path, "no safetensors file: not a regular file");
	MU_TRY(header_bytes(file, (uint64_t)facts.st_size, &bytes, err));
	MU_TRY(parse_header(file, bytes, err));
	file->data = LENGTH_BYTES + (uint64_t)bytes;
	file->data_bytes = (uint64_t)facts.st_size - file->data;
	MU_TRY(take_entries(file, err));
	MU_TRY(check_tiling(file, err));
	if (file->count)
		qsort(file->tensors, file->count, sizeof *file->tensors, by_name);
	return MURAL_OK;
}

mural_status mu_safetensors_open(mu_safetensors **result, const char *path, mural_error *err)
{
	*result = NULL;
	mu_safetensors *file = calloc(1, sizeof *file);
	if (!file)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, path, "no memory to open a file");
	file->fd = -1;
	file->path = strdup(path);
	mural_status status = file->path ? open_and_check(file, err)
	                                 : mu_fail(err, MURAL_OUT_OF_MEMORY, path, "no memory to open a file");
	if (status != MURAL_OK) {
		mu_safetensors_free(file);
		return status;
	}
	*result = file;
	return MURAL_OK;
}

void mu_safetensors_free(mu_safetensors *file)
{
	if (!file)
		return;
	if (file->fd >= 0)
		close(file->fd);
	mu_hjson_free(file->header);
	free(file->tensors);
	free(file->dims);
	free(file->path);
	free(file);
}

size_t mu_safetensors_count(const mu_safetensors *file)
{
	return file->count;
}

const mu_safetensor *mu_safetensors_at(const mu_safetensors *file, size_t i)
{
	return &file->tensors[i];
}

const mu_safetensor *mu_safetensors_find(const mu_safetensors *file, const char *name)
{
	mu_safetensor key = {.name = name};
	return file->count ? bsearch(&key, file->tensors, file->count, sizeof key, by_name) : NULL;
}

mural_status mu_safetensors_read(const mu_safetensors *file, const mu_safetensor *tensor, void *to, mural_error *err)
{
	return read_at(file, file->data + tensor->begin, to, (size_t)tensor->bytes, err);
}
