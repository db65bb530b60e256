/* NumPy's npz: a ZIP of arrays, stored or deflated.
 *
 *     NAME.npy:  93 'NUMPY' major minor | header length u16 (u32 from version 2) | {'descr': '<f4', 'fortran_order':
 *                False, 'shape': (768, 12, 64), } | row-major bytes
 *
 * Opening unpacks the headers and compares what they promise with the members' sizes.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "weights/file_inside.h"
#include "weights/zip.h"

#define LONGEST_HEADER 4096 /* bytes, of a list of three facts */
#define FRONT (12 + LONGEST_HEADER)

/* Where a tensor's bytes are. */
typedef struct array {
	const mu_zip_member *member;
	size_t header; /* bytes in front of them */
} array;

typedef struct own {
	mu_zip zip;
	array *arrays;
} own;

static const struct {
	const char *descr, *dtype;
} types[] = {{"<f4", "F32"}, {"<f2", "F16"}, {"<f8", "F64"}, {"|V2", "BF16"}, {"<V2", "BF16"}, {"<i4", "I32"},
             {"<i8", "I64"}, {"|u1", "U8"},  {"|i1", "I8"},  {"|b1", "BOOL"}, {"<i2", "I16"}};

static mural_status bad_header(const mu_weights_file *file, const array *a, const char *what, mural_error *err)
{
	return mu_fail(err, MURAL_DATA, file->path, "array '%.200s' has a damaged header: %s", a->member->name, what);
}

/* What stands behind 'key': in the header's dictionary, or NULL. */
static const char *value_of(const char *header, const char *key)
{
	char quoted[32];
	snprintf(quoted, sizeof quoted, "'%s'", key);
	const char *at = strstr(header, quoted);
	if (!at)
		return NULL;
	at += strlen(quoted);
	at += strspn(at, " ");
	return *at == ':' ? at + 1 + strspn(at + 1, " ") : NULL;
}

static mural_status take_type(const mu_weights_file *file, const array *a, const char *header, mu_stored *stored,
                              mural_error *err)
{
	const char *descr = value_of(header, "descr");
	size_t bytes = descr && *descr == '\'' ? strcspn(descr + 1, "'") : 0;
	if (bytes == 0)
		return bad_header(file, a, "there is no 'descr'", err);
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (strlen(types[i].descr) == bytes && memcmp(descr + 1, types[i].descr, bytes) == 0) {
			stored->dtype = types[i].dtype;
			stored->type = mu_stored_type(stored->dtype);
			return MURAL_OK;
		}
	return mu_fail(err, MURAL_DATA, file->path,
	               "array '%.200s' is of type '%.*s': expected little-endian numbers such as '<f4'",
	               a->member->name, (int)(bytes < 40 ? bytes : 40), descr + 1);
}

static mural_status take_shape(const mu_weights_file *file, const array *a, const char *header, mu_stored *stored,
                               mural_error *err)
{
	const char *order = value_of(header, "fortran_order"), *shape = value_of(header, "shape");
	if (!order || strncmp(order, "False", 5) != 0)
		return mu_fail(err, MURAL_DATA, file->path,
		               "array '%.200s' is not row-major: save it with numpy.ascontiguousarray",
		               a->member->name);
	if (!shape || *shape != '(')
		return bad_header(file, a, "there is no 'shape'", err);
	for (shape++; *shape != ')';) {
		char *end;
		if (*shape < '0' || *shape > '9' || stored->n_dims == MU_STORED_MAX_DIMS)
			return bad_header(file, a, "its shape is no short list of counts", err);
		stored->dims[stored->n_dims++] = strtoull(shape, &end, 10);
		shape = end + strspn(end, ", ");
	}
	return mu_stored_count(stored, file->path, err);
}

