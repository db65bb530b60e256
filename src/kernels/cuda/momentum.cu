/* Momentum as a moving average, over a span, in one pass. `update` may lie on the gradient: a pack is read before it is
 * written. SPDX-License-Identifier: MIT */
#include "kernels/cuda/optimizer.cuh"

struct momentum_rule {
	static constexpr int STATES = 2; /* m, update */
	static constexpr unsigned READ = 1, WRITTEN = 3;
	static constexpr bool GRADIENT = true, WEIGHT = false, NEW_WEIGHT = false;
	float momentum, rest;
	bool nesterov;
	float gradient_scale;

	__device__ __forceinline__ void begin(const mu_decision &at)
	{
		gradient_scale = static_cast<float>(at.gradient_scale);
	}
	__device__ __forceinline__ float element(float p, float g, float (&s)[MU_MOST_STATES]) const
	{
		g *= gradient_scale;
		s[0] = fmaf(momentum, s[0], rest * g);
		s[1] = nesterov ? fmaf(momentum, s[0], rest * g) : s[0];
		return p;
	}
};

mural_status mu_cuda_momentum(mu_ops_context *c, const mu_momentum *op, mural_error *err)
{
	const mu_span span = {op->n, op->at, nullptr, nullptr, op->gradient, {mu_floats(op->m), mu_floats(op->update)}};
	momentum_rule rule = {};
	rule.momentum = static_cast<float>(op->momentum);
	rule.rest = static_cast<float>(1 - op->momentum);
	rule.nesterov = op->nesterov;
	return mu_span_run(c, op->type, span, rule, "momentum", err);
}
