/* PyTorch's files since 1.6: a ZIP of stored members below one folder.
 *
 *     NAME/data.pkl      the pickle: names, shapes, strides, which storage
 *     NAME/data/0 ...    the storages' bytes
 *     NAME/byteorder     "little", in newer files
 *
 * Every tensor is checked against its storage before one is read. An archive without such a pickle is left to npz.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "weights/file_inside.h"
#include "weights/pth_pickle.h"
#include "weights/zip.h"

#define PICKLE "data.pkl"

typedef struct own {
	mu_zip zip;
	uint8_t *pickle;
	mu_pth_tensor *tensors;
	const mu_zip_member **storages; /* by tensor */
	size_t n;
} own;

/* NAME/data.pkl, whatever NAME is. */
static const mu_zip_member *find_pickle(const mu_zip *zip)
{
	for (size_t i = 0; i < zip->n; i++) {
		const char *slash = strchr(zip->members[i].name, '/');
		if (slash && strcmp(slash + 1, PICKLE) == 0)
			return &zip->members[i];
	}
	return NULL;
}

static const mu_zip_member *beside(const mu_zip *zip, const mu_zip_member *pickle, const char *folder, const char *name,
                                   size_t bytes)
{
	char path[512];
	int root = (int)(strlen(pickle->name) - strlen(PICKLE));
	if (snprintf(path, sizeof path, "%.*s%s%.*s", root, pickle->name, folder, (int)bytes, name) >= (int)sizeof path)
		return NULL;
	return mu_zip_find(zip, path);
}

static mural_status packed(const mu_weights_file *file, const mu_zip_member *member, mural_error *err)
{
	return mu_fail(err, MURAL_DATA, file->path,
	               "member '%.200s' is compressed, and torch.save never does that: unpack the archive and store it "
	               "again without compression",
	               member->name);
}

static mural_status check_byte_order(const mu_weights_file *file, const mu_zip_member *pickle, mural_error *err)
{
	const own *o = file->own;
	char order[8] = "";
	const mu_zip_member *member = beside(&o->zip, pickle, "", "byteorder", 9);
	if (!member)
		return MURAL_OK;
	if (member->bytes < sizeof order)
		MU_TRY(mu_zip_read_front(&o->zip, member, order, (size_t)member->bytes, err));
	if (strcmp(order, "little") == 0)
		return MURAL_OK;
	return mu_fail(err, MURAL_DATA, file->path, "its numbers have the byte order '%s': expected little", order);
}

/* The farthest element of a tensor must lie inside its storage, and the storage inside its member. */
static mural_status check_tensor(const mu_weights_file *file, const mu_stored *stored, const mu_pth_tensor *t,
                                 const mu_zip_member *storage, mural_error *err)
{
	size_t bytes = stored->type < MU_DTYPE_COUNT ? mu_dtype_bytes(stored->type) : 1;
	uint64_t last = t->offset, span, wanted;
	bool over = __builtin_mul_overflow(t->storage_elements, bytes, &wanted) || wanted > storage->bytes;
	for (size_t i = 0; !over && stored->elements > 0 && i < t->n_dims; i++)
		over = __builtin_mul_overflow(t->dims[i] - 1, t->strides[i], &span) ||
		       __builtin_add_overflow(last, span, &last);
	if (over || (stored->elements > 0 && last >= t->storage_elements))
		return mu_fail(err, MURAL_DATA, file->path,
		               "tensor '%.200s' reaches to element %llu of a storage of %llu, whose member has %llu "
		               "bytes: the file is damaged",
		               stored->name, (unsigned long long)last, (unsigned long long)t->storage_elements,
		               (unsigned long long)storage->bytes);
	/* A shape may repeat one element by a stride of 0: the memory asked for must not exceed what the file has. */
	if (stored->elements > t->storage_elements)
		return mu_fail(err, MURAL_DATA, file->path,
		               "tensor '%.200s' has more elements than its storage: save it with .contiguous()",
		               stored->name);
	return MURAL_OK;
}

static mural_status add_tensor(mu_weights_file *file, const mu_zip_member *pickle, size_t i, mural_error *err)
{
	own *o = file->own;
	const mu_pth_tensor *t = &o->tensors[i];
	mu_stored *stored = mu_weights_file_add(file, t->name, t->name_bytes);
	if (!stored)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, file->path, "no memory for the table of tensors");
	o->storages[i] = beside(&o->zip, pickle, "data/", t->storage, t->storage_bytes);
	if (!o->storages[i])
		return mu_fail(err, MURAL_DATA, file->path, "the storage '%.*s' of tensor '%.200s' is missing",
		               (int)(t->storage_bytes < 80 ? t->storage_bytes : 80), t->storage, stored->name);
	if (o->storages[i]->deflated)
		return packed(file, o->storages[i], err);
	stored->place = t;
	stored->dtype = t->dtype;
	stored->type = mu_stored_type(t->dtype);
	stored->n_dims = t->n_dims;
	memcpy(stored->dims, t->dims, sizeof stored->dims);
	MU_TRY(mu_stored_count(stored, file->path, err));
	return check_tensor(file, stored, t, o->storages[i], err);
}

