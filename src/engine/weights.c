/* Weights to and from the store. SPDX-License-Identifier: MIT */
#include "engine/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/safetensors.h"
#include "mural/checkpoint.h"

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

mural_status mu_weights_locate(char found[MU_WEIGHTS_PATH], const char *path, mural_error *err)
{
	char inside[MU_WEIGHTS_PATH];
	mural_checkpoint_choice choice;
	if (snprintf(found, MU_WEIGHTS_PATH, "%s", path) >= MU_WEIGHTS_PATH - 64)
		return mu_fail(err, MURAL_USAGE, NULL, "the path '%.40s...' is too long", path);
	snprintf(inside, sizeof inside, "%s/weights.safetensors", path);
	if (access(inside, F_OK) == 0)
		return MURAL_OK;
	snprintf(inside, sizeof inside, "%s/checkpoints", path);
	if (access(inside, F_OK) != 0)
		return MURAL_OK;
	MU_TRY(mural_checkpoint_find(&choice, path, err));
	if (choice.found)
		snprintf(found, MU_WEIGHTS_PATH, "%s", choice.set);
	return MURAL_OK;
}

mural_status mu_weights_lay_out(const mu_vit *vit, const mu_store *store, const char *note,
                                mu_safetensors_layout *layout, mural_error *err)
{
	size_t n = 0;
	if (store->type != MU_F32)
		return mu_bug(err, "weights are saved from fp32 only");
	mu_safetensors_item *items = calloc(count_tensors(vit), sizeof *items);
	if (!items)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the table of weights");
	for (size_t u = 0; u < vit->n_units; u++)
		for (size_t i = 0; i < vit->units[u].n_tensors; i++) {
			const mu_tensor *tensor = &vit->units[u].tensors[i];
			items[n++] = (mu_safetensors_item){.name = tensor->name,
			                                   .type = MU_F32,
			                                   .n_dims = (size_t)tensor->n_dims,
			                                   .dims = tensor->dims,
			                                   .data = place_of(store, u, tensor)};
		}
	const mu_safetensors_note told = {MU_WEIGHTS_NOTE_KEY, note};
	mural_status status = mu_safetensors_lay_out(layout, items, n, &told, note ? 1 : 0, err);
	free(items);
	return status;
}

mural_status mu_weights_save(const mu_vit *vit, const mu_store *store, const char *note, const char *path,
                             mural_error *err)
{
	mu_safetensors_layout layout;
	MU_TRY(mu_weights_lay_out(vit, store, note, &layout, err));
	mural_status status = mu_safetensors_write_layout(path, &layout, err);
	mu_safetensors_layout_release(&layout);
	return status;
}

mural_status mu_weights_load(const mu_vit *vit, const mu_store *store, const char *path, mu_weights_wish wish,
                             char notes[MURAL_WEIGHTS_NOTES], mural_error *err)
{
	mural_weights *weights;
	if (store->type != MU_F32)
		return mu_bug(err, "weights are loaded into fp32 only");
	MU_TRY(mural_weights_open(&weights, path, err));
	mural_status status = mu_weights_match(weights, vit, wish, notes, err);
	for (size_t u = 0; u < vit->n_units && status == MURAL_OK; u++)
		for (size_t i = 0; i < vit->units[u].n_tensors && status == MURAL_OK; i++) {
			const mu_tensor *tensor = &vit->units[u].tensors[i];
			status = mu_weights_take(weights, vit, &vit->units[u], tensor, place_of(store, u, tensor), err);
		}
	mural_weights_free(weights);
	return status;
}
