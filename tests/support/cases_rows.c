/* Cases of the rows around tokens: patchify, embed, layernorm, pool, dropout, drop path. SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>

#include "cases.h"
#include "kernels/reference/element.h"

#define MAX_IMAGES 7
#define ELEMENTS 20000 /* of the largest array of a case: some 10 ms by the reference */

/* Where an image is cut: mostly near, sometimes wholly outside. */
static const mu_image_cut *cuts(trial_side *s, size_t images)
{
	if (!trial_flag(s, "cuts"))
		return NULL;
	mu_image_cut cut_B[MAX_IMAGES] = {{0}};
	for (size_t b = 0; b < images; b++) {
		const int reach = trial_below(s, 8) ? 4 : 300;
		cut_B[b].dx = (int16_t)((int)trial_below(s, 2 * (size_t)reach + 1) - reach);
		cut_B[b].dy = (int16_t)((int)trial_below(s, 2 * (size_t)reach + 1) - reach);
		cut_B[b].flip = (uint8_t)trial_below(s, 2);
	}
	_Static_assert(sizeof *cut_B == 8, "a cut travels as one 64-bit number");
	void *array = trial_array(s, TRIAL_INPUT | TRIAL_LOOSE, "cut_B", MU_I64, images);
	trial_fill(s, array, cut_B);
	return array;
}

void trial_case_patchify(trial_side *s)
{
	static const size_t patches[] = {1, 2, 3, 4, 7, 8, 14, 16};
	mu_patchify op = {.type = s->type, .images = trial_size(s, "B", MAX_IMAGES)};
	const size_t count = trial_flag(s, "full") ? op.images : trial_below(s, op.images + 1);
	op.micro = trial_micro(s, count, 64);
	op.channels = trial_size(s, "channels", 5);
	op.patch = patches[trial_below(s, sizeof patches / sizeof *patches)];
	trial_note(s, "count=%zu P=%zu ", count, op.patch);
	op.height = op.patch * trial_size(s, "rows", 5);
	op.width = op.patch * trial_size(s, "columns", 5);
	if (trial_flag(s, "enlarged")) {
		static const size_t factors[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 14, 25, MU_ENLARGE_MOST};
		op.factor = factors[trial_below(s, sizeof factors / sizeof *factors)];
		while (op.height % op.factor || op.width % op.factor) /* a single pixel may become the whole image */
			op.factor = op.factor > 2 && trial_flag(s, "less") ? op.factor / 2 : 1;
		op.image_channels = trial_flag(s, "grey") ? 1 : trial_flag(s, "said") ? op.channels : 0;
		trial_note(s, "factor=%zu ", op.factor);
	}
	double largest = 0;
	for (size_t c = 0; c < op.channels; c++) {
		op.mean[c] = (float)trial_between(s, -0.5, 1);
		op.std[c] = (float)trial_between(s, 0.1, 2);
		largest = fmax(largest, (1 + fabs((double)op.mean[c])) / op.std[c]);
	}
	const size_t n = op.images * op.channels * op.height * op.width, factor = op.factor ? op.factor : 1;
	const size_t image_bytes =
	        (op.image_channels ? op.image_channels : op.channels) * (op.height / factor) * (op.width / factor);
	op.cut_B = cuts(s, op.images);
	op.pixels = trial_array(s, TRIAL_INPUT | TRIAL_LOOSE, "pixels", MU_U8, op.images * image_bytes);
	op.patches = trial_array(s, TRIAL_OUTPUT, "patches", s->type, n);
	trial_call(s, "patchify", s->table->patchify(s->context, &op, &s->err));
	trial_expect(s, op.patches, s->type, 1, largest);
}

void trial_case_embed(trial_side *s)
{
	mu_embed op = {.type = s->type, .images = trial_size(s, "B", MAX_IMAGES)};
	const size_t prefix = trial_flag(s, "class-token");
	op.width = trial_size(s, "D", 768);
	op.patches = trial_size(s, "n", ELEMENTS / op.images / op.width);
	op.dropout = trial_dropout(s, op.images);
	const size_t N = prefix + op.patches, D = op.width, n = op.images * N * D;
	const double size = 2 * op.dropout.scale, sum_size = sqrt((double)op.images) * size;
	op.patch = trial_array(s, TRIAL_INPUT, "patch", s->type, op.images * op.patches * D);
	op.class_token = prefix ? trial_array(s, TRIAL_INPUT, "class_token", s->type, D) : NULL;
	op.position = trial_array(s, TRIAL_INPUT, "position", s->type, N * D);
	op.x = trial_array(s, TRIAL_OUTPUT, "x", s->type, n);
	op.d_x = trial_array(s, TRIAL_INPUT, "d_x", s->type, n);
	op.d_patch = trial_array(s, TRIAL_OUTPUT, "d_patch", s->type, op.images * op.patches * D);
	op.d_class_token = prefix ? trial_array(s, TRIAL_ADDED, "d_class_token", s->type, D) : NULL;
	op.d_position = trial_array(s, TRIAL_ADDED, "d_position", s->type, N * D);
	op.scratch = trial_scratch(s, s->table->embed_workspace(s->context, &op));

	trial_call(s, "embed_forward", s->table->embed_forward(s->context, &op, &s->err));
	trial_call(s, "embed_backward", s->table->embed_backward(s->context, &op, &s->err));
	trial_expect(s, op.x, s->type, 2, size);
	trial_expect(s, op.d_patch, s->type, 1, size);
	trial_expect(s, op.d_position, s->type, op.images, sum_size);
	if (prefix)
		trial_expect(s, op.d_class_token, s->type, op.images, sum_size);
}