static mural_status open_pickle(mu_weights_file *file, const mu_zip_member *pickle, mural_error *err)
{
	own *o = file->own;
	snprintf(file->described, sizeof file->described, "PyTorch file");
	if (pickle->deflated)
		return packed(file, pickle, err);
	if (pickle->bytes > MU_PTH_LONGEST_PICKLE)
		return mu_fail(err, MURAL_DATA, file->path, "its pickle has %s: expected at most %s",
		               MU_SIZE(pickle->bytes), MU_SIZE(MU_PTH_LONGEST_PICKLE));
	MU_TRY(check_byte_order(file, pickle, err));
	o->pickle = malloc(pickle->bytes + 1);
	if (!o->pickle)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, file->path, "no memory to read the pickle");
	MU_TRY(mu_zip_read(&o->zip, pickle, 0, o->pickle, (size_t)pickle->bytes, err));
	char inside[1200];
	snprintf(inside, sizeof inside, "%.900s:%.200s", file->path, pickle->name);
	MU_TRY(mu_pth_pickle_read(inside, o->pickle, (size_t)pickle->bytes, &o->tensors, &o->n, err));
	o->storages = calloc(o->n + 1, sizeof *o->storages);
	if (!o->storages)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, file->path, "no memory for the table of tensors");
	for (size_t i = 0; i < o->n; i++)
		MU_TRY(add_tensor(file, pickle, i, err));
	return MURAL_OK;
}

static void release(mu_weights_file *file)
{
	own *o = file->own;
	if (!o)
		return;
	mu_zip_release(&o->zip);
	free(o->pickle);
	free(o->tensors);
	free(o->storages);
	free(o);
	file->own = NULL;
}

static mural_status open_archive(mu_weights_file *file, mural_error *err)
{
	own *o = file->own = calloc(1, sizeof *o);
	if (!o)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, file->path, "no memory to open weights");
	MU_TRY(mu_zip_open(&o->zip, file->path, err));
	const mu_zip_member *pickle = find_pickle(&o->zip);
	if (pickle)
		return open_pickle(file, pickle, err);
	release(file);
	file->format = &mu_weights_npz;
	return mu_weights_npz.open(file, err);
}

/* ---- Reading. ---- */

static bool is_contiguous(const mu_pth_tensor *t)
{
	uint64_t stride = 1;
	for (size_t i = t->n_dims; i-- > 0;) {
		if (t->dims[i] != 1 && t->strides[i] != stride)
			return false;
		stride *= t->dims[i];
	}
	return true;
}

/* Copies elements one by one out of the whole storage. */
static void gather(const mu_pth_tensor *t, uint64_t elements, size_t bytes, const char *storage, char *to)
{
	uint64_t index[MU_STORED_MAX_DIMS] = {0}, from = t->offset;
	for (uint64_t e = 0; e < elements; e++) {
		memcpy(to + e * bytes, storage + from * bytes, bytes);
		for (size_t i = t->n_dims; i-- > 0;) {
			from += t->strides[i];
			if (++index[i] < t->dims[i])
				break;
			from -= t->strides[i] * t->dims[i];
			index[i] = 0;
		}
	}
}

static mural_status read_tensor(const mu_weights_file *file, const mu_stored *stored, void *to, mural_error *err)
{
	const own *o = file->own;
	const mu_pth_tensor *t = stored->place;
	const mu_zip_member *storage = o->storages[t - o->tensors];
	size_t bytes = mu_dtype_bytes(stored->type), all = (size_t)t->storage_elements * bytes;
	if (stored->elements == 0)
		return MURAL_OK;
	if (is_contiguous(t))
		return mu_zip_read(&o->zip, storage, t->offset * bytes, to, (size_t)stored->elements * bytes, err);
	char *copy = malloc(all);
	if (!copy)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, file->path, "no memory for the storage of '%.200s'",
		               stored->name);
	mural_status status = mu_zip_read(&o->zip, storage, 0, copy, all, err);
	if (status == MURAL_OK)
		gather(t, stored->elements, bytes, copy, to);
	free(copy);
	return status;
}

const mu_weights_format mu_weights_pth = {open_archive, read_tensor, NULL, release};
