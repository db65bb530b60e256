/* Cross-entropy with smoothed labels, its gradient, and who was right: one block per image, then one block that adds the
 * images' results in order to the step's sums. Reading a row three times costs nothing: it is in the cache.
 *
 * NaN as in the reference: it counts as greater than the label's logit, is never the largest unless it is the first, and
 * makes the loss NaN. SPDX-License-Identifier: MIT */
#include <math_constants.h>

#include "kernels/cuda/cuda.cuh"
#include "kernels/per_step.h"

#define BLOCK 128

/* What one image adds to the sums; 32 bytes. */
struct alignas(32) mu_cuda_loss_row {
	double loss;
	uint32_t count, top1, top5;
	uint16_t non_finite, label_range;
};

struct best {
	float logit;
	uint32_t at;
};

static __device__ best better(best a, best b)
{
	return b.logit > a.logit || (b.logit == a.logit && b.at < a.at) ? b : a;
}

/* Both over the whole block, for every thread. */
static __device__ best block_best(best x)
{
	__shared__ best warps[BLOCK / MU_WARP];
	for (int lane = MU_WARP / 2; lane > 0; lane /= 2) {
		best other;
		other.logit = __shfl_xor_sync(0xffffffffu, x.logit, lane);
		other.at = __shfl_xor_sync(0xffffffffu, x.at, lane);
		x = better(x, other);
	}
	__syncthreads();
	if (threadIdx.x % MU_WARP == 0)
		warps[threadIdx.x / MU_WARP] = x;
	__syncthreads();
	x = warps[0];
	for (int w = 1; w < BLOCK / MU_WARP; w++)
		x = better(x, warps[w]);
	return x;
}

static __device__ float block_sum(float x)
{
	__shared__ float warps[BLOCK / MU_WARP];
	x = mu_warp_sum(x);
	__syncthreads();
	if (threadIdx.x % MU_WARP == 0)
		warps[threadIdx.x / MU_WARP] = x;
	__syncthreads();
	x = 0;
	for (int w = 0; w < BLOCK / MU_WARP; w++)
		x += warps[w];
	return x;
}

/* Index and value of the largest logit; the first of a tie. */
template <typename E> static __device__ best best_of(const E *logit, uint32_t C)
{
	best mine = {-CUDART_INF_F, 0xffffffffu};
	for (uint32_t c = threadIdx.x; c < C; c += BLOCK)
		mine = better(mine, {mu_load(logit[c]), c});
	mine = block_best(mine);
	const float first = mu_load(logit[0]);
	if (mine.at == 0xffffffffu || isnan(first)) /* NaN alone, or NaN first */
		mine = {first, 0};
	return mine;
}

/* How many classes come before the label when sorted by logit, then by index. */
template <typename E> static __device__ uint32_t rank_of(const E *logit, uint32_t C, uint32_t label)
{
	const float own = mu_load(logit[label]);
	uint32_t before = 0;
	for (uint32_t c = threadIdx.x; c < C; c += BLOCK) {
		const float x = mu_load(logit[c]);
		before += c != label && (!(x <= own) || (x == own && c < label));
	}
	return static_cast<uint32_t>(block_sum(static_cast<float>(before)));
}

/* Loss of a row whose label is in range; writes its gradient. */
template <typename E>
static __device__ float row_loss(const mu_cross_entropy &op, const E *logit, E *d_logit, uint32_t label, float largest)
{
	const uint32_t C = static_cast<uint32_t>(op.classes);
	const float rest = static_cast<float>(op.smoothing / op.classes);
	const float own = static_cast<float>(1 - op.smoothing) + rest;
	const float scale = d_logit ? static_cast<float>(mu_loss_factor(&op)) : 0;
	float sum = 0, loss = 0;
	for (uint32_t c = threadIdx.x; c < C; c += BLOCK)
		sum += expf(mu_load(logit[c]) - largest);
	sum = block_sum(sum);
	const float log_sum = logf(sum);
	for (uint32_t c = threadIdx.x; c < C; c += BLOCK) {
		const float target = c == label ? own : rest, x = mu_load(logit[c]) - largest;
		if (target != 0) /* 0 * -inf is 0 here */
			loss -= target * (x - log_sum);
		if (d_logit)
			d_logit[c] = mu_round<E>(scale * (expf(x) / sum - target));
	}
	return block_sum(loss);
}