/* What a layernorm call has, by its flags; the aliases are those that ops.h allows. */
typedef struct layernorm_flags {
	bool residual, keep, gain, norm, later, sum;
	bool sum_on_input, d_r_on_d_sum, d_r_on_d_y, d_x_on_d_y;
} layernorm_flags;

static layernorm_flags draw_layernorm_flags(trial_side *s)
{
	layernorm_flags f = {.residual = trial_flag(s, "residual"), .keep = trial_flag(s, "keep")};
	f.gain = trial_flag(s, "gain");
	f.norm = trial_flag(s, "norm");
	f.later = trial_flag(s, "d_sum");
	f.sum = trial_flag(s, "sum") || f.residual || f.keep || f.gain || !f.norm;
	f.sum_on_input = trial_flag(s, "sum-on-input") && f.sum && (f.residual || !f.gain);
	f.d_r_on_d_sum = trial_flag(s, "d_r-on-d_sum") && f.later;
	f.d_r_on_d_y = trial_flag(s, "d_r-on-d_y") && f.norm && !f.d_r_on_d_sum;
	f.d_x_on_d_y = trial_flag(s, "d_x-on-d_y") && f.norm && !f.d_r_on_d_y && (f.keep || f.gain);
	return f;
}

static void *keep_factors(trial_side *s, size_t images)
{
	double keep_B[MAX_IMAGES];
	for (size_t b = 0; b < images; b++)
		mu_element_store(trial_stat(s), keep_B, b, trial_below(s, 4) ? 1.25 : 0);
	void *array = trial_array(s, TRIAL_INPUT, "keep_B", trial_stat(s), images);
	trial_fill(s, array, keep_B);
	return array;
}

/* An output of its own, or an input that the call may overwrite. */
static void *output_or_alias(trial_side *s, const char *name, size_t n, const void *alias)
{
	if (!alias)
		return trial_array(s, TRIAL_OUTPUT, name, s->type, n);
	trial_release(s, alias);
	return (void *)alias;
}

static void layernorm_forward(trial_side *s, mu_layernorm *op, layernorm_flags f, double *stream_size)
{
	const size_t T = op->tokens, D = op->width;
	op->x = trial_array(s, TRIAL_INPUT, "x", s->type, T * D);
	op->r = f.residual ? trial_array(s, TRIAL_INPUT, "r", s->type, T * D) : NULL;
	op->keep_B = f.keep ? keep_factors(s, T / op->tokens_per_image) : NULL;
	op->gain = f.gain ? trial_array(s, TRIAL_INPUT, "gain", s->type, D) : NULL;
	/* gain's gradient needs x: then only r may be overwritten */
	const void *alias = f.sum_on_input ? (f.residual ? op->r : op->x) : NULL;
	op->sum = f.sum ? output_or_alias(s, "sum", T * D, alias) : NULL;
	if (f.norm) {
		op->w = trial_array(s, TRIAL_INPUT, "w", s->type, D);
		op->b = trial_array(s, TRIAL_INPUT, "b", s->type, D);
		op->y = trial_array(s, TRIAL_OUTPUT, "y", s->type, T * D);
		op->mean = trial_array(s, TRIAL_OUTPUT, "mean", trial_stat(s), T);
		op->rstd = trial_array(s, TRIAL_OUTPUT, "rstd", trial_stat(s), T);
	}
	op->scratch = trial_scratch(s, s->table->layernorm_workspace(s->context, op));
	trial_call(s, "layernorm_forward", s->table->layernorm_forward(s->context, op, &s->err));

	*stream_size = 1.1 * (f.keep ? 1.25 : 1) * (f.gain ? 1.1 : 1) + 1.1 * f.residual;
	const double rstd = trial_largest(s, op->rstd), condition = 1 + *stream_size * rstd;
	if (f.sum)
		trial_expect(s, op->sum, s->type, 2, *stream_size);
	if (!f.norm)
		return;
	trial_expect(s, op->y, s->type, D, 1.1 * condition);
	trial_expect(s, op->mean, s->type, D, *stream_size);
	trial_expect(s, op->rstd, s->type, D, rstd * condition);
}

