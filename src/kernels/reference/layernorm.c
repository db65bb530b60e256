/* Residual addition and LayerNorm. Mean first, then the mean of squared distances from it: two passes, no cancellation.
 *
 * With h = (s - mean) * rstd and g = d_y * w, the gradient of the norm at s is
 *     rstd * (g - mean(g) - h * mean(g * h))
 * SPDX-License-Identifier: MIT */
#include "kernels/reference/element.h"
#include "kernels/reference/reference.h"

/* What a branch output x is multiplied with before it joins the stream, without the gain. */
static double keep_of(const mu_layernorm *op, size_t token)
{
	return op->keep_B ? mu_element_load(mu_stat_type(op->type), op->keep_B, token / op->tokens_per_image) : 1;
}

static double gain_of(const mu_layernorm *op, size_t d)
{
	return op->gain ? mu_element_load(op->type, op->gain, d) : 1;
}

/* What the norm is taken of. */
static double normed(const mu_layernorm *op, size_t i)
{
	return mu_element_load(op->type, op->sum ? op->sum : op->x, i);
}

/* Makes the sum; sum may lie on x or r, whose element is read before it is written. */
static void add_streams(const mu_layernorm *op)
{
	for (size_t token = 0; token < op->tokens; token++)
		for (size_t d = 0; d < op->width; d++) {
			const size_t i = token * op->width + d;
			double s = mu_element_load(op->type, op->x, i) * keep_of(op, token) * gain_of(op, d);
			if (op->r)
				s += mu_element_load(op->type, op->r, i);
			mu_element_store(op->type, op->sum, i, s);
		}
}

/* Norms the sum as it is stored, rounded: the very values from which backward starts. */
static void norm_token(const mu_layernorm *op, size_t token)
{
	const size_t D = op->width, first = token * D;
	double mean = 0, variance = 0;
	for (size_t d = 0; d < D; d++)
		mean += normed(op, first + d);
	mean /= (double)D;
	for (size_t d = 0; d < D; d++) {
		const double distance = normed(op, first + d) - mean;
		variance += distance * distance;
	}
	variance /= (double)D;

	const double rstd = 1 / sqrt(variance + op->eps);
	for (size_t d = 0; d < D; d++) {
		const double h = (normed(op, first + d) - mean) * rstd;
		const double w = mu_element_load(op->type, op->w, d), b = mu_element_load(op->type, op->b, d);
		mu_element_store(op->type, op->y, first + d, h * w + b);
	}
	mu_element_store(mu_stat_type(op->type), op->mean, token, mean);
	mu_element_store(mu_stat_type(op->type), op->rstd, token, rstd);
}

mural_status mu_reference_layernorm_forward(mu_ops_context *context, const mu_layernorm *op, mural_error *err)
{
	(void)context;
	(void)err;
	if (op->sum)
		add_streams(op);
	for (size_t token = 0; token < op->tokens && op->y; token++)
		norm_token(op, token);
	return MURAL_OK;
}

size_t mu_reference_layernorm_workspace(mu_ops_context *context, const mu_layernorm *op)
{
	(void)context;
	return 3 * op->width * sizeof(double);
}

/* Sums over tokens of the three parameter gradients, one double per column. */
typedef struct column_sums {
	double *w, *b, *gain;
} column_sums;

/* One token whose d_y is not NULL: adds to the sums of w and b, returns the two means of the formula. */
static void norm_means(const mu_layernorm *op, size_t token, double mean, double rstd, column_sums sums, double *mean_g,
                       double *mean_gh)
{
	const size_t D = op->width;
	*mean_g = *mean_gh = 0;
	for (size_t d = 0; d < D; d++) {
		const double h = (normed(op, token * D + d) - mean) * rstd;
		const double d_y = mu_element_load(op->type, op->d_y, token * D + d);
		const double g = d_y * mu_element_load(op->type, op->w, d);
		sums.w[d] += d_y * h;
		sums.b[d] += d_y;
		*mean_g += g / (double)D;
		*mean_gh += g * h / (double)D;
	}
}

static void token_backward(const mu_layernorm *op, size_t token, column_sums sums)
{
	const size_t D = op->width;
	const double keep = keep_of(op, token);
	double mean = 0, rstd = 0, mean_g = 0, mean_gh = 0;
	if (op->d_y) {
		mean = mu_element_load(mu_stat_type(op->type), op->mean, token);
		rstd = mu_element_load(mu_stat_type(op->type), op->rstd, token);
		norm_means(op, token, mean, rstd, sums, &mean_g, &mean_gh);
	}
	/* d_r and d_x may lie on d_y or d_sum: all of an element is read before any of it is written. */
	for (size_t d = 0; d < D; d++) {
		const size_t i = token * D + d;
		double d_s = op->d_sum ? mu_element_load(op->type, op->d_sum, i) : 0;
		if (op->d_y) {
			const double h = (normed(op, i) - mean) * rstd;
			const double g = mu_element_load(op->type, op->d_y, i) * mu_element_load(op->type, op->w, d);
			d_s += rstd * (g - mean_g - h * mean_gh);
		}
		if (op->d_gain)
			sums.gain[d] += d_s * mu_element_load(op->type, op->x, i) * keep;
		mu_element_store(op->type, op->d_r, i, d_s);
		if (op->d_x)
			mu_element_store(op->type, op->d_x, i, d_s * keep * gain_of(op, d));
	}
}

mural_status mu_reference_layernorm_backward(mu_ops_context *context, const mu_layernorm *op, mural_error *err)
{
	(void)context;
	(void)err;
	const size_t D = op->width;
	double *scratch = op->scratch;
	const column_sums sums = {.w = scratch, .b = scratch + D, .gain = scratch + 2 * D};
	for (size_t i = 0; i < 3 * D; i++)
		scratch[i] = 0;
	for (size_t token = 0; token < op->tokens; token++)
		token_backward(op, token, sums);
	for (size_t d = 0; d < D; d++) {
		if (op->d_y) {
			mu_element_add(op->type, op->d_w, d, sums.w[d]);
			mu_element_add(op->type, op->d_b, d, sums.b[d]);
		}
		if (op->d_gain)
			mu_element_add(op->type, op->d_gain, d, sums.gain[d]);
	}
	return MURAL_OK;
}
