/* Weight files: which format, what all formats have in common. SPDX-License-Identifier: MIT */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "weights/convert.h"
#include "weights/file_inside.h"

#define SNIFFED 16 /* bytes of a file that tell its format */

/* Names that are looked for in a folder, in this order. */
static const char *const usual_names[] = {"weights.safetensors", "model.safetensors", "model.safetensors.index.json",
                                          "pytorch_model.bin"};

mu_dtype mu_stored_type(const char *dtype)
{
	mu_dtype type = 0;
	while (type < MU_DTYPE_COUNT && strcmp(mu_dtype_text(type), dtype) != 0)
		type++;
	return type;
}

/* Prefixes that training wrappers put in front of every name. */
static const char *bare(const char *name, size_t *bytes)
{
	static const char *const wrappers[] = {"module.", "_orig_mod."};
	for (bool found = true; found;) {
		found = false;
		for (size_t i = 0; i < sizeof wrappers / sizeof *wrappers; i++) {
			size_t length = strlen(wrappers[i]);
			if (*bytes > length && memcmp(name, wrappers[i], length) == 0) {
				name += length;
				*bytes -= length;
				found = true;
			}
		}
	}
	return name;
}

mu_stored *mu_weights_file_add(mu_weights_file *file, const char *name, size_t bytes)
{
	if (file->n == file->room) {
		size_t room = 2 * file->room + 64;
		mu_stored *grown = realloc(file->tensors, room * sizeof *grown);
		if (!grown)
			return NULL;
		file->tensors = grown;
		file->room = room;
	}
	mu_stored *tensor = &file->tensors[file->n];
	name = bare(name, &bytes);
	*tensor = (mu_stored){.name = strndup(name, bytes), .type = MU_DTYPE_COUNT, .dtype = ""};
	if (!tensor->name)
		return NULL;
	file->n++;
	return tensor;
}

mural_status mu_stored_count(mu_stored *tensor, const char *path, mural_error *err)
{
	tensor->elements = 1;
	for (size_t i = 0; i < tensor->n_dims; i++)
		if (__builtin_mul_overflow(tensor->elements, tensor->dims[i], &tensor->elements) ||
		    tensor->elements > SIZE_MAX / 16)
			return mu_fail(err, MURAL_DATA, path, "tensor '%.200s' has a shape of too many elements",
			               tensor->name);
	return MURAL_OK;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const mu_stored *)a)->name, ((const mu_stored *)b)->name);
}

static mural_status sort_names(mu_weights_file *file, mural_error *err)
{
	if (file->n == 0)
		return mu_fail(err, MURAL_DATA, file->path, "there is no tensor in the file");
	qsort(file->tensors, file->n, sizeof *file->tensors, by_name);
	for (size_t i = 1; i < file->n; i++)
		if (by_name(&file->tensors[i - 1], &file->tensors[i]) == 0)
			return mu_fail(err, MURAL_DATA, file->path, "there are two tensors '%.200s'",
			               file->tensors[i].name);
	return MURAL_OK;
}

/* A header's length in eight bytes, the least significant first, and its brace. The length may look like anything: one of 0x280 bytes
 * begins as a pickle does. No other format has both the zeros, which a header that may be read has there, and the brace. */
static bool begins_as_safetensors(const char *head)
{
	return memcmp(head + 4, "\0\0\0\0{", 5) == 0;
}

/* By the first bytes. What is nothing else is left to safetensors, which says what it expected. */
static mural_status choose_format(mu_weights_file *file, mural_error *err)
{
	char head[SNIFFED + 1] = "";
	int fd = mu_open_to_read(file->path);
	ssize_t n = fd < 0 ? -1 : pread(fd, head, SNIFFED, 0);
	int reason = errno;
	if (fd >= 0)
		close(fd);
	if (n < 0 && reason == ESPIPE)
		return mu_fail(err, MURAL_DATA, file->path, "no weights: not a regular file");
	if (n < 0)
		return mu_fail(err, reason == ENOENT || reason == ENOTDIR ? MURAL_DATA : MURAL_FAILED, file->path,
		               "cannot open the weights: %s", strerror(reason));
	size_t name = strlen(file->path);
	bool is_json = name > 5 && strcmp(file->path + name - 5, ".json") == 0;
	if (begins_as_safetensors(head))
		file->format = &mu_weights_safetensors;
	else if (memcmp(head, "PK\3\4", 4) == 0)
		file->format = &mu_weights_pth; /* or npz: it looks inside */
	else if (is_json)
		file->format = &mu_weights_index;
	else if (memcmp(head, "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9", 9) == 0)
		return mu_fail(err, MURAL_DATA, file->path,
		               "this is PyTorch's format from before version 1.6, which only Python can read: load it "
		               "there with torch.load and write it again with torch.save or safetensors");
	else if (head[0] == '\x80' && n > 1)
		return mu_fail(err, MURAL_DATA, file->path,
		               "this is a bare Python pickle: save the state_dict with torch.save or safetensors");
	else if (memcmp(head, "\x93NUMPY", 6) == 0)
		return mu_fail(err, MURAL_DATA, file->path,
		               "this is a single NumPy array: expected an .npz with the tensors of a model");
	else
		file->format = &mu_weights_safetensors;
	return MURAL_OK;
}

