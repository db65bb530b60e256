/* Attention on the ordinary cores, in fp32: for MU_F32, and for what tensor cores do not take.
 *
 * A block owns R rows of one head and walks over its columns in tiles of R with an online softmax (Milakov and
 * Gimelshein 2018, arXiv:1805.02867). 16 x 16 threads; thread (y, x) has rows y + 16 i and columns, or head elements,
 * x + 16 j. Tiles lie in shared memory as floats with rows one element longer than the head (KP, 64 or 128, the rest 0):
 * the sixteen rows that a warp reads are then in different banks. Rows and columns past N are 0 and masked.
 *
 * Measured on one H200, ViT-B/16, fp32, 64 images: forward 704 us (10.8 TFLOP/s), backward 2.26 ms (8.4, counted as five
 * products; seven are done): the tile loads and two shared-memory reads per four multiply-adds.
 * SPDX-License-Identifier: MIT */
#include <math_constants.h>

#include "kernels/cuda/attention.cuh"

#define SIDE 16
#define THREADS (SIDE * SIDE)

struct place {
	size_t b, h;
	float scale; /* 1 / sqrt(K) */
	int first; /* row of the block */
	int y, x;
};

static __device__ __forceinline__ place find_place(const mu_attention &op, int rows)
{
	place p;
	p.b = blockIdx.x / op.heads;
	p.h = blockIdx.x % op.heads;
	p.scale = rsqrtf(static_cast<float>(op.head_size));
	p.first = static_cast<int>(blockIdx.y) * rows;
	p.y = static_cast<int>(threadIdx.x) / SIDE;
	p.x = static_cast<int>(threadIdx.x) % SIDE;
	return p;
}

/* Rows [first, first + R) into shared memory. */
template <typename E, int KP, int R>
static __device__ void load_tile(float *tile, mu_head<const E> from, int first, const mu_attention &op)
{
	for (int i = static_cast<int>(threadIdx.x); i < R * KP; i += THREADS) {
		const int row = i / KP, d = i % KP;
		const bool inside = first + row < static_cast<int>(op.tokens) && d < static_cast<int>(op.head_size);
		tile[row * (KP + 1) + d] = inside ? mu_load(from.data[(first + row) * from.stride + d]) : 0;
	}
}

/* c[i][j] = row i of a times row j of b */
template <int KP, int M>
static __device__ __forceinline__ void multiply_rows(float (&c)[M][M], const float *a, const float *b, const place &p)
{
#pragma unroll
	for (int i = 0; i < M; i++)
#pragma unroll
		for (int j = 0; j < M; j++)
			c[i][j] = 0;
#pragma unroll 4
	for (int d = 0; d < KP; d++) {
		float x[M], y[M];
#pragma unroll
		for (int i = 0; i < M; i++) {
			x[i] = a[(p.y + SIDE * i) * (KP + 1) + d];
			y[i] = b[(p.x + SIDE * i) * (KP + 1) + d];
		}
#pragma unroll
		for (int i = 0; i < M; i++)
#pragma unroll
			for (int j = 0; j < M; j++)
				c[i][j] = fmaf(x[i], y[j], c[i][j]);
	}
}

/* sum += weights [R, R] times rows [R, KP] */
template <int KP, int R>
static __device__ __forceinline__ void add_weighted(float (&sum)[R / SIDE][KP / SIDE], const float *weight,
                                                    const float *rows, const place &p)
{
#pragma unroll 4
	for (int c = 0; c < R; c++) {
		float w[R / SIDE];
#pragma unroll
		for (int i = 0; i < R / SIDE; i++)
			w[i] = weight[(p.y + SIDE * i) * (R + 1) + c];
#pragma unroll
		for (int j = 0; j < KP / SIDE; j++) {
			const float x = rows[c * (KP + 1) + p.x + SIDE * j];
#pragma unroll
			for (int i = 0; i < R / SIDE; i++)
				sum[i][j] = fmaf(w[i], x, sum[i][j]);
		}
	}
}

