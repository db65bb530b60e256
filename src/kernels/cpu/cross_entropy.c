/* Cross-entropy with smoothed labels, its gradient, and who was right. A row of logits stays in the first-level cache
 * between the passes over it. Parts are blocks of rows with sums of their own, added in order afterwards, so the result
 * does not depend on threads. A NaN among the logits reaches the loss and counts as greater than the label's logit.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "kernels/cpu/real.h"
#include "kernels/per_step.h"

/* Parts of a call: enough for any host's threads, few enough for the stack. */
#define PARTS 256
#define ALONE 2048 /* logits that the caller takes by itself, in 25 us: a team is late for so few (partials.c) */

struct entropy {
	const mu_cross_entropy *op;
	double scale; /* of gradients */
	size_t rows_per_part;
	mu_step_sums *parts;
};

/* The largest logit as comparisons from left to right find it: a NaN wins only in the first place. Two plain passes,
 * the second only up to the index. */
MU_CPU_INLINE size_t best_of(const mu_real *logits, size_t classes, float *largest)
{
	*largest = mu_wide(logits[0]);
	if (!(*largest <= *largest))
		return 0;
	*largest = mu_real_largest(logits, classes);
	size_t best = 0;
	while (mu_wide(logits[best]) != *largest)
		best++;
	return best;
}

MU_CPU_INLINE size_t rank_of(const mu_real *logits, size_t classes, size_t label)
{
	const float own = mu_wide(logits[label]);
	uint32_t before = 0;
	for (size_t c = 0; c < classes; c++) {
		const float other = mu_wide(logits[c]);
		before += !(other <= own) || (other == own && c < label);
	}
	return before - !(own <= own); /* a NaN label does not come before itself */
}

/* Loss of a row whose label is in range. exp is computed twice, so no buffer is needed and d_logits may lie on logits;
 * the label's own element, where softmax - target cancels, is made in double. */
MU_CPU_INLINE double row_loss(const struct entropy *e, const mu_real *logits, mu_real *d_logits, size_t label,
                              float largest)
{
	const mu_cross_entropy *op = e->op;
	const size_t C = op->classes;
	const double smooth = op->smoothing / (double)C;
	mu_simd exps = {0}, distances = {0};
	for (size_t c = 0; c < C; c += MU_LANES) {
		exps += mu_simd_exp_negative(mu_real_load_filled(logits + c, C - c, -INFINITY) - largest);
		distances += mu_real_load_filled(logits + c, C - c, largest) - largest;
	}
	const double sum = (double)mu_simd_sum(exps), distance = (double)mu_simd_sum(distances);
	const double log_sum = log(sum), own = (double)mu_wide(logits[label]) - (double)largest;
	double loss = 0;
	if (op->smoothing != 1)
		loss = (1 - op->smoothing) * (log_sum - own);
	if (smooth != 0)
		loss += smooth * ((double)C * log_sum - distance);
	if (!d_logits)
		return loss;
	const float factor = (float)(e->scale / sum), lower = (float)(e->scale * smooth);
	const double own_softmax = exp(own) / sum;
	for (size_t c = 0; c < C; c += MU_LANES) {
		const mu_simd below = mu_real_load_filled(logits + c, C - c, largest) - largest;
		mu_real_store_up_to(d_logits + c, C - c, mu_simd_exp_negative(below) * factor - lower);
	}
	d_logits[label] = mu_narrow((float)(e->scale * (own_softmax - (1 - op->smoothing) - smooth)));
	return loss;
}

MU_CPU_INLINE void entropy_row(const struct entropy *e, size_t b, mu_step_sums *sums)
{
	const mu_cross_entropy *op = e->op;
	const size_t C = op->classes;
	const mu_real *logits = (const mu_real *)op->logits + b * C;
	mu_real *d_logits = op->d_logits ? (mu_real *)op->d_logits + b * C : NULL;
	const bool real = b < op->micro->count, in_range = real && op->labels[b] >= 0 && (size_t)op->labels[b] < C;
	double loss = 0;
	float largest;
	const size_t best = best_of(logits, C, &largest);
	if (op->best_B)
		op->best_B[b] = (int32_t)best;
	if (in_range) {
		const size_t label = (size_t)op->labels[b], rank = rank_of(logits, C, label);
		loss = row_loss(e, logits, d_logits, label, largest);
		sums->loss += loss;
		sums->count += 1;
		sums->top1 += rank < 1;
		sums->top5 += rank < 5;
	} else if (d_logits) {
		memset(d_logits, 0, C * sizeof *d_logits);
	}
	if (op->loss_B)
		op->loss_B[b] = (float)loss;
	sums->label_range += real && !in_range;
	sums->non_finite += !isfinite(loss);
}

MU_CPU_KERNEL(entropy_parts)
{
	const struct entropy *e = work;
	for (size_t i = begin; i < end; i++) {
		mu_step_sums *sums = &e->parts[i];
		const size_t first = i * e->rows_per_part, last = first + e->rows_per_part;
		*sums = (mu_step_sums){0};
		for (size_t b = first; b < last && b < e->op->images; b++)
			entropy_row(e, b, sums);
	}
}

mural_status mu_cpu_cross_entropy(mu_ops_context *c, const mu_cross_entropy *op, mural_error *err)
{
	(void)err;
	mu_step_sums parts[PARTS];
	const struct entropy e = {op, op->d_logits ? mu_loss_factor(op) : 0, (op->images + PARTS - 1) / PARTS, parts};
	const size_t used = op->images ? (op->images + e.rows_per_part - 1) / e.rows_per_part : 0;
	if (op->images * op->classes <= ALONE)
		entropy_parts(&e, 0, used, 0);
	else
		mu_cpu_run(c, entropy_parts, &e, used);
	for (size_t i = 0; i < used; i++) {
		op->sums->loss += parts[i].loss;
		op->sums->count += parts[i].count;
		op->sums->top1 += parts[i].top1;
		op->sums->top5 += parts[i].top5;
		op->sums->label_range += parts[i].label_range;
		op->sums->non_finite += parts[i].non_finite;
	}
	return MURAL_OK;
}
