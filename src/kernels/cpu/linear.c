/* Linear layers: oneDNN's products, and one pass each for GELU and for GELU's gradient with the bias gradient.
 *
 * Forward: pre = x w^T + b in one product (bias inside), then y = gelu(pre): 2 * rows * in * out FLOP, and 8 bytes
 * per output element for GELU. Backward: one pass over d_y and pre makes the gradient of pre in place and the
 * column sums of each chunk of rows (12 bytes per element); then d_x = d_pre w and d_w += d_pre^T x, the sum inside
 * the product.
 *
 * Chunks of MU_CPU_CHUNK rows give bias sums that do not depend on threads and keep their digits. The weight
 * gradient is a sum over all rows, made in products of about DEPTH rows: shorter float chains (an even split over
 * ranks then moves it by 1e-7 of its norm instead of 4e-7), and for 1536 x 384 weights 151 instead of 137 GFLOP/s
 * on one thread.
 *
 * Measured on one core of a Xeon with AVX-512 (150 GFLOP/s in a large product), 3152 rows: 384 -> 1152 145 GFLOP/s
 * forward and 149 backward; 384 -> 1536 with GELU 124 and 138; GELU alone takes 23 cycles per 16 elements in cache,
 * of which 16 are its division. Did not help: sgemm instead of the primitive (5 % faster forward, but it allocates,
 * and the bias needs a pass that costs as much), rows in blocks that fit the second-level cache.
 * SPDX-License-Identifier: MIT */
#include "kernels/cpu/real.h"

/* Elements of one part of the forward pass: 16 KiB in, 16 KiB out. */
#define BLOCK 4096
/* Rows of one product of the weight gradient, about. */
#define DEPTH 400

struct gelu {
	mu_activation activation;
	size_t n;
	const mu_real *pre;
	mu_real *y;
};

MU_CPU_KERNEL(gelu_blocks)
{
	const struct gelu *g = work;
	const size_t first = begin * BLOCK, last = end * BLOCK < g->n ? end * BLOCK : g->n;
	const bool erf = g->activation == MU_ACTIVATION_GELU_ERF;
	for (size_t i = first; i < last; i += MU_LANES) {
		const mu_simd x = mu_real_load_up_to(g->pre + i, last - i);
		mu_real_store_up_to(g->y + i, last - i, erf ? mu_simd_gelu_erf(x) : mu_simd_gelu_tanh(x));
	}
}

struct gelu_gradient {
	mu_activation activation;
	size_t rows, width;
	const mu_real *pre;
	mu_real *d_y;
	float *partial; /* [chunks, width] column sums */
};

/* One row: d_y becomes d_pre and is added to the chunk's sums. */
MU_CPU_INLINE void gradient_row(const struct gelu_gradient *g, size_t row, float *sum)
{
	const size_t width = g->width;
	const mu_real *pre = g->activation == MU_ACTIVATION_NONE ? NULL : g->pre + row * width;
	mu_real *d_y = g->d_y + row * width;
	for (size_t j = 0; j < width; j += MU_LANES) {
		mu_simd d = mu_real_load_up_to(d_y + j, width - j);
		if (pre) {
			const mu_simd x = mu_real_load_up_to(pre + j, width - j);
			d *= g->activation == MU_ACTIVATION_GELU_ERF ? mu_simd_gelu_erf_slope(x)
			                                             : mu_simd_gelu_tanh_slope(x);
			mu_real_store_up_to(d_y + j, width - j, d);
		}
		mu_simd_store_up_to(sum + j, width - j, mu_simd_load_up_to(sum + j, width - j) + d);
	}
}

MU_CPU_KERNEL(gradient_chunks)
{
	const struct gelu_gradient *g = work;
	for (size_t chunk = begin; chunk < end; chunk++) {
		const size_t first = chunk * MU_CPU_CHUNK;
		const size_t last = first + MU_CPU_CHUNK < g->rows ? first + MU_CPU_CHUNK : g->rows;
		float *sum = g->partial + chunk * g->width;
		memset(sum, 0, g->width * sizeof *sum);
		for (size_t row = first; row < last; row++)
			gradient_row(g, row, sum);
	}
}

static mu_dnnl_shape forward_shape(const mu_linear *op, bool bias)
{
	return (mu_dnnl_shape){.type = MU_REAL,
	                       .result = MU_REAL,
	                       .m = op->rows,
	                       .n = op->out,
	                       .k = op->in,
	                       .transpose_b = true,
	                       .bias = bias};
}