/* Over the sixteen threads of a row. */
static __device__ __forceinline__ float row_sum(float x)
{
	for (int lane = SIDE / 2; lane > 0; lane /= 2)
		x += __shfl_xor_sync(0xffffffffu, x, lane);
	return x;
}

static __device__ __forceinline__ float row_max(float x)
{
	for (int lane = SIDE / 2; lane > 0; lane /= 2)
		x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, lane));
	return x;
}

template <typename E, int KP, int R>
static __device__ void store_tile(mu_head<E> to, const float (&sum)[R / SIDE][KP / SIDE],
                                  const float (&factor)[R / SIDE], const place &p, const mu_attention &op)
{
#pragma unroll
	for (int i = 0; i < R / SIDE; i++)
#pragma unroll
		for (int j = 0; j < KP / SIDE; j++) {
			const int row = p.first + p.y + SIDE * i, d = p.x + SIDE * j;
			if (row < static_cast<int>(op.tokens) && d < static_cast<int>(op.head_size))
				to.data[row * to.stride + d] = mu_round<E>(sum[i][j] * factor[i]);
		}
}

template <typename E, int KP, int R>
static __global__ void __launch_bounds__(THREADS) attention_forward_tiled_kernel(const mu_attention op)
{
	constexpr int M = R / SIDE;
	extern __shared__ float shared[];
	float *q = shared, *k = q + R * (KP + 1), *v = k + R * (KP + 1), *weight = v + R * (KP + 1);
	const place p = find_place(op, R);
	const int N = static_cast<int>(op.tokens);
	const E *qkv = static_cast<const E *>(op.qkv);
	float largest[M], total[M], sum[M][KP / SIDE] = {}, s[M][M];
#pragma unroll
	for (int i = 0; i < M; i++) {
		largest[i] = -CUDART_INF_F;
		total[i] = 0;
	}
	load_tile<E, KP, R>(q, mu_part_of(op, qkv, p.b, p.h, MU_Q), p.first, op);
	for (int first = 0; first < N; first += R) {
		__syncthreads();
		load_tile<E, KP, R>(k, mu_part_of(op, qkv, p.b, p.h, MU_K), first, op);
		load_tile<E, KP, R>(v, mu_part_of(op, qkv, p.b, p.h, MU_V), first, op);
		__syncthreads();
		multiply_rows<KP, M>(s, q, k, p);
#pragma unroll
		for (int i = 0; i < M; i++) {
			float best = largest[i];
#pragma unroll
			for (int j = 0; j < M; j++) {
				s[i][j] = first + p.x + SIDE * j < N ? s[i][j] * p.scale : -CUDART_INF_F;
				best = fmaxf(best, s[i][j]);
			}
			best = row_max(best);
			const float shrink = expf(largest[i] - best);
			largest[i] = best;
			total[i] *= shrink;
#pragma unroll
			for (int j = 0; j < KP / SIDE; j++)
				sum[i][j] *= shrink;
#pragma unroll
			for (int j = 0; j < M; j++) {
				const int row = p.y + SIDE * i, column = p.x + SIDE * j;
				float e = expf(s[i][j] - best);
				total[i] += e;
				if (op.dropout.threshold)
					e *= mu_attention_keep(op, p.b, p.h, p.first + row, first + column);
				weight[row * (R + 1) + column] = e;
			}
		}
		__syncthreads();
		add_weighted<KP, R>(sum, weight, v, p);
	}
	float factor[M];
#pragma unroll
	for (int i = 0; i < M; i++) {
		const int row = p.first + p.y + SIDE * i;
		total[i] = row_sum(total[i]);
		factor[i] = 1 / total[i];
		if (p.x == 0 && row < N)
			static_cast<float *>(op.lse)[(p.b * op.heads + p.h) * N + row] = largest[i] + logf(total[i]);
	}
	store_tile<E, KP, R>(mu_output_of(op, static_cast<E *>(op.o), p.b, p.h), sum, factor, p, op);
}