/* A folder stands for the usual file in it. */
static mural_status find_file(mu_weights_file *file, const char *path, mural_error *err)
{
	struct stat facts;
	char inside[PATH_MAX];
	file->path = strdup(path);
	if (!file->path)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, path, "no memory to open weights");
	if (stat(path, &facts) != 0 || !S_ISDIR(facts.st_mode))
		return MURAL_OK;
	for (size_t i = 0; i < sizeof usual_names / sizeof *usual_names; i++) {
		snprintf(inside, sizeof inside, "%s/%s", path, usual_names[i]);
		if (access(inside, F_OK) != 0)
			continue;
		free(file->path);
		file->path = strdup(inside);
		return file->path ? MURAL_OK : mu_fail(err, MURAL_OUT_OF_MEMORY, path, "no memory to open weights");
	}
	return mu_fail(err, MURAL_DATA, path,
	               "there are no weights in this folder: expected %s, %s, %s or %s, or name the file itself",
	               usual_names[0], usual_names[1], usual_names[2], usual_names[3]);
}

mural_status mu_weights_file_open(mu_weights_file **result, const char *path, mural_error *err)
{
	*result = NULL;
	mu_weights_file *file = calloc(1, sizeof *file);
	if (!file)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, path, "no memory to open weights");
	mural_status status = find_file(file, path, err);
	if (status == MURAL_OK)
		status = choose_format(file, err);
	if (status == MURAL_OK)
		status = file->format->open(file, err);
	if (status == MURAL_OK)
		status = sort_names(file, err);
	if (status != MURAL_OK)
		mu_weights_file_free(file);
	else
		*result = file;
	return status;
}

void mu_weights_file_free(mu_weights_file *file)
{
	if (!file)
		return;
	if (file->format)
		file->format->release(file);
	for (size_t i = 0; i < file->n; i++)
		free(file->tensors[i].name);
	free(file->tensors);
	free(file->path);
	free(file);
}

const char *mu_weights_file_path(const mu_weights_file *file)
{
	return file->path;
}

const char *mu_weights_file_format(const mu_weights_file *file)
{
	return file->described;
}

const char *mu_weights_file_note(const mu_weights_file *file, const char *key)
{
	return file->format->note ? file->format->note(file, key) : NULL;
}

size_t mu_weights_file_count(const mu_weights_file *file)
{
	return file->n;
}

const mu_stored *mu_weights_file_at(const mu_weights_file *file, size_t i)
{
	return &file->tensors[i];
}

const mu_stored *mu_weights_file_find(const mu_weights_file *file, const char *name)
{
	mu_stored key = {.name = (char *)name};
	return bsearch(&key, file->tensors, file->n, sizeof key, by_name);
}

bool mu_stored_is_float(const mu_stored *tensor)
{
	return tensor->type == MU_F32 || tensor->type == MU_F16 || tensor->type == MU_BF16 || tensor->type == MU_F64;
}

mural_status mu_weights_file_read(const mu_weights_file *file, const mu_stored *tensor, float *to, mural_error *err)
{
	if (!mu_stored_is_float(tensor))
		return mu_fail(
		        err, MURAL_DATA, file->path,
		        "tensor '%.200s' is of type %.40s: expected floating-point numbers (F32, F16, BF16, F64)",
		        tensor->name, tensor->dtype);
	if (tensor->type == MU_F32)
		return file->format->read(file, tensor, to, err);
	size_t bytes = (size_t)tensor->elements * mu_dtype_bytes(tensor->type);
	void *raw = malloc(bytes ? bytes : 1);
	if (!raw)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, file->path, "no memory for tensor '%.200s'", tensor->name);
	mural_status status = file->format->read(file, tensor, raw, err);
	if (status == MURAL_OK)
		mu_to_floats(tensor->type, raw, (size_t)tensor->elements, to);
	free(raw);
	return status;
}
