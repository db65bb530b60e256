/* Moving average of weights. SPDX-License-Identifier: MIT */
#include "kernels/cuda/optimizer.cuh"

struct ema_rule {
	static constexpr int STATES = 1; /* average */
	static constexpr unsigned READ = 1, WRITTEN = 1;
	static constexpr bool GRADIENT = false, WEIGHT = true, NEW_WEIGHT = false;
	float keep, rest;

	__device__ __forceinline__ void begin(const mu_decision &at)
	{
		keep = static_cast<float>(at.ema_decay);
		rest = static_cast<float>(1 - at.ema_decay);
	}
	__device__ __forceinline__ float element(float p, float g, float (&s)[MU_MOST_STATES]) const
	{
		(void)g;
		s[0] = fmaf(keep, s[0], rest * p);
		return p;
	}
};

mural_status mu_cuda_ema(mu_ops_context *c, const mu_ema *op, mural_error *err)
{
	/* Weights are only read: the rule writes none. */
	const mu_span span = {op->n,
	                      op->at,
	                      const_cast<void *>(op->parameter),
	                      const_cast<float *>(op->master),
	                      nullptr,
	                      {mu_floats(op->average)}};
	return mu_span_run(c, op->type, span, ema_rule{}, "ema", err);
}
