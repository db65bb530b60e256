/* The operations table of pretend cards, and the module's entry: the host's operations, called by a queue's thread.
 *
 * What a row is told travels as a copy, in which every address of the card becomes the one that the card knows: all rows take
 * structs of whole words, so that is a matter of looking at each word.
 * SPDX-License-Identifier: MIT */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/version.h"
#include "kernels/cuda.h"
#include "modules/pretend_card/pretend.h"

static const mu_ops *inside; /* cpu or reference */

struct mu_ops_context {
	mu_queue *queue;
	mu_ops_context *inside;
};

static void translate(void *call, size_t bytes)
{
	for (size_t at = 0; at + sizeof(void *) <= bytes; at += sizeof(void *)) {
		void *word;
		memcpy(&word, (char *)call + at, sizeof word);
		if (!pretend_is_device(word))
			continue;
		word = pretend_inside(word);
		memcpy((char *)call + at, &word, sizeof word);
	}
}

static mural_status count_operation(mural_error *err)
{
	static atomic_ulong done;
	const char *fails_at = getenv("PRETEND_CARD_FAILS_AT");
	if (!fails_at || atomic_fetch_add(&done, 1) + 1 < strtoul(fails_at, NULL, 10))
		return MURAL_OK;
	return mu_fail(err, MURAL_FAILED, NULL, "the pretend card fell off the bus");
}

