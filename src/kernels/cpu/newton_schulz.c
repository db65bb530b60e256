/* Newton-Schulz with oneDNN's products, in fp32. Each step on a matrix with short side s and long side l is
 *
 *     gram = x x^T        2 s s l FLOP         (x^T x when x is tall)
 *     p = gram gram       2 s s s
 *     p = a + b gram + c p                     one pass
 *     x = p x             2 s s l              (x p when x is tall)
 *
 * so neither is anything turned nor a x added in a pass of its own. x alternates between its place and scratch.
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/dnnl.h"

#define BLOCK 16384
#define ALIGN 64

struct parts {
	size_t side, length; /* short and long side */
	size_t gram, polynomial, products; /* offsets in scratch, behind the other x */
	mu_dnnl_shape make_gram, square, advance;
};

static size_t aligned(size_t bytes)
{
	return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static mu_sum_squares norm_of(const mu_newton_schulz *op)
{
	return (mu_sum_squares){.type = MU_F32, .n = op->rows * op->cols, .x = op->x};
}

static struct parts parts_of(const mu_newton_schulz *op)
{
	const bool tall = op->rows > op->cols;
	struct parts p = {.side = tall ? op->cols : op->rows, .length = tall ? op->rows : op->cols};
	const size_t s = p.side, l = p.length;
	p.make_gram =
	        (mu_dnnl_shape){.type = MU_F32, .m = s, .n = s, .k = l, .transpose_a = tall, .transpose_b = !tall};
	p.square = (mu_dnnl_shape){.type = MU_F32, .m = s, .n = s, .k = s};
	p.advance = (mu_dnnl_shape){.type = MU_F32, .m = op->rows, .n = op->cols, .k = s};
	p.gram = aligned(s * l * sizeof(float));
	p.polynomial = p.gram + aligned(s * s * sizeof(float));
	p.products = p.polynomial + aligned(s * s * sizeof(float));
	return p;
}

size_t mu_cpu_newton_schulz_workspace(mu_ops_context *c, const mu_newton_schulz *op)
{
	const struct parts p = parts_of(op);
	const mu_dnnl_shape *const shapes[] = {&p.make_gram, &p.square, &p.advance};
	const mu_sum_squares norm = norm_of(op);
	size_t most = mu_cpu_sum_squares_workspace(c, &norm);
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		const size_t need = mu_dnnl_prepare(c->dnnl, shapes[i]);
		most = need > most ? need : most;
	}
	return p.products + most;
}

struct scale {
	size_t n;
	float by;
	const float *from;
	float *to;
};

MU_CPU_KERNEL(scale_blocks)
{
	const struct scale s = *(const struct scale *)work;
	const size_t last = end * BLOCK < s.n ? end * BLOCK : s.n;
#pragma omp simd
	for (size_t i = begin * BLOCK; i < last; i++)
		s.to[i] = s.from[i] * s.by;
}

struct polynomial {
	size_t side;
	float a, b, c;
	const float *gram;
	float *p; /* gram^2 on the way in */
};

MU_CPU_KERNEL(polynomial_rows)
{
	const struct polynomial s = *(const struct polynomial *)work;
	for (size_t row = begin; row < end; row++) {
		const float *gram = s.gram + row * s.side;
		float *p = s.p + row * s.side;
#pragma omp simd
		for (size_t j = 0; j < s.side; j++)
			p[j] = s.b * gram[j] + s.c * p[j];
		p[row] += s.a;
	}
}

static mural_status step(mu_ops_context *c, const mu_newton_schulz *op, const struct parts *p, const float *x,
                         float *to, mural_error *err)
{
	char *scratch = op->scratch;
	float *gram = (float *)(void *)(scratch + p->gram), *square = (float *)(void *)(scratch + p->polynomial);
	const bool tall = op->rows > op->cols;
	void *room = scratch + p->products;
	MU_TRY(mu_dnnl_run(c->dnnl, &p->make_gram, x, x, NULL, gram, room, err));
	MU_TRY(mu_dnnl_run(c->dnnl, &p->square, gram, gram, NULL, square, room, err));
	const struct polynomial polynomial = {p->side, (float)op->a, (float)op->b, (float)op->c, gram, square};
	mu_cpu_run(c, polynomial_rows, &polynomial, p->side);
	return mu_dnnl_run(c->dnnl, &p->advance, tall ? x : square, tall ? square : x, NULL, to, room, err);
}

mural_status mu_cpu_newton_schulz(mu_ops_context *c, const mu_newton_schulz *op, mural_error *err)
{
	const struct parts p = parts_of(op);
	const size_t n = op->rows * op->cols;
	double squares = 0;
	mu_sum_squares norm = norm_of(op);
	norm.sum = &squares, norm.scratch = (char *)op->scratch + p.products;
	MU_TRY(mu_cpu_sum_squares(c, &norm, err));
	/* Begins where an even number of steps is left to its own place. */
	float *here = op->steps % 2 ? op->scratch : op->x, *there = op->steps % 2 ? op->x : op->scratch;
	const struct scale scale = {n, (float)(1 / (sqrt(squares) + 1e-7)), op->x, here};
	mu_cpu_run(c, scale_blocks, &scale, (n + BLOCK - 1) / BLOCK);
	for (size_t i = 0; i < op->steps; i++) {
		MU_TRY(step(c, op, &p, here, there, err));
		float *old = here;
		here = there;
		there = old;
	}
	return MURAL_OK;
}
