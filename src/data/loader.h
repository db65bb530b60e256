/* Threads that fill micro-batches ahead of the trainer.
 *
 * A ring of `prefetch` slots in one pinned allocation, planned at creation; filled in order by loader threads, taken in
 * order by one trainer. The batches are the same for any number of threads. A failed read stops the loader: the batches
 * before it still come, then mu_loader_next returns the failure, and every later call returns it again.
 *
 * Given shares of a batch (mu_sampler.share_R) may change while the loader runs: whoever decides on them says up to which step they
 * are settled, and no thread reads beyond. So nothing that was read ahead is ever thrown away.
 *
 *     mu_batch *batch;
 *     while (mu_loader_next(loader, &batch, &waited, err) == MURAL_OK && batch) { train(batch); mu_loader_give_back(loader, batch); }
 * SPDX-License-Identifier: MIT */
#ifndef MU_DATA_LOADER_H
#define MU_DATA_LOADER_H

#include "base/pulse.h"
#include "data/dataset.h"
#include "data/sampler.h"
#include "device/device.h"
#include "kernels/ops.h"

typedef struct mu_batch {
	uint32_t epoch;
	uint64_t step; /* in the epoch */
	uint64_t micro, micros; /* in the step, and how many it has on this rank */
	uint64_t first; /* position in the epoch of this micro-batch's first image */
	uint64_t planned; /* images of the whole step, all ranks */
	size_t capacity, count, image_bytes;
	mu_micro *counts; /* count and divisor, as operations read them */
	uint8_t *pixels; /* [capacity, channels, height, width]; images past count are zero */
	mu_image_cut *cut_B; /* [capacity] */
	uint64_t *stream_B; /* [capacity] */
	int32_t *labels; /* [capacity], 0 past count */
	uint32_t *index_B; /* [capacity] image index in the set */
} mu_batch;

typedef struct mu_loader mu_loader;

typedef struct mu_loader_settings {
	const mural_data *data; /* borrowed */
	const mural_data_config *config; /* borrowed: shuffle, resize, crop_padding, flip, loader_threads, prefetch */
	mu_sampler sampler;
	uint32_t seed;
	bool augment; /* false for evaluation: no crop, no flip */
	double divisor; /* of gradients before they are summed, as a multiple of the step's images; 0 means 1 */
	uint32_t first_epoch, epochs; /* [first_epoch, epochs) */
	uint64_t first_step; /* of first_epoch, for resuming */
	uint64_t
	        settled; /* steps of the run, counted from epoch 0, whose shares are settled; 0: of all. mu_loader_share */
	const mu_device *device; /* whose pinned memory the ring uses; borrowed */
	mu_pulse *pulse; /* beats with every image read; borrowed, may be NULL */
	/* Image shape the model wants. When it differs from the data's, config->resize says what happens. */
	size_t channels, height, width;
} mu_loader_settings;

/* Bytes of pinned memory that mu_loader_create takes: the ring, an epoch's order, a spare image per thread and
 * the weights of resizing. */
size_t mu_loader_bytes(const mu_loader_settings *settings);

/* MURAL_USAGE, MURAL_DATA for settings that cannot work (mu_sampler_check, mu_augment_check, channels); on failure
 * nothing stays. The rest of the loader's life allocates nothing. */
mural_status mu_loader_create(mu_loader **loader, const mu_loader_settings *settings, mural_error *err);
/* Stops and joins the threads, whatever they are doing. NULL is fine. */
void mu_loader_free(mu_loader *loader);

/* The next micro-batch in order, or *batch = NULL after the last. *waited_seconds: how long the caller was kept. */
mural_status mu_loader_next(mu_loader *loader, mu_batch **batch, double *waited_seconds, mural_error *err);
/* From step `from` of the run on these are the shares; NULL: they stay. Steps before `settled` may now be read. `from` must not lie
 * before what was settled so far, nor behind what is settled now, and an earlier change must have been reached by the trainer. */
mural_status mu_loader_share(mu_loader *loader, uint64_t from, const int *share_R, uint64_t settled, mural_error *err);
/* Batches may be given back in any order; up to `prefetch` may be held at once. */
void mu_loader_give_back(mu_loader *loader, mu_batch *batch);

#endif
