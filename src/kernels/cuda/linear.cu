/* y = activation(x w^T + b): the products by cuBLASLt (gemm.c), the bias in its epilogue, the activation in a pass of our
 * own, and backward the slope of the activation and the sum over rows for d_b in one pass.
 *
 * Row-major matrices are the column-major ones of BLAS transposed, so with m, n, k of gemm.c:
 *     y^T   [out, rows] = w [out, in] x^T            m = out, n = rows, k = in
 *     d_x^T [in, rows]  = w^T d_y^T                  m = in,  n = rows, k = out
 *     d_w^T [in, out]  += x^T d_y                    m = in,  n = out,  k = rows
 *
 * cuBLASLt's GELU epilogue is the tanh form and wants dimensions in multiples of eight; the erf form, timm's and
 * torchvision's, exists nowhere in it. Bytes of the passes: forward 2 arrays [rows, out], backward 3, or 1 without an
 * activation. On one H200 at 256 images the activation's pass adds about 200 us to a product of 340 us, where its bytes
 * need 145: the next thing to put into a product of our own. SPDX-License-Identifier: MIT */
#include "kernels/cuda/cuda.cuh"

#define GELU_SQRT_2_OVER_PI 0.79788456080286535588f
#define GELU_CUBIC 0.044715f
#define SQRT_HALF 0.70710678118654752440f
#define ONE_OVER_SQRT_2PI 0.39894228040143267794f

#define WARPS 8 /* of a block: each takes every eighth row of its chunk */
#define PACKS 2 /* of a thread of the activation's pass: reads that are on their way together */
#define CHUNK_ROWS 256 /* rows of a block: enough blocks for the card, few partial sums */

/* Phi(x), the normal distribution function, and its density. 16-bit types take Hastings' approximation (Abramowitz and
 * Stegun 1964, 7.1.26): off by 7.5e-8 at most, far below their rounding, and half the instructions of erff, which the
 * passes need to stay bound by memory. Its exponential is the density's. */
template <typename E> static __device__ __forceinline__ float normal(float x, float &density)
{
	if (sizeof(E) == 4) {
		density = ONE_OVER_SQRT_2PI * expf(-0.5f * x * x);
		return 0.5f * (1 + erff(x * SQRT_HALF));
	}
	const float e = __expf(-0.5f * x * x), t = __fdividef(1, fmaf(0.3275911f * SQRT_HALF, fabsf(x), 1));
	float tail = fmaf(t, 1.061405429f, -1.453152027f);
	tail = fmaf(t, tail, 1.421413741f);
	tail = fmaf(t, tail, -0.284496736f);
	tail = fmaf(t, tail, 0.254829592f);
	tail *= 0.5f * t * e;
	density = ONE_OVER_SQRT_2PI * e;
	return x < 0 ? tail : 1 - tail;
}

template <typename E, mu_activation A> static __device__ __forceinline__ float activate(float x)
{
	float density;
	if (A == MU_ACTIVATION_GELU_ERF)
		return x * normal<E>(x, density);
	return x / (1 + expf(-2 * GELU_SQRT_2_OVER_PI * (x + GELU_CUBIC * x * x * x)));
}

template <typename E, mu_activation A> static __device__ __forceinline__ float slope(float x)
{
	if (A == MU_ACTIVATION_GELU_ERF) {
		float density;
		const float share = normal<E>(x, density);
		return fmaf(x, density, share);
	}
	if (A == MU_ACTIVATION_GELU_TANH) {
		const float u = GELU_SQRT_2_OVER_PI * (x + GELU_CUBIC * x * x * x);
		const float slope_of_u = GELU_SQRT_2_OVER_PI * (1 + 3 * GELU_CUBIC * x * x);
		const float share = 1 / (1 + expf(-2 * u)), rest = 1 / (1 + expf(2 * u));
		return share + 2 * x * share * rest * slope_of_u;
	}
	return 1;
}