/* Sum of d_o o per query of this block, kept and left for the keys' role. x2: d_o in shared memory. */
template <typename E, int KP, int R>
static __device__ void find_delta(float (&delta)[R / SIDE], float *out, const float *x2, const place &p,
                                  const mu_attention &op)
{
	const mu_head<const E> o = mu_output_of(op, static_cast<const E *>(op.o), p.b, p.h);
#pragma unroll
	for (int i = 0; i < R / SIDE; i++) {
		const int row = p.y + SIDE * i;
		const bool inside = p.first + row < static_cast<int>(op.tokens);
		float sum = 0;
		for (int d = p.x; d < static_cast<int>(op.head_size) && inside; d += SIDE)
			sum = fmaf(x2[row * (KP + 1) + d], mu_load(o.data[(p.first + row) * o.stride + d]), sum);
		delta[i] = row_sum(sum);
		if (p.x == 0 && inside)
			out[p.first + row] = delta[i];
	}
}

template <typename E, int KP, int R, bool KEYS>
static __global__ void __launch_bounds__(THREADS) attention_backward_tiled_kernel(const mu_attention op, float *deltas)
{
	constexpr int M = R / SIDE, TILE = R * (KP + 1);
	extern __shared__ float shared[];
	float *x1 = shared, *x2 = x1 + TILE, *y1 = x2 + TILE, *y2 = y1 + TILE, *d_s = y2 + TILE,
	      *kept = d_s + R * (R + 1);
	const place p = find_place(op, R);
	const int N = static_cast<int>(op.tokens);
	const E *qkv = static_cast<const E *>(op.qkv);
	const mu_head<const E> d_o = mu_output_of(op, static_cast<const E *>(op.d_o), p.b, p.h);
	const mu_head<const E> value = mu_part_of(op, qkv, p.b, p.h, MU_V);
	const float *lse = static_cast<const float *>(op.lse) + (p.b * op.heads + p.h) * N;
	float *delta = deltas + (p.b * op.heads + p.h) * N;
	float own_lse[M] = {}, own_delta[M] = {}, sum1[M][KP / SIDE] = {}, sum2[M][KP / SIDE] = {};
	load_tile<E, KP, R>(x1, mu_part_of(op, qkv, p.b, p.h, KEYS ? MU_K : MU_Q), p.first, op);
	load_tile<E, KP, R>(x2, KEYS ? value : d_o, p.first, op);
	__syncthreads();
	if (!KEYS) {
		find_delta<E, KP, R>(own_delta, delta, x2, p, op);
#pragma unroll
		for (int i = 0; i < M; i++)
			own_lse[i] = p.first + p.y + SIDE * i < N ? lse[p.first + p.y + SIDE * i] : 0;
	}
	for (int first = 0; first < N; first += R) {
		float s[M][M], d_p[M][M];
		__syncthreads();
		load_tile<E, KP, R>(y1, mu_part_of(op, qkv, p.b, p.h, KEYS ? MU_Q : MU_K), first, op);
		load_tile<E, KP, R>(y2, KEYS ? d_o : value, first, op);
		__syncthreads();
		multiply_rows<KP, M>(s, x1, y1, p);
		multiply_rows<KP, M>(d_p, x2, y2, p);
#pragma unroll
		for (int i = 0; i < M; i++)
#pragma unroll
			for (int j = 0; j < M; j++) {
				const int row = p.first + p.y + SIDE * i, column = first + p.x + SIDE * j;
				const int query = KEYS ? column : row, key = KEYS ? row : column;
				float probability = 0, keep = 1, of_delta = 0;
				if (row < N && column < N) {
					probability = expf(s[i][j] * p.scale - (KEYS ? lse[query] : own_lse[i]));
					of_delta = KEYS ? delta[query] : own_delta[i];
					if (op.dropout.threshold)
						keep = mu_attention_keep(op, p.b, p.h, query, key);
				}
				const int at = (p.y + SIDE * i) * (R + 1) + p.x + SIDE * j;
				d_s[at] = probability * (keep * d_p[i][j] - of_delta);
				if (KEYS)
					kept[at] = keep * probability;
			}
		__syncthreads();
		add_weighted<KP, R>(sum1, d_s, y1, p);
		if (KEYS)
			add_weighted<KP, R>(sum2, kept, y2, p);
	}
	float factor[M], one[M];
#pragma unroll
	for (int i = 0; i < M; i++) {
		factor[i] = p.scale;
		one[i] = 1;
	}
	E *d_qkv = static_cast<E *>(op.d_qkv);
	store_tile<E, KP, R>(mu_part_of(op, d_qkv, p.b, p.h, KEYS ? MU_K : MU_Q), sum1, factor, p, op);
	if (KEYS)
		store_tile<E, KP, R>(mu_part_of(op, d_qkv, p.b, p.h, MU_V), sum2, one, p, op);
}

