/* Copies of a set's files. SPDX-License-Identifier: MIT */
#include "engine/checkpoint_image.h"

#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "engine/optimizer_state.h"

#define WRITE ((uint64_t)16 << 20) /* bytes per call; whole pieces */

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static size_t n_pieces(const mu_image *image)
{
	return (size_t)((image->layout.bytes + MU_CHECKSUM_PIECE - 1) / MU_CHECKSUM_PIECE);
}

static uint64_t pages(uint64_t bytes)
{
	return (bytes + MU_FILE_PAGE - 1) / MU_FILE_PAGE * MU_FILE_PAGE;
}

static mural_status add_weights(mu_images *images, const char *name, const mural_engine *engine, const mu_store *store,
                                float *values, mural_error *err)
{
	const mu_store view = mu_store_view(store, values);
	mu_image *image = &images->list[images->n++];
	image->name = name;
	return mu_engine_lay_out_weights(engine, &view, &image->layout, err);
}

static mural_status add_moments(mu_images *images, const mural_engine *engine, const mu_store *store, mural_error *err)
{
	mu_image *image = &images->list[images->n++];
	image->name = MU_CHECKPOINT_OPTIMIZER;
	return mu_optimizer_state_lay_out(&engine->vit, store, &image->layout, err);
}

mural_status mu_images_make(mu_images *images, const mural_engine *engine, const mu_store *store, mural_error *err)
{
	*images = (mu_images){0};
	MU_TRY(add_weights(images, MU_CHECKPOINT_MODEL, engine, store, mu_store_weights(store), err));
	MU_TRY(add_moments(images, engine, store, err));
	return store->average ? add_weights(images, MU_CHECKPOINT_AVERAGE, engine, store, store->average, err)
	                      : MURAL_OK;
}

void mu_images_release(mu_images *images)
{
	for (size_t i = 0; i < images->n; i++) {
		mu_safetensors_layout_release(&images->list[i].layout);
		free(images->list[i].sums);
	}
	*images = (mu_images){0};
}

size_t mu_images_bytes(const mu_images *images)
{
	size_t bytes = MU_FILE_PAGE; /* memory may begin within a page */
	for (size_t i = 0; i < images->n; i++)
		bytes += pages(images->list[i].layout.bytes);
	return bytes;
}

static uint64_t piece_end(const mu_image *image, size_t piece)
{
	return smaller((piece + 1) * MU_CHECKSUM_PIECE, image->layout.bytes);
}

static uint64_t sum_piece(const mu_image *image, size_t piece)
{
	uint64_t at = piece * MU_CHECKSUM_PIECE;
	return mu_checksum_of(image->copy + at, piece_end(image, piece) - at);
}

/* From where the tensors are, which the host can read. */
static uint64_t copy_piece(const mu_image *image, size_t piece)
{
	mu_checksum sum;
	uint64_t end = piece_end(image, piece), n;
	mu_checksum_init(&sum);
	for (uint64_t at = piece * MU_CHECKSUM_PIECE; at < end; at += n) {
		const void *from = mu_safetensors_part_at(&image->layout, at, &n);
		n = smaller(n, end - at);
		mu_checksum_copy(&sum, image->copy + at, from, n);
	}
	return mu_checksum_value(&sum);
}

static void copy_here(mu_image *image, int threads)
{
	const long n = (long)n_pieces(image);
	(void)threads;
#pragma omp parallel for schedule(static) num_threads(threads)
	for (long piece = 0; piece < n; piece++)
		image->sums[piece] = copy_piece(image, (size_t)piece);
	image->summed = true;
}

/* From a device the bytes come faster than one thread sums them up; that is left to the one that writes, because the
 * training leaves the host's cores alone. */
static mural_status copy_from_device(mu_image *image, const mu_device *device, mural_error *err)
{
	uint64_t bytes;
	for (uint64_t at = 0; at < image->layout.bytes; at += bytes) {
		const void *from = mu_safetensors_part_at(&image->layout, at, &bytes);
		if (at == 0)
			memcpy(image->copy, from, bytes); /* the header */
		else
			MU_TRY(device->table->copy(device->queue, image->copy + at, from, bytes, err));
	}
	return device->table->wait(device->queue, err);
}

mural_status mu_images_copy(mu_images *images, const mural_engine *engine, void *memory, size_t bytes, mural_error *err)
{
	unsigned char *at = memory;
	if (mu_images_bytes(images) > bytes)
		return mu_bug(err, "the copy for checkpoints was planned too small");
	at += pages((uintptr_t)at) - (uintptr_t)at;
	for (size_t i = 0; i < images->n; i++) {
		mu_image *image = &images->list[i];
		image->copy = at;
		image->sums = calloc(n_pieces(image) + 1, sizeof *image->sums);
		if (!image->sums)
			return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the checksums of %zu pieces",
			               n_pieces(image));
		if (engine->shared)
			copy_here(image, (int)engine->threads);
		else
			MU_TRY(copy_from_device(image, &engine->device, err));
		at += pages(image->layout.bytes);
	}
	return MURAL_OK;
}

static mural_status put_copy(mu_file *out, const mu_image *image, const atomic_bool *stop, mural_error *err)
{
	uint64_t n;
	for (uint64_t at = 0; at < image->layout.bytes; at += n) {
		n = smaller(WRITE, image->layout.bytes - at);
		for (uint64_t p = at; p < at + n && !image->summed; p += MU_CHECKSUM_PIECE)
			image->sums[p / MU_CHECKSUM_PIECE] = sum_piece(image, p / MU_CHECKSUM_PIECE);
		MU_TRY(mu_file_put_pages(out, image->copy + at, n, stop, err));
	}
	return MURAL_OK;
}

static mural_status put_parts(mu_file *out, const mu_image *image, const atomic_bool *stop, mural_error *err)
{
	uint64_t bytes;
	for (uint64_t at = 0; at < image->layout.bytes; at += bytes) {
		const void *part = mu_safetensors_part_at(&image->layout, at, &bytes);
		MU_TRY(mu_file_put(out, part, bytes, stop, err));
	}
	return MURAL_OK;
}

mural_status mu_image_write(const mu_image *image, const char *path, const atomic_bool *stop, mu_manifest_file *file,
                            mural_error *err)
{
	mu_file out = {0};
	MU_TRY(mu_file_begin(&out, path, err));
	mural_status status = image->copy ? put_copy(&out, image, stop, err) : put_parts(&out, image, stop, err);
	if (status != MURAL_OK) {
		mu_file_abandon(&out);
		return status;
	}
	file->bytes = image->layout.bytes;
	file->checksum =
	        image->copy ? mu_checksum_of_pieces(image->sums, n_pieces(image)) : mu_checksum_run_value(&out.sum);
	return mu_file_commit(&out, err);
}
