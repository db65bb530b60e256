/* Host copies of a store's spans. SPDX-License-Identifier: MIT */
#include "engine/mirror.h"

#include <stdlib.h>

#define SPANS 4

typedef struct span {
	void **mirror;
	void *original;
	size_t bytes;
} span;

static void list_spans(mu_mirror *m, span list[SPANS])
{
	const mu_store *from = m->original;
	const size_t bytes = from->elements * sizeof(float);
	if (from->master)
		list[0] = (span){(void **)&m->store.master, from->master, bytes};
	else
		list[0] = (span){&m->store.parameters, from->parameters, bytes};
	list[1] = (span){&m->store.m, from->m, bytes};
	list[2] = (span){&m->store.v, from->v, bytes};
	list[3] = (span){(void **)&m->store.average, from->average, bytes};
}

static mural_status read_spans(mu_mirror *mirror, mural_error *err)
{
	span list[SPANS];
	list_spans(mirror, list);
	for (int i = 0; i < SPANS; i++)
		if (*list[i].mirror)
			MU_TRY(mirror->device->table->copy(mirror->device->queue, *list[i].mirror, list[i].original,
			                                   list[i].bytes, err));
	return mirror->device->table->wait(mirror->device->queue, err);
}

mural_status mu_mirror_open(mu_mirror *mirror, const mu_store *store, const mu_device *device, bool shared,
                            mu_mirror_part part, bool read, mural_error *err)
{
	*mirror = (mu_mirror){.store = *store, .original = store, .device = device, .shared = shared};
	mirror->store.gradients = mirror->store.partial = mirror->store.direction = NULL;
	if (shared)
		return MURAL_OK;
	span list[SPANS];
	mural_status status = MURAL_OK;
	list_spans(mirror, list);
	for (int i = 0; i < SPANS; i++)
		*list[i].mirror = NULL;
	for (int i = 0; i < SPANS && status == MURAL_OK; i++) {
		if (!list[i].original || (i > 0 && part == MU_MIRROR_WEIGHTS))
			continue;
		*list[i].mirror = malloc(list[i].bytes ? list[i].bytes : 1);
		if (!*list[i].mirror)
			status = mu_fail(err, MURAL_OUT_OF_MEMORY, NULL,
			                 "no host memory (%s) for a copy of the model's state", MU_SIZE(list[i].bytes));
	}
	if (status == MURAL_OK && read)
		status = read_spans(mirror, err);
	if (status != MURAL_OK)
		mu_mirror_close(mirror);
	return status;
}

mural_status mu_mirror_write(mu_mirror *mirror, mural_error *err)
{
	span list[SPANS];
	if (mirror->shared)
		return MURAL_OK;
	list_spans(mirror, list);
	for (int i = 0; i < SPANS; i++)
		if (*list[i].mirror)
			MU_TRY(mirror->device->table->copy(mirror->device->queue, list[i].original, *list[i].mirror,
			                                   list[i].bytes, err));
	return mirror->device->table->wait(mirror->device->queue, err);
}

void mu_mirror_close(mu_mirror *mirror)
{
	span list[SPANS];
	if (!mirror->shared && mirror->original) {
		list_spans(mirror, list);
		for (int i = 0; i < SPANS; i++)
			free(*list[i].mirror);
	}
	*mirror = (mu_mirror){0};
}