/* Bytes of shared memory with `tiles` tiles of the head and `squares` of weights. */
template <int KP, int R> static constexpr size_t shared_bytes(int tiles, int squares)
{
	return sizeof(float) * R * (tiles * (KP + 1) + squares * (R + 1));
}

template <int R> static dim3 grid_of(const mu_attention *op)
{
	return dim3(static_cast<unsigned>(op->images * op->heads), mu_blocks(op->tokens, R));
}

template <typename E, int KP, int R> static void launch_forward(mu_ops_context *c, const mu_attention *op)
{
	constexpr size_t bytes = shared_bytes<KP, R>(3, 1);
	mu_allow_shared(reinterpret_cast<const void *>(attention_forward_tiled_kernel<E, KP, R>), bytes);
	attention_forward_tiled_kernel<E, KP, R><<<grid_of<R>(op), THREADS, bytes, c->stream>>>(*op);
}

template <typename E, int KP, int R, bool KEYS>
static void launch_backward(mu_ops_context *c, const mu_attention *op, float *delta)
{
	constexpr size_t bytes = shared_bytes<KP, R>(4, KEYS ? 2 : 1);
	mu_allow_shared(reinterpret_cast<const void *>(attention_backward_tiled_kernel<E, KP, R, KEYS>), bytes);
	attention_backward_tiled_kernel<E, KP, R, KEYS><<<grid_of<R>(op), THREADS, bytes, c->stream>>>(*op, delta);
}

template <typename E, int KP, int R> static void launch_roles(mu_ops_context *c, const mu_attention *op, float *delta)
{
	launch_backward<E, KP, R, false>(c, op, delta);
	launch_backward<E, KP, R, true>(c, op, delta);
}

/* Runs the statement with KP and R: the larger tile where backward has the shared memory for it. */
#define BY_TILE(c, op, ...)                                                    \
	if ((op)->head_size <= 64) {                                           \
		constexpr int KP = 64;                                         \
		if ((c)->device->shared_bytes >= shared_bytes<KP, 64>(4, 2)) { \
			constexpr int R = 64;                                  \
			__VA_ARGS__;                                           \
		} else {                                                       \
			constexpr int R = 32;                                  \
			__VA_ARGS__;                                           \
		}                                                              \
	} else {                                                               \
		constexpr int KP = 128;                                        \
		if ((c)->device->shared_bytes >= shared_bytes<KP, 32>(4, 2)) { \
			constexpr int R = 32;                                  \
			__VA_ARGS__;                                           \
		} else {                                                       \
			constexpr int R = 16;                                  \
			__VA_ARGS__;                                           \
		}                                                              \
	}

template <typename E> static void forward(mu_ops_context *c, const mu_attention *op)
{
	BY_TILE(c, op, launch_forward<E, KP, R>(c, op));
}

template <typename E> static void backward(mu_ops_context *c, const mu_attention *op, float *delta)
{
	BY_TILE(c, op, launch_roles<E, KP, R>(c, op, delta));
}

void mu_attention_tiled_forward(mu_ops_context *c, const mu_attention *op)
{
	MU_CUDA_BY_TYPE(op->type, forward<E>(c, op));
}

void mu_attention_tiled_backward(mu_ops_context *c, const mu_attention *op, float *delta)
{
	MU_CUDA_BY_TYPE(op->type, backward<E>(c, op, delta));
}
