/* Class token, patches, positions, dropout. Forward is a pass over images * tokens rows, 8 bytes per element plus the
 * positions, which stay in cache. Backward gives each token to one thread, which walks the images and sums in double on
 * a block of columns: the order of the sum is that of the images, and d_x is read once.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "kernels/cpu/real.h"

#define COLUMNS 64

struct embed {
	size_t images, prefix, tokens, width;
	const mu_dropout_rule *dropout;
	const mu_real *patch, *class_token, *position, *d_x;
	mu_real *x, *d_patch, *d_class_token, *d_position;
};

static struct embed view(const mu_embed *op, bool class_token)
{
	return (struct embed){.images = op->images,
	                      .prefix = class_token,
	                      .tokens = class_token + op->patches,
	                      .width = op->width,
	                      .dropout = &op->dropout,
	                      .patch = op->patch,
	                      .class_token = op->class_token,
	                      .position = op->position,
	                      .x = op->x,
	                      .d_x = op->d_x,
	                      .d_patch = op->d_patch,
	                      .d_class_token = op->d_class_token,
	                      .d_position = op->d_position};
}

/* Factors of columns [column, column + n) of one token; 1 without dropout. n <= COLUMNS. */
MU_CPU_INLINE const float *keep_columns(const struct embed *e, size_t b, size_t token, size_t column, size_t n,
                                        float *space)
{
	if (e->dropout->threshold != 0)
		return mu_simd_keep(e->dropout, e->dropout->stream_B[b], token * e->width + column, n, space);
	for (size_t i = 0; i < COLUMNS; i++)
		space[i] = 1;
	return space;
}

MU_CPU_KERNEL(embed_rows)
{
	const struct embed *e = work;
	const size_t D = e->width;
	float space[MU_SIMD_KEEP_SPACE(COLUMNS)];
	for (size_t row = begin; row < end; row++) {
		const size_t b = row / e->tokens, token = row % e->tokens;
		const mu_real *from = token < e->prefix
		                              ? e->class_token
		                              : e->patch + (b * (e->tokens - e->prefix) + token - e->prefix) * D;
		const mu_real *position = e->position + token * D;
		mu_real *x = e->x + row * D;
		for (size_t column = 0; column < D; column += COLUMNS) {
			const size_t n = D - column < COLUMNS ? D - column : COLUMNS;
			const float *keep = keep_columns(e, b, token, column, n, space);
#pragma omp simd
			for (size_t i = 0; i < n; i++)
				x[column + i] = mu_narrow((mu_wide(from[column + i]) + mu_wide(position[column + i])) *
				                          keep[i]);
		}
	}
}

MU_CPU_INLINE void embed_columns_backward(const struct embed *e, size_t token, size_t column, size_t n)
{
	const size_t D = e->width;
	double sum[COLUMNS] = {0};
	float space[MU_SIMD_KEEP_SPACE(COLUMNS)];
	mu_real d[COLUMNS];
	for (size_t b = 0; b < e->images; b++) {
		const mu_real *d_x = e->d_x + (b * e->tokens + token) * D + column;
		const float *keep = keep_columns(e, b, token, column, n, space);
#pragma omp simd
		for (size_t i = 0; i < n; i++) {
			const float kept = mu_wide(d_x[i]) * keep[i];
			d[i] = mu_narrow(kept);
			sum[i] += kept;
		}
		if (token >= e->prefix)
			memcpy(e->d_patch + (b * (e->tokens - e->prefix) + token - e->prefix) * D + column, d,
			       n * sizeof *d);
	}
	mu_real *d_position = e->d_position + token * D + column;
	for (size_t i = 0; i < n; i++)
		mu_real_add(&d_position[i], (float)sum[i]);
	for (size_t i = 0; i < n && token < e->prefix; i++)
		mu_real_add(&e->d_class_token[column + i], (float)sum[i]);
}

MU_CPU_KERNEL(embed_tokens_backward)
{
	const struct embed *e = work;
	for (size_t token = begin; token < end; token++)
		for (size_t column = 0; column < e->width; column += COLUMNS)
			embed_columns_backward(e, token, column,
			                       e->width - column < COLUMNS ? e->width - column : COLUMNS);
}

size_t mu_cpu_embed_workspace(mu_ops_context *c, const mu_embed *op)
{
	(void)c;
	(void)op;
	return 0;
}

mural_status mu_cpu_embed_forward(mu_ops_context *c, const mu_embed *op, mural_error *err)
{
	(void)err;
	const struct embed e = view(op, op->class_token != NULL);
	mu_cpu_run(c, embed_rows, &e, e.images * e.tokens);
	return MURAL_OK;
}

mural_status mu_cpu_embed_backward(mu_ops_context *c, const mu_embed *op, mural_error *err)
{
	(void)err;
	const struct embed e = view(op, op->d_class_token != NULL);
	mu_cpu_run(c, embed_tokens_backward, &e, e.tokens);
	return MURAL_OK;
}
