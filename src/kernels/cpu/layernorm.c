/* Residual addition and LayerNorm, a row at a time, each row read from memory once.
 *
 * Forward moves 16 bytes per element (x, r, sum, y), backward 20 (sum, d_y, d_sum, d_r, d_x); a row of a ViT (up to
 * 6.5 KiB) stays in the first-level cache between the passes over it, so the limit is memory bandwidth. Mean first,
 * then squared distances: no cancellation. Gradients of w, b and gain: one partial sum per chunk of MU_CPU_CHUNK
 * rows.
 *
 * Measured on one core of a Xeon with AVX-512 whose copies reach 47 GB/s: 29 GB/s forward, 36 backward (384 wide).
 *
 * With h = (s - mean) * rstd and g = d_y * w, the gradient of the norm at s is rstd * (g - mean(g) - h * mean(g *
 * h)).
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "kernels/cpu/real.h"

/* The typed view of one call. */
struct norm {
	size_t rows, width, per_image;
	float eps;
	const mu_real *x, *r, *w, *b, *gain;
	const float *keep_B;
	mu_real *sum, *y;
	float *mean, *rstd;
	const mu_real *d_y, *d_sum;
	mu_real *d_r, *d_x;
	float *partial_w, *partial_b, *partial_gain; /* [chunks, width] each */
};

static struct norm view(const mu_layernorm *op)
{
	const size_t span = mu_cpu_chunks(op->tokens) * op->width;
	float *scratch = op->scratch;
	return (struct norm){.rows = op->tokens,
	                     .width = op->width,
	                     .per_image = op->tokens_per_image,
	                     .eps = (float)op->eps,
	                     .x = op->x,
	                     .r = op->r,
	                     .w = op->w,
	                     .b = op->b,
	                     .keep_B = op->keep_B,
	                     .gain = op->gain,
	                     .sum = op->sum,
	                     .y = op->y,
	                     .mean = op->mean,
	                     .rstd = op->rstd,
	                     .d_y = op->d_y,
	                     .d_sum = op->d_sum,
	                     .d_r = op->d_r,
	                     .d_x = op->d_x,
	                     .partial_w = scratch,
	                     .partial_b = scratch ? scratch + span : NULL,
	                     .partial_gain = scratch ? scratch + 2 * span : NULL};
}

MU_CPU_INLINE float keep_of(const struct norm *n, size_t row)
{
	return n->keep_B ? n->keep_B[row / n->per_image] : 1;
}

/* sum = x * keep * gain + r; sum may lie on x or r, element by element. */
MU_CPU_INLINE void add_row(const struct norm *n, size_t row)
{
	const size_t D = n->width, first = row * D;
	const mu_real *x = n->x + first, *r = n->r ? n->r + first : NULL, *gain = n->gain;
	const float keep = keep_of(n, row);
	mu_real *sum = n->sum + first;
	if (r && gain) {
#pragma omp simd
		for (size_t i = 0; i < D; i++)
			sum[i] = mu_narrow(mu_wide(x[i]) * keep * mu_wide(gain[i]) + mu_wide(r[i]));
	} else if (r) {
#pragma omp simd
		for (size_t i = 0; i < D; i++)
			sum[i] = mu_narrow(mu_wide(x[i]) * keep + mu_wide(r[i]));
	} else if (gain) {
#pragma omp simd
		for (size_t i = 0; i < D; i++)
			sum[i] = mu_narrow(mu_wide(x[i]) * keep * mu_wide(gain[i]));
	} else {
#pragma omp simd
		for (size_t i = 0; i < D; i++)
			sum[i] = mu_narrow(mu_wide(x[i]) * keep);
	}
}

MU_CPU_INLINE void norm_row(const struct norm *n, size_t row)
{
	const size_t D = n->width, first = row * D;
	const mu_real *s = (n->sum ? n->sum : n->x) + first, *w = n->w, *b = n->b;
	mu_real *y = n->y + first;
	mu_simd sum = {0}, squares = {0};
	for (size_t i = 0; i < D; i += MU_LANES)
		sum += mu_real_load_up_to(s + i, D - i);
	const float mean = mu_simd_sum(sum) / (float)D;
	for (size_t i = 0; i < D; i += MU_LANES) {
		const mu_simd distance = mu_real_load_filled(s + i, D - i, mean) - mean;
		squares += distance * distance;
	}
	const float rstd = 1 / sqrtf(mu_simd_sum(squares) / (float)D + n->eps);
#pragma omp simd
	for (size_t i = 0; i < D; i++)
		y[i] = mu_narrow((mu_wide(s[i]) - mean) * rstd * mu_wide(w[i]) + mu_wide(b[i]));
	n->mean[row] = mean;
	n->rstd[row] = rstd;
}

MU_CPU_KERNEL(forward_rows)
{
	const struct norm *n = work;
	for (size_t row = begin; row < end; row++) {
		if (n->sum)
			add_row(n, row);
		if (n->y)
			norm_row(n, row);
	}
}

mural_status mu_cpu_layernorm_forward(mu_ops_context *c, const mu_layernorm *op, mural_error *err)
{
	(void)err;
	const struct norm n = view(op);
	mu_cpu_run(c, forward_rows, &n, n.rows);
	return MURAL_OK;
}

