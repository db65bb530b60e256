/* safetensors as a weight file: one file, or several that an index names.
 *
 *     model.safetensors.index.json:  {"weight_map": {"cls_token": "model-00001-of-00002.safetensors", ...}, ...}
 *
 * Index and files must agree: every tensor named there lies in the file named there, and no file holds another one.
 * SPDX-License-Identifier: MIT */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/hjson.h"
#include "base/safetensors.h"
#include "weights/file_inside.h"

#define LONGEST_INDEX ((size_t)64 << 20) /* bytes */
#define MOST_SHARDS 4096

/* The open files. */
typedef struct shards {
	mu_safetensors **files;
	char **names; /* base names, NULL for a single file */
	size_t n;
} shards;

/* Where a tensor's bytes are: `place` points into an array of these that goes with the last of them. */
typedef struct shard_tensor {
	const mu_safetensors *file;
	const mu_safetensor *tensor;
} shard_tensor;

typedef struct own {
	shards shards;
	shard_tensor *places;
} own;

static mural_status add_tensor(mu_weights_file *file, const mu_safetensors *from, const mu_safetensor *tensor,
                               shard_tensor *place, mural_error *err)
{
	mu_stored *stored = mu_weights_file_add(file, tensor->name, strlen(tensor->name));
	if (!stored)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, file->path, "no memory for the table of tensors");
	if (tensor->n_dims > MU_STORED_MAX_DIMS)
		return mu_fail(err, MURAL_DATA, file->path, "tensor '%.200s' has %zu dims, at most %d are expected",
		               tensor->name, tensor->n_dims, MU_STORED_MAX_DIMS);
	*place = (shard_tensor){from, tensor};
	stored->place = place;
	stored->dtype = tensor->dtype;
	stored->type = tensor->type;
	stored->n_dims = tensor->n_dims;
	for (size_t i = 0; i < tensor->n_dims; i++)
		stored->dims[i] = tensor->dims[i];
	return mu_stored_count(stored, file->path, err);
}

static mural_status add_tensors(mu_weights_file *file, mural_error *err)
{
	own *o = file->own;
	size_t n = 0, next = 0;
	for (size_t s = 0; s < o->shards.n; s++)
		n += mu_safetensors_count(o->shards.files[s]);
	o->places = calloc(n + 1, sizeof *o->places);
	if (!o->places)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, file->path, "no memory for the table of tensors");
	for (size_t s = 0; s < o->shards.n; s++)
		for (size_t i = 0; i < mu_safetensors_count(o->shards.files[s]); i++)
			MU_TRY(add_tensor(file, o->shards.files[s], mu_safetensors_at(o->shards.files[s], i),
			                  &o->places[next++], err));
	return MURAL_OK;
}

static mural_status make_own(mu_weights_file *file, size_t most, mural_error *err)
{
	own *o = file->own = calloc(1, sizeof *o);
	if (o) {
		o->shards.files = calloc(most, sizeof *o->shards.files);
		o->shards.names = calloc(most, sizeof *o->shards.names);
	}
	if (!o || !o->shards.files || !o->shards.names)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, file->path, "no memory to open weights");
	return MURAL_OK;
}

static mural_status open_single(mu_weights_file *file, mural_error *err)
{
	MU_TRY(make_own(file, 1, err));
	own *o = file->own;
	snprintf(file->described, sizeof file->described, "safetensors");
	MU_TRY(mu_safetensors_open(&o->shards.files[0], file->path, err));
	o->shards.n = 1;
	return add_tensors(file, err);
}

/* ---- Several files. ---- */

static size_t find_shard(const shards *s, const char *name)
{
	size_t i = 0;
	while (i < s->n && strcmp(s->names[i], name) != 0)
		i++;
	return i;
}

