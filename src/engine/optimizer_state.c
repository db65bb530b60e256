/* Moments to and from safetensors. A table with a row per moment of each parameter serves both ways; reading counts in it how
 * far each row is filled.
 * SPDX-License-Identifier: MIT */
#include "engine/optimizer_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/safetensors.h"

typedef struct moment {
	char name[sizeof((mu_tensor *)0)->name + 16]; /* "exp_avg.NAME" */
	char range[64]; /* "0 TOTAL TOTAL" */
	float *values;
	size_t elements;
	size_t filled; /* by reading, from 0 on */
} moment;

typedef struct moments {
	moment *list; /* by name */
	size_t count;
} moments;

static int by_name(const void *a, const void *b)
{
	return strcmp(((const moment *)a)->name, ((const moment *)b)->name);
}

static moment make_moment(const mu_tensor *tensor, const char *kind, void *span, size_t unit_offset)
{
	moment made = {.values = (float *)span + unit_offset + tensor->offset, .elements = tensor->elements};
	snprintf(made.name, sizeof made.name, "%s.%s", kind, tensor->name);
	snprintf(made.range, sizeof made.range, "0 %zu %zu", tensor->elements, tensor->elements);
	return made;
}

static mural_status list_moments(moments *all, const mu_vit *vit, const mu_store *store, mural_error *err)
{
	size_t n = 0;
	if (store->type == MU_F64)
		return mu_bug(err, "optimizer state is kept in files from fp32 moments only");
	for (size_t u = 0; u < vit->n_units; u++)
		n += 2 * vit->units[u].n_tensors;
	*all = (moments){.list = calloc(n + 1, sizeof *all->list)};
	if (!all->list)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the table of %zu moments", n);
	for (size_t u = 0; u < vit->n_units; u++)
		for (size_t i = 0; i < vit->units[u].n_tensors; i++) {
			const mu_tensor *tensor = &vit->units[u].tensors[i];
			if (store->m)
				all->list[all->count++] = make_moment(tensor, "exp_avg", store->m, store->offset[u]);
			if (store->v)
				all->list[all->count++] = make_moment(tensor, "exp_avg_sq", store->v, store->offset[u]);
		}
	qsort(all->list, all->count, sizeof *all->list, by_name);
	return MURAL_OK;
}

mural_status mu_optimizer_state_lay_out(const mu_vit *vit, const mu_store *store, mu_safetensors_layout *layout,
                                        mural_error *err)
{
	moments all;
	MU_TRY(list_moments(&all, vit, store, err));
	mu_safetensors_item *items = calloc(all.count + 1, sizeof *items);
	mu_safetensors_note *notes = calloc(all.count + 1, sizeof *notes);
	mural_status status = MURAL_OK;
	if (!items || !notes)
		status = mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the table of %zu moments", all.count);
	for (size_t i = 0; i < all.count && status == MURAL_OK; i++) {
		const moment *m = &all.list[i];
		items[i] = (mu_safetensors_item){
		        .name = m->name, .type = MU_F32, .n_dims = 1, .dims = &m->elements, .data = m->values};
		notes[i] = (mu_safetensors_note){m->name, m->range};
	}
	if (status == MURAL_OK)
		status = mu_safetensors_lay_out(layout, items, all.count, notes, all.count, err);
	free(items);
	free(notes);
	free(all.list);
	return status;
}

/* One tensor of a file into its place. */
static mural_status take_range(moments *all, const mu_safetensors *file, const mu_safetensor *found, const char *path,
                               mural_error *err)
{
	unsigned long long begin, end, total;
	char rest;
	moment key = {0};
	snprintf(key.name, sizeof key.name, "%s", found->name);
	moment *m = bsearch(&key, all->list, all->count, sizeof key, by_name);
	const char *range = mu_safetensors_note_of(file, found->name);
	if (!m || strcmp(m->name, found->name) != 0)
		return mu_fail(err, MURAL_DATA, path, "the optimizer state '%.120s' is of no parameter of this model",
		               found->name);
	if (found->type != MU_F32 || found->n_dims != 1)
		return mu_fail(err, MURAL_DATA, path, "the optimizer state '%s' should be F32 with one dim",
		               found->name);
	if (!range || sscanf(range, "%llu %llu %llu%c", &begin, &end, &total, &rest) != 3)
		return mu_fail(err, MURAL_DATA, path,
		               "the metadata should say \"BEGIN END TOTAL\" of '%s', and say %.80s", found->name,
		               range ? range : "nothing");
	if (total != m->elements || begin != m->filled || end < begin || end > total || end - begin != found->dims[0])
		return mu_fail(err, MURAL_DATA, path,
		               "the optimizer state '%s' should go on at element %zu of %zu, and has %llu to %llu of "
		               "%llu in %llu values",
		               found->name, m->filled, m->elements, begin, end, total,
		               (unsigned long long)found->dims[0]);
	MU_TRY(mu_safetensors_read(file, found, m->values + begin, err));
	m->filled = (size_t)end;
	return MURAL_OK;
}

static mural_status take_file(moments *all, const char *path, mural_error *err)
{
	mu_safetensors *file;
	MU_TRY(mu_safetensors_open(&file, path, err));
	mural_status status = MURAL_OK;
	for (size_t i = 0; i < mu_safetensors_count(file) && status == MURAL_OK; i++)
		status = take_range(all, file, mu_safetensors_at(file, i), path, err);
	mu_safetensors_free(file);
	return status;
}

mural_status mu_optimizer_state_load(const mu_vit *vit, const mu_store *store, const char *const *paths, size_t n,
                                     mural_error *err)
{
	moments all;
	MU_TRY(list_moments(&all, vit, store, err));
	mural_status status = MURAL_OK;
	for (size_t i = 0; i < n && status == MURAL_OK; i++)
		status = take_file(&all, paths[i], err);
	for (size_t i = 0; i < all.count && status == MURAL_OK; i++)
		if (all.list[i].filled != all.list[i].elements)
			status = mu_fail(err, MURAL_DATA, n ? paths[n - 1] : NULL,
			                 "the optimizer state '%s' ends at element %zu of %zu", all.list[i].name,
			                 all.list[i].filled, all.list[i].elements);
	free(all.list);
	return status;
}