template <typename E, int V, mu_activation A>
static __global__ void linear_activation_kernel(void *y, const void *pre, size_t packs)
{
	const size_t first = static_cast<size_t>(blockIdx.x) * blockDim.x * PACKS + threadIdx.x;
	mu_pack<E, V> x[PACKS];
#pragma unroll
	for (int k = 0; k < PACKS; k++)
		if (first + k * blockDim.x < packs)
			x[k] = mu_read<E, V>(pre, first + k * blockDim.x);
#pragma unroll
	for (int k = 0; k < PACKS; k++) {
		if (first + k * blockDim.x >= packs)
			return;
#pragma unroll
		for (int i = 0; i < V; i++)
			x[k].e[i] = mu_round<E>(activate<E, A>(mu_load(x[k].e[i])));
		mu_write<E, V>(y, first + k * blockDim.x, x[k]);
	}
}

struct slope_pass {
	size_t rows, packs; /* packs of one row */
	void *d_y;
	const void *pre;
	float *partial; /* [chunks, out] or NULL */
};

/* d_y becomes the gradient of pre, rounded; partial gets the sums of that over the rows of this block's chunk. */
template <typename E, int V, mu_activation A> static __global__ void linear_slope_kernel(const slope_pass op)
{
	__shared__ float share[WARPS][MU_WARP * V];
	const size_t column = static_cast<size_t>(blockIdx.x) * MU_WARP + threadIdx.x;
	const size_t first = static_cast<size_t>(blockIdx.y) * CHUNK_ROWS;
	const size_t last = first + CHUNK_ROWS < op.rows ? first + CHUNK_ROWS : op.rows;
	float sum[V] = {0};
	if (column < op.packs)
#pragma unroll 4
		for (size_t row = first + threadIdx.y; row < last; row += WARPS) {
			const size_t at = row * op.packs + column;
			mu_pack<E, V> d = mu_read<E, V>(op.d_y, at);
			if (A != MU_ACTIVATION_NONE) {
				const mu_pack<E, V> pre = mu_read<E, V>(op.pre, at);
#pragma unroll
				for (int i = 0; i < V; i++)
					d.e[i] = mu_round<E>(mu_load(d.e[i]) * slope<E, A>(mu_load(pre.e[i])));
				mu_write<E, V>(op.d_y, at, d);
			}
#pragma unroll
			for (int i = 0; i < V; i++)
				sum[i] += mu_load(d.e[i]);
		}
	if (!op.partial)
		return;
#pragma unroll
	for (int i = 0; i < V; i++)
		share[threadIdx.y][threadIdx.x * V + i] = sum[i];
	__syncthreads();
	for (unsigned j = threadIdx.y * MU_WARP + threadIdx.x; j < MU_WARP * V; j += WARPS * MU_WARP) {
		const size_t to = static_cast<size_t>(blockIdx.x) * MU_WARP * V + j;
		float total = 0;
		for (int w = 0; w < WARPS; w++)
			total += share[w][j];
		if (to < op.packs * V)
			op.partial[blockIdx.y * op.packs * V + to] = total;
	}
}

static size_t chunks_of(const mu_linear *op)
{
	return (op->rows + CHUNK_ROWS - 1) / CHUNK_ROWS;
}

static mu_cuda_product forward_product(const mu_linear *op)
{
	mu_cuda_product p = {op->type, op->out, op->rows, op->in, true, false, false, op->w, op->x, op->b, op->y};
	if (op->activation != MU_ACTIVATION_NONE)
		p.d = op->pre;
	return p;
}

static mu_cuda_product input_product(const mu_linear *op)
{
	return {op->type, op->in, op->rows, op->out, false, false, false, op->w, op->d_y, nullptr, op->d_x};
}

static mu_cuda_product weight_product(const mu_linear *op)
{
	return {op->type, op->in, op->out, op->rows, false, true, true, op->x, op->d_y, nullptr, op->d_w};
}

