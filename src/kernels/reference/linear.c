/* y = activation(x w^T + b). SPDX-License-Identifier: MIT */
#include "kernels/reference/element.h"
#include "kernels/reference/reference.h"

#define GELU_SQRT_2_OVER_PI 0.79788456080286535588
#define GELU_CUBIC 0.044715
#define SQRT_HALF 0.70710678118654752440
#define ONE_OVER_SQRT_2PI 0.39894228040143267794

static double activate(mu_activation activation, double x)
{
	switch (activation) {
	case MU_ACTIVATION_NONE: return x;
	/* erfc, not 1 + erf: the left tail keeps its digits. */
	case MU_ACTIVATION_GELU_ERF: return 0.5 * x * erfc(-x * SQRT_HALF);
	/* 0.5 (1 + tanh(u)) = 1 / (1 + exp(-2u)), again without cancellation. */
	case MU_ACTIVATION_GELU_TANH: return x / (1 + exp(-2 * GELU_SQRT_2_OVER_PI * (x + GELU_CUBIC * x * x * x)));
	}
	return (double)NAN;
}

static double activation_slope(mu_activation activation, double x)
{
	switch (activation) {
	case MU_ACTIVATION_NONE: return 1;
	case MU_ACTIVATION_GELU_ERF: return 0.5 * erfc(-x * SQRT_HALF) + x * ONE_OVER_SQRT_2PI * exp(-0.5 * x * x);
	case MU_ACTIVATION_GELU_TANH: {
		const double u = GELU_SQRT_2_OVER_PI * (x + GELU_CUBIC * x * x * x);
		const double slope_of_u = GELU_SQRT_2_OVER_PI * (1 + 3 * GELU_CUBIC * x * x);
		const double share = 1 / (1 + exp(-2 * u)), rest = 1 / (1 + exp(2 * u)); /* 1 - share would cancel */
		return share + 2 * x * share * rest * slope_of_u;
	}
	}
	return (double)NAN;
}

mural_status mu_reference_linear_forward(mu_ops_context *context, const mu_linear *op, mural_error *err)
{
	(void)context;
	(void)err;
	for (size_t row = 0; row < op->rows; row++)
		for (size_t o = 0; o < op->out; o++) {
			double pre = 0;
			for (size_t i = 0; i < op->in; i++)
				pre += mu_element_load(op->type, op->x, row * op->in + i) *
				       mu_element_load(op->type, op->w, o * op->in + i);
			if (op->b)
				pre += mu_element_load(op->type, op->b, o);
			if (op->activation != MU_ACTIVATION_NONE)
				mu_element_store(op->type, op->pre, row * op->out + o, pre);
			mu_element_store(op->type, op->y, row * op->out + o, activate(op->activation, pre));
		}
	return MURAL_OK;
}

/* d_y becomes the gradient of pre, rounded: what the products below read. */
static void through_activation(const mu_linear *op)
{
	for (size_t i = 0; i < op->rows * op->out; i++) {
		const double slope = activation_slope(op->activation, mu_element_load(op->type, op->pre, i));
		mu_element_store(op->type, op->d_y, i, mu_element_load(op->type, op->d_y, i) * slope);
	}
}

static void input_gradient(const mu_linear *op)
{
	for (size_t row = 0; row < op->rows; row++)
		for (size_t i = 0; i < op->in; i++) {
			double sum = 0;
			for (size_t o = 0; o < op->out; o++)
				sum += mu_element_load(op->type, op->d_y, row * op->out + o) *
				       mu_element_load(op->type, op->w, o * op->in + i);
			mu_element_store(op->type, op->d_x, row * op->in + i, sum);
		}
}

static void parameter_gradients(const mu_linear *op)
{
	for (size_t o = 0; o < op->out; o++) {
		for (size_t i = 0; i < op->in; i++) {
			double sum = 0;
			for (size_t row = 0; row < op->rows; row++)
				sum += mu_element_load(op->type, op->d_y, row * op->out + o) *
				       mu_element_load(op->type, op->x, row * op->in + i);
			mu_element_add(op->type, op->d_w, o * op->in + i, sum);
		}
		double sum = 0;
		for (size_t row = 0; row < op->rows; row++)
			sum += mu_element_load(op->type, op->d_y, row * op->out + o);
		if (op->d_b)
			mu_element_add(op->type, op->d_b, o, sum);
	}
}

mural_status mu_reference_linear_backward(mu_ops_context *context, const mu_linear *op, mural_error *err)
{
	(void)context;
	(void)err;
	if (op->activation != MU_ACTIVATION_NONE)
		through_activation(op);
	if (op->d_x)
		input_gradient(op);
	parameter_gradients(op);
	return MURAL_OK;
}
