/* One step of Lion over a span, in one pass. SPDX-License-Identifier: MIT */
#include "kernels/cuda/optimizer.cuh"

struct lion_rule {
	static constexpr int STATES = 1;
	static constexpr unsigned READ = 1, WRITTEN = 1;
	static constexpr bool GRADIENT = true, WEIGHT = true, NEW_WEIGHT = true;
	double lr_scale, decay;
	float gradient_scale, lr, shrink, beta1, rest1, beta2, rest2;

	__device__ __forceinline__ void begin(const mu_decision &at)
	{
		gradient_scale = static_cast<float>(at.gradient_scale);
		lr = static_cast<float>(at.lr * lr_scale);
		shrink = static_cast<float>(1 - at.lr * lr_scale * decay);
		beta1 = static_cast<float>(at.beta1);
		rest1 = static_cast<float>(1 - at.beta1);
		beta2 = static_cast<float>(at.beta2);
		rest2 = static_cast<float>(1 - at.beta2);
	}
	/* Zeros and NaN stay what they are. */
	__device__ __forceinline__ float element(float p, float g, float (&s)[MU_MOST_STATES]) const
	{
		g *= gradient_scale;
		const float x = fmaf(beta1, s[0], rest1 * g), sign = x > 0 ? 1 : x < 0 ? -1 : x;
		s[0] = fmaf(beta2, s[0], rest2 * g);
		return fmaf(p, shrink, -lr * sign);
	}
};

mural_status mu_cuda_lion(mu_ops_context *c, const mu_lion *op, mural_error *err)
{
	const mu_span span = {op->n, op->at, op->parameter, op->master, op->gradient, {mu_floats(op->m)}};
	lion_rule rule = {};
	rule.lr_scale = op->lr_scale;
	rule.decay = op->decay;
	return mu_span_run(c, op->type, span, rule, "lion", err);
}
