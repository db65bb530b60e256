/* Placing and filling one micro-batch. SPDX-License-Identifier: MIT */
#include "data/batch.h"

#include <string.h>

#include "base/philox.h"
#include "data/augment.h"

mu_image_shape mu_batch_shape_of_set(const mu_loader_settings *s)
{
	const mural_data_facts *facts = &s->data->facts;
	return (mu_image_shape){facts->channels, facts->height, facts->width};
}

mu_image_shape mu_batch_shape_of_model(const mu_loader_settings *s)
{
	return (mu_image_shape){s->channels, s->height, s->width};
}

bool mu_batch_fits(const mu_loader_settings *s)
{
	bool done = s->data->facts.any_size || s->config->resize_side == 0; /* by the set itself, or not asked for */
	return done && mu_image_same(mu_batch_shape_of_set(s), mu_batch_shape_of_model(s));
}

mu_batch mu_batch_take(mu_arena *arena, const mu_loader_settings *s)
{
	size_t capacity = s->sampler.micro_batch;
	return (mu_batch){
	        .capacity = capacity,
	        .image_bytes = mu_image_bytes(mu_batch_shape_of_model(s)),
	        .counts = mu_arena_take(arena, sizeof(mu_micro)),
	        .pixels = mu_arena_take(arena, capacity * mu_image_bytes(mu_batch_shape_of_model(s))),
	        .cut_B = mu_arena_take(arena, capacity * sizeof(mu_image_cut)),
	        .stream_B = mu_arena_take(arena, capacity * sizeof(uint64_t)),
	        .labels = mu_arena_take(arena, capacity * sizeof(int32_t)),
	        .index_B = mu_arena_take(arena, capacity * sizeof(uint32_t)),
	};
}

/* At least 1, and whole: the update multiplies by what was divided by, whatever it is. */
static uint64_t divisor_of(const mu_loader_settings *s, uint64_t planned)
{
	const double divisor = s->divisor > 0 ? s->divisor * (double)planned : (double)planned;
	return divisor < 1 ? 1 : (uint64_t)(divisor + 0.5);
}

void mu_batch_place(mu_batch *batch, const mu_loader_settings *s, const mu_sampler *sampler, mu_batch_at at)
{
	uint64_t steps = mu_sampler_steps(sampler);
	batch->micro = at.micro;
	batch->step = at.step % steps;
	batch->epoch = (uint32_t)(at.step / steps);
	batch->micros = mu_sampler_micros(sampler, batch->step);
	mu_positions positions = mu_sampler_micro(sampler, batch->step, batch->micro);
	batch->first = positions.first;
	batch->count = positions.count;
	batch->planned = mu_sampler_planned(sampler, batch->step).count;
	*batch->counts = (mu_micro){batch->count, divisor_of(s, batch->planned)};
}

static mural_status fill_image(const mu_batch *batch, const mu_loader_settings *s, size_t b,
                               const mu_batch_tools *tools, mural_error *err)
{
	mu_image_shape want = mu_batch_shape_of_model(s);
	uint64_t stream = mu_stream(batch->epoch, (uint32_t)(batch->first + b));
	uint8_t *pixels = batch->pixels + b * mu_image_bytes(want);
	mural_status status =
	        mu_data_read(s->data, batch->index_B[b], tools->spare ? tools->spare : pixels, &batch->labels[b], err);
	if (status != MURAL_OK) {
		mu_context(err, "while loading image %u of %s for epoch %u, step %llu", batch->index_B[b],
		           s->data->facts.name, batch->epoch, (unsigned long long)batch->step);
		return status;
	}
	if (tools->resize)
		mu_resize_run(tools->resize, tools->spare, pixels, tools->scratch);
	else if (tools->spare)
		mu_fit(mu_batch_shape_of_set(s), tools->spare, want, pixels);
	batch->stream_B[b] = stream;
	batch->cut_B[b] = s->augment ? mu_augment_cut(s->config, s->seed, stream) : (mu_image_cut){0};
	return MURAL_OK;
}

mural_status mu_batch_fill(const mu_batch *batch, const mu_loader_settings *s, const mu_batch_tools *tools,
                           const atomic_bool *stopping, mural_error *err)
{
	size_t count = batch->count, rest = batch->capacity - count;
	size_t image_bytes = batch->image_bytes;
	for (size_t b = 0; b < count && !atomic_load(stopping); b++) {
		MU_TRY(fill_image(batch, s, b, tools, err));
		mu_pulse_beat(s->pulse);
	}
	memset(batch->pixels + count * image_bytes, 0, rest * image_bytes);
	memset(batch->cut_B + count, 0, rest * sizeof *batch->cut_B);
	memset(batch->stream_B + count, 0, rest * sizeof *batch->stream_B);
	memset(batch->labels + count, 0, rest * sizeof *batch->labels);
	memset(batch->index_B + count, 0, rest * sizeof *batch->index_B);
	return MURAL_OK;
}
