/* A step along a direction, with a trust ratio that each thread works out from the two norms. SPDX-License-Identifier: MIT */
#include "kernels/cuda/optimizer.cuh"

struct apply_rule {
	static constexpr int STATES = 1; /* update */
	static constexpr unsigned READ = 1, WRITTEN = 0;
	static constexpr bool GRADIENT = false, WEIGHT = true, NEW_WEIGHT = true;
	double lr_scale, scale, decay;
	float min_ratio, max_ratio;
	const double *weight_square, *update_square;
	float shrink, step;

	__device__ __forceinline__ float ratio(void) const
	{
		if (!weight_square || *weight_square == 0 || *update_square == 0)
			return 1;
		const float ratio = sqrtf(static_cast<float>(*weight_square / *update_square));
		return ratio > max_ratio ? max_ratio : ratio < min_ratio ? min_ratio : ratio;
	}
	__device__ __forceinline__ void begin(const mu_decision &at)
	{
		const double lr = at.lr * lr_scale;
		shrink = static_cast<float>(1 - lr * decay);
		step = static_cast<float>(lr * scale) * ratio();
	}
	__device__ __forceinline__ float element(float p, float g, float (&s)[MU_MOST_STATES]) const
	{
		(void)g;
		return fmaf(p, shrink, -step * s[0]);
	}
};

mural_status mu_cuda_apply_update(mu_ops_context *c, const mu_apply_update *op, mural_error *err)
{
	const mu_span span = {op->n,         op->at,
	                      op->parameter, op->master,
	                      nullptr,       {static_cast<float *>(const_cast<void *>(op->update))}}; /* only read */
	apply_rule rule = {};
	rule.lr_scale = op->lr_scale;
	rule.scale = op->scale;
	rule.decay = op->decay;
	rule.min_ratio = static_cast<float>(op->min_ratio);
	rule.max_ratio = static_cast<float>(op->max_ratio);
	rule.weight_square = op->weight_square;
	rule.update_square = op->update_square;
	return mu_span_run(c, op->type, span, rule, "apply_update", err);
}
