/* Weights to and from safetensors. Loading compares the whole file with the whole model first, so that one message can
 * tell everything that does not fit.
 * SPDX-License-Identifier: MIT */
#include "engine/weights.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/safetensors.h"

#define LISTED 4 /* names per complaint; the rest is counted */

static size_t count_tensors(const mu_vit *vit)
{
	size_t n = 0;
	for (size_t u = 0; u < vit->n_units; u++)
		n += vit->units[u].n_tensors;
	return n;
}

static float *place_of(const mu_store *store, size_t unit, const mu_tensor *tensor)
{
	return (float *)mu_store_parameters(store, unit) + tensor->offset;
}

mural_status mu_weights_save(const mu_vit *vit, const mu_store *store, const char *path, mural_error *err)
{
	size_t n = 0;
	if (store->type != MU_F32)
		return mu_bug(err, "weights are saved from fp32 only");
	mu_safetensors_item *items = calloc(count_tensors(vit), sizeof *items);
	if (!items)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, path, "no memory for the table of weights");
	for (size_t u = 0; u < vit->n_units; u++)
		for (size_t i = 0; i < vit->units[u].n_tensors; i++) {
			const mu_tensor *tensor = &vit->units[u].tensors[i];
			items[n++] = (mu_safetensors_item){.name = tensor->name,
			                                   .type = MU_F32,
			                                   .n_dims = (size_t)tensor->n_dims,
			                                   .dims = tensor->dims,
			                                   .data = place_of(store, u, tensor)};
		}
	mural_status status = mu_safetensors_write(path, items, n, err);
	free(items);
	return status;
}

/* One kind of complaint: names until they get too many. */
typedef struct complaint {
	const char *kind;
	size_t count;
	char text[320];
} complaint;

__attribute__((format(printf, 2, 3))) static void complain(complaint *c, const char *format, ...)
{
	size_t used = strlen(c->text);
	if (c->count++ >= LISTED)
		return;
	used += (size_t)snprintf(c->text + used, sizeof c->text - used, "%s", c->count > 1 ? ", " : "");
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(c->text + used, sizeof c->text - used, format, arguments);
	va_end(arguments);
}

static bool same_shape(const mu_tensor *tensor, const mu_safetensor *found)
{
	bool same = found->n_dims == (size_t)tensor->n_dims;
	for (int i = 0; same && i < tensor->n_dims; i++)
		same = found->dims[i] == tensor->dims[i];
	return same;
}

/* "[768, 3, 16, 16]" into a buffer, cut where it ends. */
static const char *shape_text(const uint64_t *dims, size_t n, char text[64])
{
	size_t used = 1;
	snprintf(text, 64, "[");
	for (size_t i = 0; i < n && used < 40; i++)
		used += (size_t)snprintf(text + used, 64 - used, "%s%llu", i ? ", " : "", (unsigned long long)dims[i]);
	snprintf(text + used, 64 - used, "]");
	return text;
}

static const char *model_shape_text(const mu_tensor *tensor, char text[64])
{
	uint64_t dims[MU_TENSOR_MAX_DIMS];
	for (int i = 0; i < tensor->n_dims; i++)
		dims[i] = tensor->dims[i];
	return shape_text(dims, (size_t)tensor->n_dims, text);
}

static const mu_tensor *find_tensor(const mu_vit *vit, const char *name)
{
	for (size_t u = 0; u < vit->n_units; u++)
		for (size_t i = 0; i < vit->units[u].n_tensors; i++)
			if (strcmp(vit->units[u].tensors[i].name, name) == 0)
				return &vit->units[u].tensors[i];
	return NULL;
}

static void compare_tensor(const mu_safetensors *file, const mu_tensor *tensor, complaint *missing, complaint *shapes,
                           complaint *types)
{
	char ours[64], theirs[64];
	const mu_safetensor *found = mu_safetensors_find(file, tensor->name);
	if (!found)
		complain(missing, "%s", tensor->name);
	else if (!same_shape(tensor, found))
		complain(shapes, "%s is %s instead of %s", tensor->name, shape_text(found->dims, found->n_dims, theirs),
		         model_shape_text(tensor, ours));
	else if (found->type != MU_F32)
		complain(types, "%s is %s", tensor->name, found->dtype);
}

/* The commonest mismatch has its own words. */
static mural_status check_classes(const mu_vit *vit, const mu_safetensors *file, const char *path, mural_error *err)
{
	const mu_tensor *head = mu_unit_tensor(&vit->units[vit->n_units - 1], MU_ROLE_HEAD_W);
	const mu_safetensor *found = mu_safetensors_find(file, head->name);
	if (found && found->n_dims == 2 && found->dims[1] == head->dims[1] && found->dims[0] != head->dims[0])
		return mu_fail(
		        err, MURAL_DATA, path,
		        "the weights are for %llu classes (%s), the model has %zu: set the model's classes to %llu",
		        (unsigned long long)found->dims[0], head->name, head->dims[0],
		        (unsigned long long)found->dims[0]);
	return MURAL_OK;
}

static mural_status check_fits(const mu_vit *vit, const mu_safetensors *file, const char *path, mural_error *err)
{
	complaint complaints[] = {{.kind = "missing"},
	                          {.kind = "unexpected"},
	                          {.kind = "of another shape"},
	                          {.kind = "of a type other than F32"}};
	MU_TRY(check_classes(vit, file, path, err));
	for (size_t u = 0; u < vit->n_units; u++)
		for (size_t i = 0; i < vit->units[u].n_tensors; i++)
			compare_tensor(file, &vit->units[u].tensors[i], &complaints[0], &complaints[2], &complaints[3]);
	for (size_t i = 0; i < mu_safetensors_count(file); i++)
		if (!find_tensor(vit, mu_safetensors_at(file, i)->name))
			complain(&complaints[1], "%.80s", mu_safetensors_at(file, i)->name);

	char text[900] = "";
	for (size_t i = 0; i < sizeof complaints / sizeof complaints[0]; i++) {
		const complaint *c = &complaints[i];
		size_t used = strlen(text);
		if (c->count)
			snprintf(text + used, sizeof text - used, "%s%zu %s (%s%s)", used ? "; " : "", c->count,
			         c->kind, c->text, c->count > LISTED ? ", ..." : "");
	}
	if (text[0])
		return mu_fail(err, MURAL_DATA, path, "the weights do not fit the model: tensors %s", text);
	return MURAL_OK;
}

mural_status mu_weights_load(const mu_vit *vit, const mu_store *store, const char *path, mural_error *err)
{
	mu_safetensors *file;
	if (store->type != MU_F32)
		return mu_bug(err, "weights are loaded into fp32 only");
	MU_TRY(mu_safetensors_open(&file, path, err));
	mural_status status = check_fits(vit, file, path, err);
	for (size_t u = 0; u < vit->n_units && status == MURAL_OK; u++)
		for (size_t i = 0; i < vit->units[u].n_tensors && status == MURAL_OK; i++) {
			const mu_tensor *tensor = &vit->units[u].tensors[i];
			const mu_safetensor *found = mu_safetensors_find(file, tensor->name);
			status = mu_safetensors_read(file, found, place_of(store, u, tensor), err);
		}
	mu_safetensors_free(file);
	return status;
}