/* What a queue is given: the context, then the call. */
#define ROW(row, struct_name)                                                                            \
	typedef struct told_##row {                                                                      \
		mu_ops_context *context;                                                                 \
		struct_name call;                                                                        \
	} told_##row;                                                                                    \
	static mural_status do_##row(void *argument, mural_error *err)                                   \
	{                                                                                                \
		told_##row *told = argument;                                                             \
		MU_TRY(count_operation(err));                                                            \
		translate(&told->call, sizeof told->call);                                               \
		return inside->row(told->context->inside, &told->call, err);                             \
	}                                                                                                \
	static mural_status card_##row(mu_ops_context *context, const struct_name *op, mural_error *err) \
	{                                                                                                \
		const told_##row told = {context, *op};                                                  \
		return pretend_enqueue(context->queue, do_##row, &told, sizeof told, err);               \
	}
#define PAIR(op)                   \
	ROW(op##_forward, mu_##op) \
	ROW(op##_backward, mu_##op)

/* Asked before the first step: it may prepare things that operations use. */
#define WORKSPACE(row, struct_name)                                                          \
	static size_t card_##row##_workspace(mu_ops_context *context, const struct_name *op) \
	{                                                                                    \
		(void)pretend_wait(context->queue, NULL);                                    \
		return inside->row##_workspace(context->inside, op);                         \
	}

PAIR(embed)
PAIR(layernorm)
PAIR(linear)
PAIR(attention)
PAIR(pool)
WORKSPACE(embed, mu_embed)
WORKSPACE(layernorm, mu_layernorm)
WORKSPACE(linear, mu_linear)
WORKSPACE(attention, mu_attention)
ROW(dropout, mu_dropout)
ROW(drop_path, mu_drop_path)
ROW(cross_entropy, mu_cross_entropy)
ROW(settle, mu_settle)
ROW(adamw, mu_adamw)
ROW(sum_squares, mu_sum_squares)
WORKSPACE(sum_squares, mu_sum_squares)
ROW(cast, mu_cast)
ROW(accumulate, mu_accumulate)
ROW(sgd, mu_sgd)
ROW(lion, mu_lion)
ROW(lamb, mu_lamb)
ROW(momentum, mu_momentum)
ROW(newton_schulz, mu_newton_schulz)
WORKSPACE(newton_schulz, mu_newton_schulz)
WORKSPACE(tensor_norms, mu_tensor_norms)
ROW(apply_update, mu_apply_update)
ROW(ema, mu_ema)

/* A slower card: each micro-batch begins here. */
typedef struct told_patchify {
	mu_ops_context *context;
	mu_patchify call;
} told_patchify;

static mural_status do_patchify(void *argument, mural_error *err)
{
	told_patchify *told = argument;
	const char *image_us = getenv("PRETEND_CARD_IMAGE_US");
	MU_TRY(count_operation(err));
	if (image_us)
		mu_sleep(1e-6 * (double)told->call.images * strtod(image_us, NULL));
	translate(&told->call, sizeof told->call);
	return inside->patchify(told->context->inside, &told->call, err);
}

static mural_status card_patchify(mu_ops_context *context, const mu_patchify *op, mural_error *err)
{
	const told_patchify told = {context, *op};
	return pretend_enqueue(context->queue, do_patchify, &told, sizeof told, err);
}

/* The only row with an array in host memory, which is its caller's again when the call returns. */
typedef struct told_norms {
	mu_ops_context *context;
	mu_tensor_norms call;
	mu_extent extents[];
} told_norms;

static mural_status do_tensor_norms(void *argument, mural_error *err)
{
	told_norms *told = argument;
	MU_TRY(count_operation(err));
	translate(&told->call, sizeof told->call);
	told->call.extents = told->extents;
	return inside->tensor_norms(told->context->inside, &told->call, err);
}

static mural_status card_tensor_norms(mu_ops_context *context, const mu_tensor_norms *op, mural_error *err)
{
	const size_t bytes = sizeof(told_norms) + op->n_tensors * sizeof *op->extents;
	told_norms *told = malloc(bytes);
	if (!told)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for a pretend card's work");
	told->context = context;
	told->call = *op;
	memcpy(told->extents, op->extents, op->n_tensors * sizeof *op->extents);
	const mural_status status = pretend_enqueue(context->queue, do_tensor_norms, told, bytes, err);
	free(told);
	return status;
}

static mural_status card_open(mu_queue *queue, int threads, mu_ops_context **context, mural_error *err)
{
	*context = NULL;
	mu_ops_context *c = calloc(1, sizeof *c);
	if (!c)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for a pretend card's operations");
	c->queue = queue;
	const mural_status status = inside->open(NULL, threads, &c->inside, err);
	if (status == MURAL_OK)
		*context = c;
	else
		free(c);
	return status;
}

static void card_close(mu_ops_context *context)
{
	if (!context)
		return;
	(void)pretend_wait(context->queue, NULL);
	inside->close(context->inside);
	free(context);
}

static bool card_supports(mu_ops_context *context, mu_dtype type)
{
	return (type != MU_BF16 || !getenv("PRETEND_CARD_NO_BF16")) && inside->supports(context->inside, type);
}

static const mu_ops card_ops = {
        .name = "cuda",
        .build_id = MU_BUILD_ID,
        .version = MU_OPS_VERSION,
        .device = &pretend_device,
        .open = card_open,
        .close = card_close,
        .supports = card_supports,
        .patchify = card_patchify,
        .embed_forward = card_embed_forward,
        .embed_backward = card_embed_backward,
        .embed_workspace = card_embed_workspace,
        .layernorm_forward = card_layernorm_forward,
        .layernorm_backward = card_layernorm_backward,
        .layernorm_workspace = card_layernorm_workspace,
        .linear_forward = card_linear_forward,
        .linear_backward = card_linear_backward,
        .linear_workspace = card_linear_workspace,
        .attention_forward = card_attention_forward,
        .attention_backward = card_attention_backward,
        .attention_workspace = card_attention_workspace,
        .dropout = card_dropout,
        .drop_path = card_drop_path,
        .pool_forward = card_pool_forward,
        .pool_backward = card_pool_backward,
        .cross_entropy = card_cross_entropy,
        .settle = card_settle,
        .adamw = card_adamw,
        .sum_squares = card_sum_squares,
        .sum_squares_workspace = card_sum_squares_workspace,
        .cast = card_cast,
        .accumulate = card_accumulate,
        .sgd = card_sgd,
        .lion = card_lion,
        .lamb = card_lamb,
        .momentum = card_momentum,
        .newton_schulz = card_newton_schulz,
        .newton_schulz_workspace = card_newton_schulz_workspace,
        .tensor_norms = card_tensor_norms,
        .tensor_norms_workspace = card_tensor_norms_workspace,
        .apply_update = card_apply_update,
        .ema = card_ema,
};

/* Whoever loads the module asks this first. */
static mural_status check(mural_error *err)
{
	mu_device_survey survey;
	inside = getenv("PRETEND_CARD_REFERENCE") ? &mu_ops_reference : &mu_ops_cpu;
	MU_TRY(pretend_device.survey(&survey, err));
	return survey.devices > 0 ? MURAL_OK : mu_fail(err, MURAL_FAILED, NULL, "there is no pretend card");
}

static void describe(char *text, size_t size)
{
	mu_device_survey survey = {0};
	(void)pretend_device.survey(&survey, NULL);
	snprintf(text, size, "%d x Pretend Card", survey.devices);
}

extern __attribute__((visibility("default"))) const mu_cuda_module mu_cuda_module_entry;
const mu_cuda_module mu_cuda_module_entry = {
        .build_id = MU_BUILD_ID, .ops = &card_ops, .check = check, .describe = describe};
