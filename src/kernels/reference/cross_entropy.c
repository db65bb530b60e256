/* Cross-entropy with smoothed labels, its gradient, and who was right.
 *
 * log softmax is (logit - largest) - log sum exp(logit - largest): nothing overflows, and the largest logit keeps its
 * digits. A NaN among the logits counts as greater than the label's, so that a broken model does not look perfect.
 * SPDX-License-Identifier: MIT */
#include "kernels/per_step.h"
#include "kernels/reference/element.h"
#include "kernels/reference/reference.h"

static double logit(const mu_cross_entropy *op, size_t b, size_t c)
{
	return mu_element_load(op->type, op->logits, b * op->classes + c);
}

static size_t best_of(const mu_cross_entropy *op, size_t b)
{
	size_t best = 0;
	for (size_t c = 1; c < op->classes; c++)
		if (logit(op, b, c) > logit(op, b, best))
			best = c;
	return best;
}

/* How many classes come before the label when sorted by logit, then by index. */
static size_t rank_of_label(const mu_cross_entropy *op, size_t b, size_t label)
{
	const double own = logit(op, b, label);
	size_t before = 0;
	for (size_t c = 0; c < op->classes; c++)
		if (c != label && (!(logit(op, b, c) <= own) || (logit(op, b, c) == own && c < label)))
			before++;
	return before;
}

static double target(const mu_cross_entropy *op, size_t label, size_t c)
{
	return (c == label ? 1 - op->smoothing : 0) + op->smoothing / (double)op->classes;
}

/* Loss of a row whose label is in range; writes its gradient. */
static double row_loss(const mu_cross_entropy *op, size_t b, size_t label)
{
	const size_t C = op->classes;
	const double largest = logit(op, b, best_of(op, b));
	double sum = 0, loss = 0;
	for (size_t c = 0; c < C; c++)
		sum += exp(logit(op, b, c) - largest);
	for (size_t c = 0; c < C; c++)
		if (target(op, label, c) != 0) /* 0 * -inf is 0 here */
			loss -= target(op, label, c) * (logit(op, b, c) - largest - log(sum));
	const double scale = op->d_logits ? mu_loss_factor(op) : 0;
	for (size_t c = 0; c < C && op->d_logits; c++) {
		const double softmax = exp(logit(op, b, c) - largest) / sum;
		mu_element_store(op->type, op->d_logits, b * C + c, scale * (softmax - target(op, label, c)));
	}
	return loss;
}

static void count_row(const mu_cross_entropy *op, size_t b, size_t label)
{
	const size_t rank = rank_of_label(op, b, label);
	op->sums->count += 1;
	op->sums->top1 += rank < 1;
	op->sums->top5 += rank < 5;
}

/* A row that counts for nothing: past the count, or its label is out of range. */
static void zero_gradient(const mu_cross_entropy *op, size_t b)
{
	for (size_t c = 0; c < op->classes && op->d_logits; c++)
		mu_element_store(op->type, op->d_logits, b * op->classes + c, 0);
}

mural_status mu_reference_cross_entropy(mu_ops_context *context, const mu_cross_entropy *op, mural_error *err)
{
	(void)context;
	(void)err;
	for (size_t b = 0; b < op->images; b++) {
		const bool real = b < op->micro->count;
		const bool in_range = real && op->labels[b] >= 0 && (size_t)op->labels[b] < op->classes;
		double loss = 0;
		if (op->best_B)
			op->best_B[b] = (int32_t)best_of(op, b);
		if (in_range) {
			const size_t label = (size_t)op->labels[b];
			count_row(op, b, label); /* before the gradient, which may lie on the logits */
			loss = row_loss(op, b, label);
			op->sums->loss += loss;
		} else {
			zero_gradient(op, b);
		}
		if (op->loss_B)
			op->loss_B[b] = (float)loss;
		if (real && !in_range)
			op->sums->label_range += 1;
		if (!isfinite(loss))
			op->sums->non_finite += 1;
	}
	return MURAL_OK;
}
