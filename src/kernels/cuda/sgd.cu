/* One step of stochastic gradient descent over a span, in one pass. SPDX-License-Identifier: MIT */
#include "kernels/cuda/optimizer.cuh"

template <bool MOMENTUM> struct sgd_rule {
	static constexpr int STATES = MOMENTUM ? 1 : 0;
	static constexpr unsigned READ = 1, WRITTEN = 1;
	static constexpr bool GRADIENT = true, WEIGHT = true, NEW_WEIGHT = true;
	double lr_scale;
	float decay, momentum, dampening;
	bool nesterov;
	float gradient_scale, lr, new_part;

	__device__ __forceinline__ void begin(const mu_decision &at)
	{
		gradient_scale = static_cast<float>(at.gradient_scale);
		lr = static_cast<float>(at.lr * lr_scale);
		new_part = at.number == 1 ? 1 : 1 - dampening;
	}
	__device__ __forceinline__ float element(float p, float g, float (&s)[MU_MOST_STATES]) const
	{
		g = fmaf(decay, p, g * gradient_scale);
		if (!MOMENTUM)
			return p - lr * g;
		s[0] = fmaf(momentum, s[0], new_part * g);
		return p - lr * (nesterov ? fmaf(momentum, s[0], g) : s[0]);
	}
};

template <bool MOMENTUM> static mural_status run(mu_ops_context *c, const mu_sgd *op, mural_error *err)
{
	const mu_span span = {op->n, op->at, op->parameter, op->master, op->gradient, {mu_floats(op->m)}};
	sgd_rule<MOMENTUM> rule = {};
	rule.lr_scale = op->lr_scale;
	rule.decay = static_cast<float>(op->decay);
	rule.momentum = static_cast<float>(op->momentum);
	rule.dampening = static_cast<float>(op->dampening);
	rule.nesterov = op->nesterov;
	return mu_span_run(c, op->type, span, rule, "sgd", err);
}

mural_status mu_cuda_sgd(mu_ops_context *c, const mu_sgd *op, mural_error *err)
{
	return op->momentum == 0 ? run<false>(c, op, err) : run<true>(c, op, err);
}