template <typename E> static __global__ void cross_entropy_kernel(const mu_cross_entropy op, mu_cuda_loss_row *rows)
{
	const size_t b = blockIdx.x;
	const uint32_t C = static_cast<uint32_t>(op.classes);
	const E *logit = static_cast<const E *>(op.logits) + b * C;
	E *d_logit = op.d_logits ? static_cast<E *>(op.d_logits) + b * C : nullptr;
	const bool real = b < op.micro->count;
	const int32_t label = real ? op.labels[b] : -1;
	const bool in_range = label >= 0 && static_cast<uint32_t>(label) < C;
	const best top = best_of(logit, C);
	mu_cuda_loss_row row = {0, in_range, 0, 0, 0, real && !in_range};
	float loss = 0;
	if (in_range) {
		const uint32_t rank = rank_of(logit, C, label); /* before the gradient, which may lie on the logits */
		row.top1 = rank < 1;
		row.top5 = rank < 5;
		loss = row_loss(op, logit, d_logit, static_cast<uint32_t>(label), top.logit);
		row.non_finite = !isfinite(loss);
	} else if (d_logit) {
		__syncthreads(); /* all have read the logits */
		for (uint32_t c = threadIdx.x; c < C; c += BLOCK)
			d_logit[c] = mu_round<E>(0);
	}
	if (threadIdx.x > 0)
		return;
	row.loss = loss;
	rows[b] = row;
	if (op.loss_B)
		op.loss_B[b] = loss;
	if (op.best_B)
		op.best_B[b] = static_cast<int32_t>(top.at);
}

static __device__ double warp_total(double x)
{
	for (int lane = MU_WARP / 2; lane > 0; lane /= 2)
		x += __shfl_xor_sync(0xffffffffu, x, lane);
	return x;
}

/* One warp: each lane takes every 32nd image. */
static __global__ void cross_entropy_add_kernel(mu_step_sums *sums, const mu_cuda_loss_row *rows, size_t images)
{
	mu_step_sums mine = {};
	for (size_t b = threadIdx.x; b < images; b += MU_WARP) {
		mine.loss += rows[b].loss;
		mine.count += rows[b].count;
		mine.top1 += rows[b].top1;
		mine.top5 += rows[b].top5;
		mine.non_finite += rows[b].non_finite;
		mine.label_range += rows[b].label_range;
	}
	mine.loss = warp_total(mine.loss);
	mine.count = warp_total(mine.count);
	mine.top1 = warp_total(mine.top1);
	mine.top5 = warp_total(mine.top5);
	mine.non_finite = warp_total(mine.non_finite);
	mine.label_range = warp_total(mine.label_range);
	if (threadIdx.x > 0)
		return;
	sums->loss += mine.loss;
	sums->count += mine.count;
	sums->top1 += mine.top1;
	sums->top5 += mine.top5;
	sums->non_finite += mine.non_finite;
	sums->label_range += mine.label_range;
}

mural_status mu_cuda_cross_entropy(mu_ops_context *c, const mu_cross_entropy *op, mural_error *err)
{
	if (op->images == 0)
		return MURAL_OK;
	if (op->images > MU_CUDA_LOSS_ROWS)
		return mu_fail(err, MURAL_USAGE, NULL,
		               "%zu images in one micro-batch; at most %d fit the loss on a GPU", op->images,
		               MU_CUDA_LOSS_ROWS);
	MU_CUDA_BY_TYPE(op->type, cross_entropy_kernel<E>
	                <<<static_cast<unsigned>(op->images), BLOCK, 0, c->stream>>>(*op, c->loss_rows));
	cross_entropy_add_kernel<<<1, MU_WARP, 0, c->stream>>>(op->sums, c->loss_rows, op->images);
	return mu_cuda_launched("cross-entropy", err);
}