/* d_r = d_sum + gradient of the norm at s; adds to the chunk's sums of w and b. */
MU_CPU_INLINE void norm_row_backward(const struct norm *n, size_t row, float *sum_w, float *sum_b)
{
	const size_t D = n->width, first = row * D;
	const mu_real *s = (n->sum ? n->sum : n->x) + first, *w = n->w, *d_y = n->d_y + first;
	const mu_real *d_sum = n->d_sum ? n->d_sum + first : NULL;
	const float mean = n->mean[row], rstd = n->rstd[row];
	mu_real *d_r = n->d_r + first;
	mu_simd sum_g = {0}, sum_gh = {0};
	for (size_t i = 0; i < D; i += MU_LANES) {
		const size_t left = D - i;
		const mu_simd h = (mu_real_load_filled(s + i, left, mean) - mean) * rstd;
		const mu_simd d = mu_real_load_up_to(d_y + i, left);
		const mu_simd g = d * mu_real_load_up_to(w + i, left);
		sum_g += g;
		sum_gh += g * h;
		mu_simd_store_up_to(sum_w + i, left, mu_simd_load_up_to(sum_w + i, left) + d * h);
		mu_simd_store_up_to(sum_b + i, left, mu_simd_load_up_to(sum_b + i, left) + d);
	}
	const float mean_g = mu_simd_sum(sum_g) / (float)D, mean_gh = mu_simd_sum(sum_gh) / (float)D;
	if (d_sum) {
#pragma omp simd
		for (size_t i = 0; i < D; i++) {
			const float h = (mu_wide(s[i]) - mean) * rstd;
			const float g = mu_wide(d_y[i]) * mu_wide(w[i]);
			d_r[i] = mu_narrow(mu_wide(d_sum[i]) + rstd * (g - mean_g - h * mean_gh));
		}
	} else {
#pragma omp simd
		for (size_t i = 0; i < D; i++) {
			const float h = (mu_wide(s[i]) - mean) * rstd;
			const float g = mu_wide(d_y[i]) * mu_wide(w[i]);
			d_r[i] = mu_narrow(rstd * (g - mean_g - h * mean_gh));
		}
	}
}

/* Without a norm the gradient passes through. */
MU_CPU_INLINE void pass_row_backward(const struct norm *n, size_t row)
{
	const size_t D = n->width, bytes = D * sizeof(mu_real);
	mu_real *d_r = n->d_r + row * D;
	if (!n->d_sum)
		memset(d_r, 0, bytes);
	else if (n->d_sum != n->d_r)
		memcpy(d_r, n->d_sum + row * D, bytes);
}

/* d_x = d_r * keep * gain; adds to the chunk's sum of gain. */
MU_CPU_INLINE void branch_row_backward(const struct norm *n, size_t row, float *sum_gain)
{
	const size_t D = n->width, first = row * D;
	const mu_real *d_r = n->d_r + first, *x = n->x + first, *gain = n->gain;
	const float keep = keep_of(n, row);
	mu_real *d_x = n->d_x + first;
	if (gain) {
#pragma omp simd
		for (size_t i = 0; i < D; i++) {
			const float d = mu_wide(d_r[i]) * keep;
			d_x[i] = mu_narrow(d * mu_wide(gain[i]));
			sum_gain[i] += mu_wide(d_r[i]) * mu_wide(x[i]) * keep;
		}
	} else {
#pragma omp simd
		for (size_t i = 0; i < D; i++)
			d_x[i] = mu_narrow(mu_wide(d_r[i]) * keep);
	}
}

MU_CPU_KERNEL(backward_chunks)
{
	const struct norm *n = work;
	const size_t D = n->width;
	for (size_t chunk = begin; chunk < end; chunk++) {
		const size_t first = chunk * MU_CPU_CHUNK;
		const size_t last = first + MU_CPU_CHUNK < n->rows ? first + MU_CPU_CHUNK : n->rows;
		float *sum_w = n->partial_w + chunk * D, *sum_b = n->partial_b + chunk * D;
		float *sum_gain = n->partial_gain + chunk * D;
		memset(sum_w, 0, D * sizeof(float));
		memset(sum_b, 0, D * sizeof(float));
		memset(sum_gain, 0, D * sizeof(float));
		for (size_t row = first; row < last; row++) {
			if (n->d_y)
				norm_row_backward(n, row, sum_w, sum_b);
			else
				pass_row_backward(n, row);
			if (n->d_x)
				branch_row_backward(n, row, sum_gain);
		}
	}
}

size_t mu_cpu_layernorm_workspace(mu_ops_context *c, const mu_layernorm *op)
{
	(void)c;
	return 3 * mu_cpu_chunks(op->tokens) * op->width * sizeof(float);
}

mural_status mu_cpu_layernorm_backward(mu_ops_context *c, const mu_layernorm *op, mural_error *err)
{
	(void)err;
	const struct norm n = view(op);
	const size_t chunks = mu_cpu_chunks(n.rows);
	mu_cpu_run(c, backward_chunks, &n, chunks);
	if (n.d_y) {
		mu_cpu_add_partials(c, op->d_w, n.partial_w, chunks, n.width);
		mu_cpu_add_partials(c, op->d_b, n.partial_b, chunks, n.width);
	}
	if (n.d_x && n.gain)
		mu_cpu_add_partials(c, op->d_gain, n.partial_gain, chunks, n.width);
	return MURAL_OK;
}
