/* The Newton-Schulz polynomial of a matrix: X <- (a + b G + c G^2) X with G = X X^T, on the short side. Three products in
 * fp32 per step (gemm.c) and one pass over the small square; for a tall matrix G = X^T X and X <- X (...), which is the same.
 *
 * Row-major X [rows, cols] is column-major [cols, rows] for gemm.c, hence the sides of its operands.
 * SPDX-License-Identifier: MIT */
#include "kernels/cuda/cuda.cuh"

static size_t side_of(const mu_newton_schulz *op)
{
	return op->rows < op->cols ? op->rows : op->cols;
}

/* Scratch, in this order; everything but the norm fp32. */
struct places {
	double *square, *shares;
	float *other, *gram, *polynomial; /* X of every second step; [side, side] */
	size_t bytes;
};

static size_t padded(size_t bytes)
{
	return (bytes + 63) / 64 * 64;
}

static mu_sum_squares norm_of(const mu_newton_schulz *op, const places &at)
{
	mu_sum_squares norm = {};
	norm.type = MU_F32;
	norm.n = op->rows * op->cols;
	norm.x = op->x;
	norm.sum = at.square;
	norm.scratch = at.shares;
	return norm;
}

static places places_of(mu_ops_context *c, const mu_newton_schulz *op)
{
	char *scratch = static_cast<char *>(op->scratch);
	const size_t square = side_of(op) * side_of(op) * sizeof(float), matrix = op->rows * op->cols * sizeof(float);
	const mu_sum_squares norm = norm_of(op, places{});
	const size_t shares = mu_cuda_sum_squares_workspace(c, &norm);
	places at = {};
	size_t used = 0;
	const auto take = [&](size_t bytes) {
		char *p = scratch ? scratch + used : nullptr;
		used += padded(bytes);
		return p;
	};
	at.square = reinterpret_cast<double *>(take(sizeof(double)));
	at.shares = reinterpret_cast<double *>(take(shares));
	at.other = reinterpret_cast<float *>(take(matrix));
	at.gram = reinterpret_cast<float *>(take(square));
	at.polynomial = reinterpret_cast<float *>(take(square));
	at.bytes = used;
	return at;
}

static mu_cuda_product product(size_t m, size_t n, size_t k, bool transpose_a, bool transpose_b, const float *a,
                               const float *b, float *d)
{
	return {MU_F32, m, n, k, transpose_a, transpose_b, false, a, b, nullptr, d};
}

static mu_cuda_product gram_product(const mu_newton_schulz *op, const places &at, const float *x)
{
	if (op->rows <= op->cols)
		return product(op->rows, op->rows, op->cols, true, false, x, x, at.gram);
	return product(op->cols, op->cols, op->rows, false, true, x, x, at.gram);
}

static mu_cuda_product square_product(const mu_newton_schulz *op, const places &at)
{
	const size_t n = side_of(op);
	return product(n, n, n, false, false, at.gram, at.gram, at.polynomial);
}

static mu_cuda_product next_product(const mu_newton_schulz *op, const places &at, const float *x, float *next)
{
	if (op->rows <= op->cols)
		return product(op->cols, op->rows, op->rows, false, false, x, at.polynomial, next);
	return product(op->cols, op->rows, op->cols, false, false, at.polynomial, x, next);
}

size_t mu_cuda_newton_schulz_workspace(mu_ops_context *c, const mu_newton_schulz *op)
{
	const places at = places_of(c, op);
	const mu_cuda_product products[] = {gram_product(op, at, nullptr), square_product(op, at),
	                                    next_product(op, at, nullptr, nullptr)};
	for (const mu_cuda_product &p : products)
		if (p.m * p.n * p.k > 0)
			(void)mu_cuda_product_prepare(c, &p, nullptr); /* fails again, with words, when it is run */
	return at.bytes;
}

static __global__ void newton_schulz_scale_kernel(float *x, const double *square, size_t n)
{
	const size_t i = mu_thread();
	if (i < n)
		x[i] /= static_cast<float>(sqrt(*square) + 1e-7);
}

/* polynomial = a + b gram + c polynomial; the last was gram^2. */
static __global__ void newton_schulz_combine_kernel(float *polynomial, const float *gram, float a, float b, float c,
                                                    size_t side)
{
	const size_t i = mu_thread();
	if (i < side * side)
		polynomial[i] = fmaf(c, polynomial[i], b * gram[i]) + (i % (side + 1) == 0 ? a : 0);
}

static mural_status normalise(mu_ops_context *c, const mu_newton_schulz *op, const places &at, mural_error *err)
{
	const mu_sum_squares norm = norm_of(op, at);
	MU_TRY(mu_cuda_said(cudaMemsetAsync(at.square, 0, sizeof *at.square, c->stream), "to clear memory", err));
	MU_TRY(mu_cuda_sum_squares(c, &norm, err));
	newton_schulz_scale_kernel<<<mu_blocks(norm.n, MU_CUDA_BLOCK), MU_CUDA_BLOCK, 0, c->stream>>>(
	        static_cast<float *>(op->x), at.square, norm.n);
	return mu_cuda_launched("newton-schulz", err);
}

static mural_status advance(mu_ops_context *c, const mu_newton_schulz *op, const places &at, const float *x,
                            float *next, mural_error *err)
{
	const mu_cuda_product gram = gram_product(op, at, x), square = square_product(op, at),
	                      product = next_product(op, at, x, next);
	const size_t side = side_of(op);
	MU_TRY(mu_cuda_product_run(c, &gram, err));
	MU_TRY(mu_cuda_product_run(c, &square, err));
	newton_schulz_combine_kernel<<<mu_blocks(side * side, MU_CUDA_BLOCK), MU_CUDA_BLOCK, 0, c->stream>>>(
	        at.polynomial, at.gram, static_cast<float>(op->a), static_cast<float>(op->b), static_cast<float>(op->c),
	        side);
	MU_TRY(mu_cuda_launched("newton-schulz", err));
	return mu_cuda_product_run(c, &product, err);
}

mural_status mu_cuda_newton_schulz(mu_ops_context *c, const mu_newton_schulz *op, mural_error *err)
{
	const places at = places_of(c, op);
	float *x = static_cast<float *>(op->x), *next = at.other;
	if (op->rows * op->cols == 0)
		return MURAL_OK;
	MU_TRY(normalise(c, op, at, err));
	for (size_t step = 0; step < op->steps; step++) {
		MU_TRY(advance(c, op, at, x, next, err));
		float *old = x;
		x = next;
		next = old;
	}
	if (x == op->x)
		return MURAL_OK;
	return mu_cuda_said(
	        cudaMemcpyAsync(op->x, x, op->rows * op->cols * sizeof(float), cudaMemcpyDeviceToDevice, c->stream),
	        "a copy", err);
}