static void layernorm_backward(trial_side *s, mu_layernorm *op, layernorm_flags f, double stream_size)
{
	const size_t T = op->tokens, D = op->width;
	op->d_y = f.norm ? trial_array(s, TRIAL_INPUT, "d_y", s->type, T * D) : NULL;
	op->d_sum = f.later ? trial_array(s, TRIAL_INPUT, "d_sum", s->type, T * D) : NULL;
	op->d_r = output_or_alias(s, "d_r", T * D, f.d_r_on_d_sum ? op->d_sum : f.d_r_on_d_y ? op->d_y : NULL);
	if (f.keep || f.gain)
		op->d_x = output_or_alias(s, "d_x", T * D, f.d_x_on_d_y ? op->d_y : NULL);
	op->d_gain = f.gain ? trial_array(s, TRIAL_ADDED, "d_gain", s->type, D) : NULL;
	op->d_w = f.norm ? trial_array(s, TRIAL_ADDED, "d_w", s->type, D) : NULL;
	op->d_b = f.norm ? trial_array(s, TRIAL_ADDED, "d_b", s->type, D) : NULL;
	op->scratch = trial_scratch(s, s->table->layernorm_workspace(s->context, op));
	trial_call(s, "layernorm_backward", s->table->layernorm_backward(s->context, op, &s->err));

	const double rstd = trial_largest(s, op->rstd), condition = 1 + stream_size * rstd;
	const double size = 1.1 * f.later + 1.3 * rstd * condition, walk = sqrt((double)T);
	trial_expect(s, op->d_r, s->type, D, size);
	if (op->d_x)
		trial_expect(s, op->d_x, s->type, D, 1.4 * size);
	if (op->d_gain)
		trial_expect(s, op->d_gain, s->type, T, 1 + 1.4 * size * walk);
	if (!f.norm)
		return;
	trial_expect(s, op->d_w, s->type, T, 1 + 1.1 * condition * walk);
	trial_expect(s, op->d_b, s->type, T, 1 + 1.1 * walk);
}

void trial_case_layernorm(trial_side *s)
{
	static const double epsilons[] = {1e-6, 1e-5, 1e-2};
	const layernorm_flags f = draw_layernorm_flags(s);
	const size_t images = trial_size(s, "B", MAX_IMAGES);
	mu_layernorm op = {.type = s->type, .width = trial_size(s, "D", 768)};
	op.tokens_per_image = trial_size(s, "N", ELEMENTS / images / op.width);
	op.tokens = images * op.tokens_per_image;
	op.eps = epsilons[trial_below(s, 3)];
	double stream_size;
	layernorm_forward(s, &op, f, &stream_size);
	layernorm_backward(s, &op, f, stream_size);
}

void trial_case_pool(trial_side *s)
{
	mu_pool op = {.type = s->type, .images = trial_size(s, "B", MAX_IMAGES), .width = trial_size(s, "D", 768)};
	op.tokens = trial_size(s, "N", ELEMENTS / op.images / op.width);
	op.first = trial_below(s, op.tokens);
	op.last = trial_flag(s, "mean") ? op.first + 1 + trial_below(s, op.tokens - op.first) : op.first + 1;
	trial_note(s, "tokens [%zu, %zu) ", op.first, op.last);
	const size_t B = op.images, D = op.width, n = B * op.tokens * D;
	op.x = trial_array(s, TRIAL_INPUT, "x", s->type, n);
	op.y = trial_array(s, TRIAL_OUTPUT, "y", s->type, B * D);
	op.d_y = trial_array(s, TRIAL_INPUT, "d_y", s->type, B * D);
	op.d_x = trial_array(s, TRIAL_OUTPUT, "d_x", s->type, n);
	trial_call(s, "pool_forward", s->table->pool_forward(s->context, &op, &s->err));
	trial_call(s, "pool_backward", s->table->pool_backward(s->context, &op, &s->err));
	const double count = (double)(op.last - op.first);
	trial_expect(s, op.y, s->type, op.last - op.first, 1.1 / sqrt(count));
	trial_expect(s, op.d_x, s->type, 1, 1.1 / count);
}

void trial_case_dropout(trial_side *s)
{
	mu_dropout op = {.type = s->type, .images = trial_size(s, "B", MAX_IMAGES)};
	op.elements_per_image = trial_size(s, "elements", 768) * trial_size(s, "times", 5);
	op.rule = trial_dropout(s, op.images);
	op.x = trial_array(s, TRIAL_ADDED, "x", s->type, op.images * op.elements_per_image);
	trial_call(s, "dropout", s->table->dropout(s->context, &op, &s->err));
	trial_expect(s, op.x, s->type, 1, 1.1);
}

void trial_case_drop_path(trial_side *s)
{
	mu_drop_path op = {.type = s->type, .images = trial_size(s, "B", 197)};
	op.rule = trial_dropout(s, op.images);
	op.keep_B = trial_array(s, TRIAL_OUTPUT, "keep_B", trial_stat(s), op.images);
	trial_call(s, "drop_path", s->table->drop_path(s->context, &op, &s->err));
	trial_expect_bits(s, op.keep_B);
}
