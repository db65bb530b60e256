/* Matrix products of mu_real: by oneDNN as they are, or in fp32 where bf16 instructions are missing or slow, and for fp16.
 *
 * In fp32: b and the bias are widened once, a and the result a piece of about PIECE rows at a time, so that a piece is
 * still in the second-level cache when the product reads it and when it is rounded. Products of two bf16 numbers are
 * exact in fp32, so only the order of the sums differs from bf16 instructions. scratch: [a | b | bias | c | oneDNN's].
 *
 * Measured on one core of an Emerald Rapids Xeon whose host hides AMX, 6304 rows: widened 384 -> 1152 128 GFLOP/s,
 * 1536 -> 384 146 (fp32: 143 and 122; the machine was busy); by AVX512_BF16 78 and 66, of the 88 that its VDPBF16PS
 * allows. A ViT-S/16 step of 32 images, each row at its best of three runs: fp32 7.0 s, widened 6.7 s; by AVX512_BF16
 * 11.9 s in one run.
 * SPDX-License-Identifier: MIT */
#include "kernels/cpu/dnnl.h"
#include "kernels/cpu/real.h"

/* Rows of a piece, about. */
#define PIECE 400

struct widened {
	size_t piece; /* rows of c at a time */
	mu_dnnl_shape shape, rest; /* of a whole piece and of the last one */
	size_t a, b, bias, c; /* floats of scratch */
};

static bool as_they_are(const mu_ops_context *c, const mu_dnnl_shape *shape)
{
	return shape->type == MU_F32 || (shape->type == MU_BF16 && c->bf16_products);
}

static size_t whole_lines(size_t floats)
{
	return (floats + 15) / 16 * 16;
}

static struct widened widen(const mu_dnnl_shape *shape)
{
	struct widened w = {.piece = mu_cpu_piece(shape->m, PIECE), .shape = *shape};
	if (shape->transpose_a) /* rows of c are columns of a: no piece of it is contiguous */
		w.piece = shape->m;
	w.shape.type = w.shape.result = MU_F32;
	w.shape.m = w.piece;
	w.rest = w.shape;
	w.rest.m = w.piece && shape->m % w.piece ? shape->m % w.piece : w.piece;
	w.a = whole_lines(w.piece * shape->k);
	w.b = whole_lines(shape->k * shape->n);
	w.bias = shape->bias ? whole_lines(shape->n) : 0;
	w.c = shape->result == MU_F32 ? 0 : whole_lines(w.piece * shape->n);
	return w;
}

size_t mu_cpu_product_workspace(mu_ops_context *c, const mu_dnnl_shape *shape)
{
	if (as_they_are(c, shape))
		return mu_dnnl_prepare(c->dnnl, shape);
	const struct widened w = widen(shape);
	const size_t whole = mu_dnnl_prepare(c->dnnl, &w.shape), rest = mu_dnnl_prepare(c->dnnl, &w.rest);
	return (w.a + w.b + w.bias + w.c) * sizeof(float) + (whole > rest ? whole : rest);
}

static mural_status cast(mu_ops_context *c, void *to, mu_dtype to_type, const void *from, mu_dtype from_type, size_t n,
                         mural_error *err)
{
	const mu_cast op = {.n = n, .from_type = from_type, .to_type = to_type, .from = from, .to = to};
	return mu_cpu_cast(c, &op, err);
}

static mural_status run_widened(mu_ops_context *c, const mu_dnnl_shape *shape, const mu_real *a, const mu_real *b,
                                const mu_real *bias, void *to, float *scratch, mural_error *err)
{
	const struct widened w = widen(shape);
	const size_t k = shape->k, n = shape->n;
	float *wide_a = scratch, *wide_b = wide_a + w.a, *wide_bias = wide_b + w.b, *wide_c = wide_bias + w.bias;
	void *inner = wide_c + w.c;
	MU_TRY(cast(c, wide_b, MU_F32, b, MU_REAL, k * n, err));
	if (shape->bias)
		MU_TRY(cast(c, wide_bias, MU_F32, bias, MU_REAL, n, err));
	for (size_t first = 0; first < shape->m; first += w.piece) {
		const mu_dnnl_shape *piece = shape->m - first < w.piece ? &w.rest : &w.shape;
		const bool narrow = shape->result != MU_F32;
		float *out = narrow ? wide_c : (float *)to + first * n;
		MU_TRY(cast(c, wide_a, MU_F32, a + first * k, MU_REAL, piece->m * k, err));
		MU_TRY(mu_dnnl_run(c->dnnl, piece, wide_a, wide_b, shape->bias ? wide_bias : NULL, out, inner, err));
		if (narrow)
			MU_TRY(cast(c, (mu_real *)to + first * n, MU_REAL, out, MU_F32, piece->m * n, err));
	}
	return MURAL_OK;
}

mural_status mu_cpu_product(mu_ops_context *c, const mu_dnnl_shape *shape, const void *a, const void *b,
                            const void *bias, void *to, void *scratch, mural_error *err)
{
	return as_they_are(c, shape) ? mu_dnnl_run(c->dnnl, shape, a, b, bias, to, scratch, err)
	                             : run_widened(c, shape, a, b, bias, to, scratch, err);
}