/* A shape that cannot be prepared fails again, with words, when it is called. */
size_t mu_cuda_linear_workspace(mu_ops_context *c, const mu_linear *op)
{
	mu_cuda_product forward = forward_product(op);
	const mu_cuda_product input = input_product(op), weight = weight_product(op);
	if (op->rows > 0) {
		(void)mu_cuda_product_prepare(c, &forward, nullptr);
		(void)mu_cuda_product_prepare(c, &input, nullptr);
		(void)mu_cuda_product_prepare(c, &weight, nullptr);
	}
	return chunks_of(op) * op->out * sizeof(float);
}

template <mu_activation A> static void activation_pass(mu_ops_context *c, const mu_linear *op)
{
	const size_t n = op->rows * op->out;
	MU_CUDA_BY_TYPE(op->type, MU_CUDA_BY_PACK(n, {
		                linear_activation_kernel<E, V, A>
		                        <<<mu_blocks(n / V, MU_CUDA_BLOCK * PACKS), MU_CUDA_BLOCK, 0, c->stream>>>(
		                                op->y, op->pre, n / V);
	                }));
}

mural_status mu_cuda_linear_forward(mu_ops_context *c, const mu_linear *op, mural_error *err)
{
	const mu_cuda_product product = forward_product(op);
	if (op->rows == 0)
		return MURAL_OK;
	MU_TRY(mu_cuda_product_run(c, &product, err));
	if (op->activation == MU_ACTIVATION_GELU_ERF)
		activation_pass<MU_ACTIVATION_GELU_ERF>(c, op);
	else if (op->activation == MU_ACTIVATION_GELU_TANH)
		activation_pass<MU_ACTIVATION_GELU_TANH>(c, op);
	return mu_cuda_launched("linear", err);
}

template <mu_activation A> static void launch_slope(mu_ops_context *c, const mu_linear *op)
{
	const dim3 block(MU_WARP, WARPS);
	float *partial = op->d_b ? static_cast<float *>(op->scratch) : nullptr;
	MU_CUDA_BY_TYPE(op->type, MU_CUDA_BY_PACK(op->out, {
		                const slope_pass pass = {op->rows, op->out / V, op->d_y, op->pre, partial};
		                const dim3 grid(mu_blocks(op->out / V, MU_WARP), static_cast<unsigned>(chunks_of(op)));
		                linear_slope_kernel<E, V, A><<<grid, block, 0, c->stream>>>(pass);
	                }));
}

/* d_y through the activation, and d_b. */
static mural_status slope_and_bias(mu_ops_context *c, const mu_linear *op, mural_error *err)
{
	switch (op->activation) {
	case MU_ACTIVATION_GELU_ERF: launch_slope<MU_ACTIVATION_GELU_ERF>(c, op); break;
	case MU_ACTIVATION_GELU_TANH: launch_slope<MU_ACTIVATION_GELU_TANH>(c, op); break;
	case MU_ACTIVATION_NONE:
		if (op->d_b)
			launch_slope<MU_ACTIVATION_NONE>(c, op);
	}
	MU_TRY(mu_cuda_launched("linear backward", err));
	if (!op->d_b)
		return MURAL_OK;
	const mu_cuda_partials sums = {op->type, static_cast<float *>(op->scratch), chunks_of(op), op->out,
	                               op->out,  {op->d_b, nullptr, nullptr}};
	return mu_cuda_add_partials(c, &sums, err);
}

mural_status mu_cuda_linear_backward(mu_ops_context *c, const mu_linear *op, mural_error *err)
{
	const mu_cuda_product input = input_product(op), weight = weight_product(op);
	if (op->rows == 0)
		return MURAL_OK;
	MU_TRY(slope_and_bias(c, op, err));
	if (op->d_x)
		MU_TRY(mu_cuda_product_run(c, &input, err));
	return mu_cuda_product_run(c, &weight, err);
}