/* The header's text, NUL-terminated, and where it ends. */
static mural_status read_header(const mu_weights_file *file, array *a, char front[FRONT + 1], const char **header,
                                mural_error *err)
{
	const own *o = file->own;
	size_t n = a->member->bytes < FRONT ? (size_t)a->member->bytes : FRONT;
	MU_TRY(mu_zip_read_front(&o->zip, a->member, front, n, err));
	const unsigned char *b = (const unsigned char *)front;
	if (n < 12 || memcmp(front, "\x93NUMPY", 6) != 0 || b[6] < 1 || b[6] > 3)
		return bad_header(file, a, "it does not begin as a NumPy array", err);
	size_t begin = b[6] == 1 ? 10 : 12;
	uint64_t length = b[6] == 1 ? b[8] | (uint64_t)b[9] << 8
	                            : b[8] | (uint64_t)b[9] << 8 | (uint64_t)b[10] << 16 | (uint64_t)b[11] << 24;
	if (length > n - begin)
		return bad_header(file, a, "it is cut or too long", err);
	a->header = begin + (size_t)length;
	front[a->header] = '\0';
	*header = front + begin;
	return MURAL_OK;
}

static mural_status add_array(mu_weights_file *file, array *a, mural_error *err)
{
	char front[FRONT + 1];
	const char *header = "";
	size_t name = strlen(a->member->name);
	if (name < 5 || strcmp(a->member->name + name - 4, ".npy") != 0)
		return mu_fail(err, MURAL_DATA, file->path,
		               "member '%.200s' is no NumPy array, and there is no data.pkl as in PyTorch's files: "
		               "expected weights in one of the two",
		               a->member->name);
	MU_TRY(read_header(file, a, front, &header, err));
	mu_stored *stored = mu_weights_file_add(file, a->member->name, name - 4);
	if (!stored)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, file->path, "no memory for the table of tensors");
	stored->place = a;
	MU_TRY(take_type(file, a, header, stored, err));
	MU_TRY(take_shape(file, a, header, stored, err));
	size_t bytes = stored->type < MU_DTYPE_COUNT ? mu_dtype_bytes(stored->type) : 0;
	if (bytes && a->member->bytes - a->header != stored->elements * bytes)
		return mu_fail(err, MURAL_DATA, file->path,
		               "array '%.200s' has %llu elements by its shape and %llu bytes: the file is damaged",
		               a->member->name, (unsigned long long)stored->elements,
		               (unsigned long long)(a->member->bytes - a->header));
	return MURAL_OK;
}

static mural_status open_archive(mu_weights_file *file, mural_error *err)
{
	own *o = file->own = calloc(1, sizeof *o);
	if (!o)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, file->path, "no memory to open weights");
	MU_TRY(mu_zip_open(&o->zip, file->path, err));
	snprintf(file->described, sizeof file->described, "NumPy npz");
	o->arrays = calloc(o->zip.n, sizeof *o->arrays);
	if (!o->arrays)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, file->path, "no memory for the table of tensors");
	for (size_t i = 0; i < o->zip.n; i++) {
		o->arrays[i].member = &o->zip.members[i];
		MU_TRY(add_array(file, &o->arrays[i], err));
	}
	return MURAL_OK;
}

/* Arrays are behind their headers, so both are unpacked together. */
static mural_status read_array(const mu_weights_file *file, const mu_stored *stored, void *to, mural_error *err)
{
	const own *o = file->own;
	const array *a = stored->place;
	size_t bytes = (size_t)stored->elements * mu_dtype_bytes(stored->type);
	char *whole = malloc((size_t)a->member->bytes);
	if (!whole)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, file->path, "no memory for array '%.200s'", stored->name);
	mural_status status = mu_zip_read_front(&o->zip, a->member, whole, (size_t)a->member->bytes, err);
	if (status == MURAL_OK)
		memcpy(to, whole + a->header, bytes);
	free(whole);
	return status;
}

static void release(mu_weights_file *file)
{
	own *o = file->own;
	if (!o)
		return;
	mu_zip_release(&o->zip);
	free(o->arrays);
	free(o);
}

const mu_weights_format mu_weights_npz = {open_archive, read_array, NULL, release};
