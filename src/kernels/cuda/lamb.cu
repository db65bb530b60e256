/* LAMB's moments and direction over a span, in one pass. `update` may lie on the gradient: a pack is read before it is
 * written. SPDX-License-Identifier: MIT */
#include "kernels/cuda/optimizer.cuh"

struct lamb_rule {
	static constexpr int STATES = 3; /* m, v, update */
	static constexpr unsigned READ = 3, WRITTEN = 7;
	static constexpr bool GRADIENT = true, WEIGHT = true, NEW_WEIGHT = false;
	float eps, decay;
	bool eps_inside;
	float gradient_scale, beta1, rest1, beta2, rest2, over1, over2;

	__device__ __forceinline__ void begin(const mu_decision &at)
	{
		gradient_scale = static_cast<float>(at.gradient_scale);
		beta1 = static_cast<float>(at.beta1);
		rest1 = static_cast<float>(1 - at.beta1);
		beta2 = static_cast<float>(at.beta2);
		rest2 = static_cast<float>(1 - at.beta2);
		over1 = 1 / static_cast<float>(at.bias1);
		over2 = 1 / static_cast<float>(at.bias2);
	}
	__device__ __forceinline__ float element(float p, float g, float (&s)[MU_MOST_STATES]) const
	{
		g *= gradient_scale;
		s[0] = fmaf(beta1, s[0], rest1 * g);
		s[1] = fmaf(beta2, s[1], rest2 * g * g);
		const float root = eps_inside ? sqrtf(fmaf(s[1], over2, eps)) : sqrtf(s[1] * over2) + eps;
		s[2] = fmaf(decay, p, s[0] * over1 / root);
		return p;
	}
};

mural_status mu_cuda_lamb(mu_ops_context *c, const mu_lamb *op, mural_error *err)
{
	/* Weights are only read: the rule writes none. */
	const mu_span span = {op->n,
	                      op->at,
	                      const_cast<void *>(op->parameter),
	                      const_cast<float *>(op->master),
	                      op->gradient,
	                      {mu_floats(op->m), mu_floats(op->v), mu_floats(op->update)}};
	lamb_rule rule = {};
	rule.eps = static_cast<float>(op->eps);
	rule.decay = static_cast<float>(op->decay);
	rule.eps_inside = op->eps_inside;
	return mu_span_run(c, op->type, span, rule, "lamb", err);
}