static mu_dnnl_shape input_gradient_shape(const mu_linear *op)
{
	return (mu_dnnl_shape){.type = MU_REAL, .result = MU_REAL, .m = op->rows, .n = op->in, .k = op->out};
}

/* Whether products add to the gradient itself; else they are summed beside it, and it is rounded once. */
static bool adds_in_place(void)
{
	return MU_REAL == MU_F32;
}

static mu_dnnl_shape weight_gradient_shape(const mu_linear *op, size_t rows, bool accumulate)
{
	return (mu_dnnl_shape){.type = MU_REAL,
	                       .result = MU_F32,
	                       .m = op->out,
	                       .n = op->in,
	                       .k = rows,
	                       .transpose_a = true,
	                       .accumulate = accumulate};
}

/* Floats in front of the products' scratch that hold the sum of the weight gradient. */
static size_t sum_floats(const mu_linear *op)
{
	return adds_in_place() ? 0 : (op->out * op->in + 15) / 16 * 16;
}

/* The steps of a call follow each other, so they share one place. */
size_t mu_cpu_linear_workspace(mu_ops_context *c, const mu_linear *op)
{
	const size_t depth = mu_cpu_piece(op->rows, DEPTH), rest = depth ? op->rows % depth : 0;
	const mu_dnnl_shape shapes[] = {forward_shape(op, false),
	                                forward_shape(op, true),
	                                input_gradient_shape(op),
	                                weight_gradient_shape(op, depth, adds_in_place()),
	                                weight_gradient_shape(op, depth, true),
	                                weight_gradient_shape(op, rest ? rest : depth, true)};
	size_t bytes = mu_cpu_chunks(op->rows) * op->out * sizeof(float);
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		const size_t need = mu_cpu_product_workspace(c, &shapes[i]) + sum_floats(op) * sizeof(float);
		bytes = need > bytes ? need : bytes;
	}
	return bytes;
}

mural_status mu_cpu_linear_forward(mu_ops_context *c, const mu_linear *op, mural_error *err)
{
	const mu_dnnl_shape shape = forward_shape(op, op->b != NULL);
	const bool plain = op->activation == MU_ACTIVATION_NONE;
	MU_TRY(mu_cpu_product(c, &shape, op->x, op->w, op->b, plain ? op->y : op->pre, op->scratch, err));
	if (!plain) {
		const struct gelu g = {op->activation, op->rows * op->out, op->pre, op->y};
		mu_cpu_run(c, gelu_blocks, &g, (g.n + BLOCK - 1) / BLOCK);
	}
	return MURAL_OK;
}

static mural_status weight_gradient(mu_ops_context *c, const mu_linear *op, mural_error *err)
{
	const size_t depth = mu_cpu_piece(op->rows, DEPTH);
	float *sum = adds_in_place() ? op->d_w : op->scratch, *scratch = (float *)op->scratch + sum_floats(op);
	for (size_t first = 0; first < op->rows; first += depth) {
		const size_t rows = op->rows - first < depth ? op->rows - first : depth;
		const mu_dnnl_shape shape = weight_gradient_shape(op, rows, adds_in_place() || first > 0);
		MU_TRY(mu_cpu_product(c, &shape, (const mu_real *)op->d_y + first * op->out,
		                      (const mu_real *)op->x + first * op->in, NULL, sum, scratch, err));
	}
	if (!adds_in_place() && op->rows)
		mu_cpu_add_partials(c, op->d_w, sum, 1, op->out * op->in);
	return MURAL_OK;
}

mural_status mu_cpu_linear_backward(mu_ops_context *c, const mu_linear *op, mural_error *err)
{
	if (op->activation != MU_ACTIVATION_NONE || op->d_b) {
		const struct gelu_gradient g = {op->activation, op->rows, op->out, op->pre, op->d_y, op->scratch};
		const size_t chunks = mu_cpu_chunks(op->rows);
		mu_cpu_run(c, gradient_chunks, &g, chunks);
		if (op->d_b)
			mu_cpu_add_partials(c, op->d_b, g.partial, chunks, op->out);
	}
	if (op->d_x) {
		const mu_dnnl_shape shape = input_gradient_shape(op);
		MU_TRY(mu_cpu_product(c, &shape, op->d_y, op->w, NULL, op->d_x, op->scratch, err));
	}
	return weight_gradient(c, op, err);
}
