/* A whole model on one table for tests. SPDX-License-Identifier: MIT */
#include "support/model_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEED 7u
#define INITIAL_SPREAD 0.4

static void must(mural_status status, const mural_error *err)
{
	if (status == MURAL_OK)
		return;
	mural_error_print(err, stderr);
	abort();
}

static void *memory(size_t bytes)
{
	void *p = aligned_alloc(MU_ARENA_ALIGN, mu_arena_padded(bytes ? bytes : 1));
	if (!p)
		abort();
	memset(p, 0xff, mu_arena_padded(bytes ? bytes : 1));
	return p;
}

double model_run_load(const model_run *run, const void *span, size_t i)
{
	return run->settings.type == MU_F64 ? ((const double *)span)[i] : (double)((const float *)span)[i];
}

void model_run_store(const model_run *run, void *span, size_t i, double value)
{
	if (run->settings.type == MU_F64)
		((double *)span)[i] = value;
	else
		((float *)span)[i] = (float)value;
}

static size_t span_bytes(const model_run *run, size_t unit)
{
	return run->vit.units[unit].elements * mu_dtype_bytes(run->settings.type);
}

static bool is_norm_weight(mu_role role)
{
	return role == MU_ROLE_NORM1_W || role == MU_ROLE_NORM2_W || role == MU_ROLE_NORM_W;
}

static void fill_parameters(model_run *run, size_t unit)
{
	const mu_unit *u = &run->vit.units[unit];
	memset(run->parameters[unit], 0, span_bytes(run, unit));
	for (size_t i = 0; i < u->n_tensors; i++) {
		const mu_tensor *tensor = &u->tensors[i];
		mu_random_key key = mu_random_key_make(SEED, MU_PURPOSE_TEST, tensor->number);
		for (size_t e = 0; e < tensor->elements; e++) {
			double value = INITIAL_SPREAD * (2 * mu_random_uniform(key, 0, e) - 1);
			value += is_norm_weight(tensor->role) ? 1 : 0;
			model_run_store(run, run->parameters[unit], tensor->offset + e, value);
		}
	}
}

static void fill_batch(model_run *run)
{
	const mural_model_config *c = &run->vit.config;
	const model_settings *s = &run->settings;
	size_t image = c->channels * c->image_height * c->image_width;
	run->pixels = memory(s->capacity * image);
	run->labels = memory(s->capacity * sizeof *run->labels);
	run->best_B = memory(s->capacity * sizeof *run->best_B);
	run->stream_B = memory(s->capacity * sizeof *run->stream_B);
	mu_random_key key = mu_random_key_make(SEED, MU_PURPOSE_TEST, 0xffffff);
	for (size_t b = 0; b < s->capacity; b++) {
		run->labels[b] = (int32_t)mu_random_below(key, b, image, (uint32_t)c->classes);
		run->stream_B[b] = mu_stream(3, (uint32_t)b);
		for (size_t i = 0; i < image; i++)
			run->pixels[b * image + i] = (uint8_t)mu_random_below(key, b, i, 256);
	}
	static const float mean_C[MU_MAX_CHANNELS] = {0.5f, 0.4f, 0.6f}, std_C[MU_MAX_CHANNELS] = {0.25f, 0.3f, 0.2f};
	run->micro = (mu_micro){s->count, s->count ? s->count : 1};
	run->input = (mu_vit_input){.micro = &run->micro,
	                            .pixels = run->pixels,
	                            .mean_C = c->channels <= 3 ? mean_C : NULL,
	                            .std_C = c->channels <= 3 ? std_C : NULL,
	                            .stream_B = run->stream_B,
	                            .labels = run->labels,
	                            .label_smoothing = s->label_smoothing};
}

static void lay_out(model_run *run, mural_error *err)
{
	const model_settings *s = &run->settings;
	must(mu_vit_pass_create(&run->pass, &run->vit, s->ops, run->context, s->type, s->capacity, s->training, SEED,
	                        &run->step, &run->scratch, err),
	     err);
}

static void plan_and_reserve(model_run *run, mural_error *err)
{
	mu_arena_measure(&run->step, "step");
	mu_arena_measure(&run->scratch, "scratch");
	lay_out(run, err);
	mu_vit_pass_free(run->pass);
	size_t step_bytes = run->step.high, scratch_bytes = run->scratch.high;
	run->step_memory = memory(step_bytes);
	run->scratch_memory = memory(scratch_bytes);
	mu_arena_reserve(&run->step, "step", run->step_memory, step_bytes);
	mu_arena_reserve(&run->scratch, "scratch", run->scratch_memory, scratch_bytes);
	lay_out(run, err);
}

void model_run_open(model_run *run, const model_settings *settings)
{
	mural_error err = {0};
	*run = (model_run){.settings = *settings};
	must(mural_model_config_check(settings->config, &err), &err);
	must(mu_vit_init(&run->vit, settings->config, &err), &err);
	run->parameters = calloc(run->vit.n_units, sizeof *run->parameters);
	run->gradients = calloc(run->vit.n_units, sizeof *run->gradients);
	if (!run->parameters || !run->gradients)
		abort();
	for (size_t u = 0; u < run->vit.n_units; u++) {
		run->parameters[u] = memory(span_bytes(run, u));
		run->gradients[u] = memory(span_bytes(run, u));
		fill_parameters(run, u);
	}
	must(settings->ops->open(NULL, 0, &run->context, &err), &err);
	fill_batch(run);
	plan_and_reserve(run, &err);
}

/* The arena's blocks go back whole: nothing in them may stay poisoned. */
static void give_back(mu_arena *arena, void *block)
{
	mu_arena_back_to(arena, 0);
	if (arena->capacity)
		(void)mu_arena_take(arena, arena->capacity);
	free(block);
}

void model_run_close(model_run *run)
{
	mu_vit_pass_free(run->pass);
	run->settings.ops->close(run->context);
	give_back(&run->step, run->step_memory);
	give_back(&run->scratch, run->scratch_memory);
	for (size_t u = 0; u < run->vit.n_units; u++) {
		free(run->parameters[u]);
		free(run->gradients[u]);
	}
	free(run->parameters);
	free(run->gradients);
	free(run->pixels);
	free(run->labels);
	free(run->best_B);
	free(run->stream_B);
	mu_vit_release(&run->vit);
	*run = (model_run){0};
}

double model_run_forward(model_run *run)
{
	mural_error err = {0};
	run->sums = (mu_step_sums){0};
	for (size_t u = 0; u < run->vit.n_units; u++)
		must(mu_vit_forward_unit(run->pass, u, run->parameters[u], &run->input, &err), &err);
	must(mu_vit_loss(run->pass, &run->input, &run->sums, run->best_B, &err), &err);
	return run->sums.loss / (double)run->micro.planned;
}

void model_run_backward(model_run *run)
{
	mural_error err = {0};
	for (size_t u = run->vit.n_units; u-- > 0;) {
		memset(run->gradients[u], 0, span_bytes(run, u));
		must(mu_vit_backward_unit(run->pass, u, run->parameters[u], run->gradients[u], &run->input, &err),
		     &err);
	}
}