/* Only names in the index's own folder: an index must not lead elsewhere. */
static bool is_base_name(const char *name)
{
	return name[0] && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static mural_status open_shard(mu_weights_file *file, const char *name, mural_error *err)
{
	own *o = file->own;
	char path[PATH_MAX];
	const char *slash = strrchr(file->path, '/');
	int folder = slash ? (int)(slash - file->path) + 1 : 0;
	if (!is_base_name(name))
		return mu_fail(err, MURAL_DATA, file->path, "'%.200s' is no name of a file in the index's folder",
		               name);
	if (o->shards.n == MOST_SHARDS)
		return mu_fail(err, MURAL_DATA, file->path, "the index names more than %d files", MOST_SHARDS);
	if (snprintf(path, sizeof path, "%.*s%s", folder, file->path, name) >= (int)sizeof path)
		return mu_fail(err, MURAL_DATA, file->path, "the path of '%.80s' is too long", name);
	char *copy = strdup(name);
	if (!copy)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, file->path, "no memory to open weights");
	o->shards.names[o->shards.n] = copy;
	return mu_safetensors_open(&o->shards.files[o->shards.n++], path, err);
}

static mural_status open_shards(mu_weights_file *file, const mu_hjson_value *map, mural_error *err)
{
	own *o = file->own;
	for (const mu_hjson_value *entry = map->first; entry; entry = entry->next) {
		if (entry->kind != MU_HJSON_STRING)
			return mu_fail(err, MURAL_DATA, file->path, "the index names no file for tensor '%.200s'",
			               entry->key);
		size_t s = find_shard(&o->shards, entry->text);
		if (s == o->shards.n)
			MU_TRY(open_shard(file, entry->text, err));
		if (!mu_safetensors_find(o->shards.files[s], entry->key))
			return mu_fail(err, MURAL_DATA, file->path,
			               "tensor '%.200s' is missing in '%.80s', where the index has it", entry->key,
			               entry->text);
	}
	size_t held = 0;
	for (size_t s = 0; s < o->shards.n; s++)
		held += mu_safetensors_count(o->shards.files[s]);
	if (held != map->count)
		return mu_fail(err, MURAL_DATA, file->path, "the files hold %zu tensors, and the index names %zu", held,
		               map->count);
	snprintf(file->described, sizeof file->described, "safetensors in %zu file%s", o->shards.n,
	         o->shards.n == 1 ? "" : "s");
	return add_tensors(file, err);
}

static mural_status open_index(mu_weights_file *file, mural_error *err)
{
	char *text;
	mu_hjson_source source = {.name = file->path, .strict = true, .kind = MURAL_DATA};
	mu_hjson *tree = NULL;
	MU_TRY(make_own(file, MOST_SHARDS, err));
	MU_TRY(mu_file_read(file->path, "index of weights", LONGEST_INDEX, MURAL_DATA, &text, &source.bytes, err));
	source.text = text;
	mural_status status = mu_hjson_read(&tree, &source, err);
	free(text);
	MU_TRY(status);
	const mu_hjson_value *map = mu_hjson_member(mu_hjson_root(tree), "weight_map");
	if (!map || map->kind != MU_HJSON_OBJECT || !map->count)
		status = mu_fail(err, MURAL_DATA, file->path,
		                 "no index of weights: expected an object 'weight_map' of tensors and their files");
	else
		status = open_shards(file, map, err);
	mu_hjson_free(tree);
	return status;
}

static mural_status read_tensor(const mu_weights_file *file, const mu_stored *tensor, void *to, mural_error *err)
{
	(void)file;
	const shard_tensor *place = tensor->place;
	return mu_safetensors_read(place->file, place->tensor, to, err);
}

static const char *note_of(const mu_weights_file *file, const char *key)
{
	const own *o = file->own;
	return o->shards.n ? mu_safetensors_note_of(o->shards.files[0], key) : NULL;
}

static void release(mu_weights_file *file)
{
	own *o = file->own;
	if (!o)
		return;
	for (size_t s = 0; s < o->shards.n; s++) {
		mu_safetensors_free(o->shards.files[s]);
		free(o->shards.names[s]);
	}
	free(o->shards.files);
	free(o->shards.names);
	free(o->places);
	free(o);
}

const mu_weights_format mu_weights_safetensors = {open_single, read_tensor, note_of, release};
const mu_weights_format mu_weights_index = {open_index, read_tensor, note_of, release};
