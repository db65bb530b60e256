/* Residual addition and LayerNorm: one warp per token.
 *
 * A row whose packs of eight fit in a warp's registers (D divisible by eight, up to 2048) is read once: `held` kernels,
 * with N packs per lane. Other rows are read again for each pass from the cache: `loose` kernels.
 * The norm is taken of the sum as it is stored, rounded: the very values from which backward starts.
 *
 * Backward shares a row among 1, 2 or 4 warps, so that a lane has three packs at most, and keeps each lane's sums for d_w, d_b and d_gain in registers over all tokens of its warp; blocks write them as
 * partial sums, which partials.cu adds in order. Bytes per element in bf16: forward 8 with a residual (x, r in; sum, y
 * out), backward 8 (d_y, s, d_sum in; d_r out).
 *
 * Measured on one H200 in bf16, share of the card's copy rate: forward 77 % at D = 768 (94 us for 50432 tokens), backward
 * 61 % (119 us), 57 % at 1024, 52 % at 1280. Backward with one warp per row and up to eight packs per lane: 28 % at 768
 * while d_sum was read after the sums, 30 % at 1024 and 26 % at 1280 for want of registers, hence of warps.
 * SPDX-License-Identifier: MIT */
#include "kernels/cuda/cuda.cuh"

#define WARPS 4 /* tokens at a time in a block */
#define PACK 8
#define MOST_PACKS 8 /* per lane */
#define MOST_BLOCKS 3 /* per multiprocessor, in backward */

/* What a branch output x is multiplied with before it joins the stream, without the gain. */
static __device__ __forceinline__ float keep_of(const mu_layernorm &op, size_t token)
{
	return op.keep_B ? static_cast<const float *>(op.keep_B)[token / op.tokens_per_image] : 1;
}

template <typename E> static __device__ __forceinline__ float element(const void *p, size_t i)
{
	return mu_load(static_cast<const E *>(p)[i]);
}

/* s of one pack, as stored. */
template <typename E, int V>
static __device__ __forceinline__ mu_pack<E, V> sum_pack(const mu_layernorm &op, float keep, size_t at, size_t column)
{
	mu_pack<E, V> s = mu_read<E, V>(op.x, at);
	mu_pack<E, V> gain, r;
	if (!op.sum)
		return s;
	if (op.gain)
		gain = mu_read<E, V>(op.gain, column);
	if (op.r)
		r = mu_read<E, V>(op.r, at);
#pragma unroll
	for (int i = 0; i < V; i++) {
		float x = mu_load(s.e[i]) * keep;
		if (op.gain)
			x *= mu_load(gain.e[i]);
		if (op.r)
			x += mu_load(r.e[i]);
		s.e[i] = mu_round<E>(x);
	}
	mu_write<E, V>(op.sum, at, s);
	return s;
}

template <typename E, int V>
static __device__ __forceinline__ void norm_pack(const mu_layernorm &op, const mu_pack<E, V> &s, float mean, float rstd,
                                                 size_t at, size_t column)
{
	const mu_pack<E, V> w = mu_read<E, V>(op.w, column), b = mu_read<E, V>(op.b, column);
	mu_pack<E, V> y;
#pragma unroll
	for (int i = 0; i < V; i++)
		y.e[i] = mu_round<E>((mu_load(s.e[i]) - mean) * rstd * mu_load(w.e[i]) + mu_load(b.e[i]));
	mu_write<E, V>(op.y, at, y);
}

static __device__ __forceinline__ void write_statistics(const mu_layernorm &op, size_t token, float mean, float rstd)
{
	if (threadIdx.x > 0)
		return;
	static_cast<float *>(op.mean)[token] = mean;
	static_cast<float *>(op.rstd)[token] = rstd;
}

template <typename E, int N> static __global__ void layernorm_forward_held_kernel(const mu_layernorm op)
{
	const size_t token = static_cast<size_t>(blockIdx.x) * WARPS + threadIdx.y, W = op.width / PACK;
	if (token >= op.tokens)
		return;
	const float keep = keep_of(op, token), D = static_cast<float>(op.width);
	mu_pack<E, PACK> s[N];
	float mean = 0, variance = 0;
#pragma unroll
	for (int n = 0; n < N; n++) {
		const size_t column = n * MU_WARP + threadIdx.x;
		if (column < W) {
			s[n] = sum_pack<E, PACK>(op, keep, token * W + column, column);
#pragma unroll
			for (int i = 0; i < PACK; i++)
				mean += mu_load(s[n].e[i]);
		}
	}
	if (!op.y)
		return;
	mean = mu_warp_sum(mean) / D;
#pragma unroll
	for (int n = 0; n < N; n++)
		if (n * MU_WARP + threadIdx.x < W)
#pragma unroll
			for (int i = 0; i < PACK; i++) {
				const float distance = mu_load(s[n].e[i]) - mean;
				variance = fmaf(distance, distance, variance);
			}
	const float rstd = 1 / sqrtf(mu_warp_sum(variance) / D + static_cast<float>(op.eps));
#pragma unroll
	for (int n = 0; n < N; n++) {
		const size_t column = n * MU_WARP + threadIdx.x;
		if (column < W)
			norm_pack<E, PACK>(op, s[n], mean, rstd, token * W + column, column);
	}
	write_statistics(op, token, mean, rstd);
}

/* What the norm is taken of, once the sum is made. Not through the read-only cache: this thread wrote it. */
template <typename E> static __device__ __forceinline__ float normed(const mu_layernorm &op, size_t i)
{
	return element<E>(op.sum ? op.sum : op.x, i);
}

template <typename E> static __global__ void layernorm_forward_loose_kernel(const mu_layernorm op)
{
	const size_t token = static_cast<size_t>(blockIdx.x) * WARPS + threadIdx.y, first = token * op.width;
	if (token >= op.tokens)
		return;
	const float keep = keep_of(op, token), D = static_cast<float>(op.width);
	float mean = 0, variance = 0;
	for (size_t d = threadIdx.x; d < op.width; d += MU_WARP)
		mean += mu_load(sum_pack<E, 1>(op, keep, first + d, d).e[0]);
	if (!op.y)
		return;
	mean = mu_warp_sum(mean) / D;
	for (size_t d = threadIdx.x; d < op.width; d += MU_WARP) {
		const float distance = normed<E>(op, first + d) - mean;
		variance = fmaf(distance, distance, variance);
	}
	const float rstd = 1 / sqrtf(mu_warp_sum(variance) / D + static_cast<float>(op.eps));
	for (size_t d = threadIdx.x; d < op.width; d += MU_WARP) {
		mu_pack<E, 1> s;
		s.e[0] = mu_round<E>(normed<E>(op, first + d));
		norm_pack<E, 1>(op, s, mean, rstd, first + d, d);
	}
	write_statistics(op, token, mean, rstd);
}

/* The two means of the formula in the reference, over one token. */
struct means {
	float g, gh;
};

/* Gradient at s and what follows from it, for one element. */
static __device__ __forceinline__ float stream_gradient(const mu_layernorm &op, float d_sum, float g, float h,
                                                        float rstd, means m)
{
	return op.d_y ? d_sum + rstd * (g - m.g - h * m.gh) : d_sum;
}

/* Column of a lane's n-th pack where WIDE warps share a row. */
template <int WIDE> static __device__ __forceinline__ size_t column_of(int n)
{
	return (static_cast<size_t>(n) * WIDE + threadIdx.y % WIDE) * MU_WARP + threadIdx.x;
}

/* Sums over rows of this block: warps in order, then out. which: 0 w, 1 b, 2 gain. */
template <int N, int WIDE>
static __device__ void write_partials(float *partial, const float (&sum)[N][PACK], size_t W, int which)
{
	__shared__ float share[WARPS][MU_WARP * PACK];
	constexpr int COLUMNS = WIDE * MU_WARP * PACK; /* that the block has in one n */
	const size_t D = W * PACK;
#pragma unroll
	for (int n = 0; n < N; n++) {
		__syncthreads();
#pragma unroll
		for (int i = 0; i < PACK; i++)
			share[threadIdx.y][threadIdx.x * PACK + i] = sum[n][i];
		__syncthreads();
		for (int j = static_cast<int>(threadIdx.y * MU_WARP + threadIdx.x); j < COLUMNS; j += WARPS * MU_WARP) {
			const size_t column = static_cast<size_t>(n) * COLUMNS + j;
			float total = 0;
			for (int w = j / (MU_WARP * PACK); w < WARPS; w += WIDE)
				total += share[w][j % (MU_WARP * PACK)];
			if (column < D)
				partial[(static_cast<size_t>(blockIdx.x) * 3 + which) * D + column] = total;
		}
	}
}

/* Both over the WIDE warps of a row. turn: 0 and 1 in turns, so that one barrier per row is enough. */
template <int WIDE> static __device__ __forceinline__ means row_sum(means m, int turn)
{
	__shared__ means share[2][WARPS];
	m.g = mu_warp_sum(m.g);
	m.gh = mu_warp_sum(m.gh);
	if (WIDE == 1)
		return m;
	if (threadIdx.x == 0)
		share[turn][threadIdx.y] = m;
	__syncthreads();
	m = {0, 0};
#pragma unroll
	for (int w = 0; w < WIDE; w++) {
		m.g += share[turn][threadIdx.y / WIDE * WIDE + w].g;
		m.gh += share[turn][threadIdx.y / WIDE * WIDE + w].gh;
	}
	return m;
}

/* Blocks that share a multiprocessor's registers: the sums are 16 or 24 per pack. */
static constexpr int blocks_wanted(bool gain)
{
	return gain ? 2 : MOST_BLOCKS;
}

/* What a token brings along: all of it on its way before any of it is used. */
template <typename E, int N> struct token_row {
	mu_pack<E, PACK> s[N], d_y[N], d_sum[N];
};

template <typename E, int N, int WIDE>
static __device__ __forceinline__ void load_row(token_row<E, N> &row, const mu_layernorm &op, size_t token)
{
	const size_t W = op.width / PACK;
#pragma unroll
	for (int n = 0; n < N; n++) {
		const size_t column = column_of<WIDE>(n), at = token * W + column;
		const bool inside = column < W && token < op.tokens;
		if (inside && op.d_y) {
			row.s[n] = mu_read<E, PACK>(op.sum ? op.sum : op.x, at);
			row.d_y[n] = mu_read<E, PACK>(op.d_y, at);
		} else {
			row.s[n] = row.d_y[n] = mu_pack<E, PACK>();
		}
		row.d_sum[n] = inside && op.d_sum ? mu_read<E, PACK>(op.d_sum, at) : mu_pack<E, PACK>();
	}
}

/* Packs past the row are 0 and add nothing, so only reads and writes ask for the width. */
template <typename E, int N, int WIDE, bool GAIN>
static __global__ void __launch_bounds__(WARPS *MU_WARP, blocks_wanted(GAIN))
        layernorm_backward_held_kernel(const mu_layernorm op)
{
	constexpr int ROWS = WARPS / WIDE; /* of the block at a time */
	const size_t W = op.width / PACK;
	int turn = 0;
	const float D = static_cast<float>(op.width);
	float sum_w[N][PACK] = {}, sum_b[N][PACK] = {}, sum_gain[GAIN ? N : 1][PACK] = {};
	mu_pack<E, PACK> w[N];
#pragma unroll
	for (int n = 0; n < N; n++)
		w[n] = op.d_y && column_of<WIDE>(n) < W ? mu_read<E, PACK>(op.w, column_of<WIDE>(n))
		                                        : mu_pack<E, PACK>();
	for (size_t base = static_cast<size_t>(blockIdx.x) * ROWS; base < op.tokens;
	     base += static_cast<size_t>(gridDim.x) * ROWS) {
		const size_t token = base + threadIdx.y / WIDE, known = token < op.tokens ? token : 0;
		const float keep = keep_of(op, known);
		const float mean = op.d_y ? static_cast<const float *>(op.mean)[known] : 0;
		const float rstd = op.d_y ? static_cast<const float *>(op.rstd)[known] : 0;
		token_row<E, N> row;
		load_row<E, N, WIDE>(row, op, token);
		means m = {0, 0};
#pragma unroll
		for (int n = 0; n < N; n++)
#pragma unroll
			for (int i = 0; i < PACK; i++) {
				const float h = (mu_load(row.s[n].e[i]) - mean) * rstd, d = mu_load(row.d_y[n].e[i]);
				const float g = d * mu_load(w[n].e[i]);
				sum_w[n][i] = fmaf(d, h, sum_w[n][i]);
				sum_b[n][i] += d;
				m.g += g;
				m.gh = fmaf(g, h, m.gh);
			}
		m = row_sum<WIDE>(m, turn);
		m.g /= D;
		m.gh /= D;
		turn ^= 1;
		/* d_r and d_x may lie on d_y or d_sum: all of a row has been read. */
#pragma unroll
		for (int n = 0; n < N; n++) {
			const size_t column = column_of<WIDE>(n), at = token * W + column;
			if (column >= W || token >= op.tokens)
				continue;
			mu_pack<E, PACK> x, gain, d_r, d_x;
			if (GAIN)
				x = mu_read<E, PACK>(op.x, at);
			if (op.gain)
				gain = mu_read<E, PACK>(op.gain, column);
#pragma unroll
			for (int i = 0; i < PACK; i++) {
				const float h = (mu_load(row.s[n].e[i]) - mean) * rstd;
				const float g = mu_load(row.d_y[n].e[i]) * mu_load(w[n].e[i]);
				const float d_s = stream_gradient(op, mu_load(row.d_sum[n].e[i]), g, h, rstd, m);
				if (GAIN)
					sum_gain[n][i] = fmaf(d_s, mu_load(x.e[i]) * keep, sum_gain[n][i]);
				d_r.e[i] = mu_round<E>(d_s);
				d_x.e[i] = mu_round<E>(op.gain ? d_s * keep * mu_load(gain.e[i]) : d_s * keep);
			}
			mu_write<E, PACK>(op.d_r, at, d_r);
			if (op.d_x)
				mu_write<E, PACK>(op.d_x, at, d_x);
		}
	}
	float *partial = static_cast<float *>(op.scratch);
	if (op.d_y) {
		write_partials<N, WIDE>(partial, sum_w, W, 0);
		write_partials<N, WIDE>(partial, sum_b, W, 1);
	}
	if (GAIN)
		write_partials<GAIN ? N : 1, WIDE>(partial, sum_gain, W, 2);
}

/* One warp per token for d_r and d_x ... */
template <typename E> static __global__ void layernorm_backward_loose_kernel(const mu_layernorm op)
{
	const size_t token = static_cast<size_t>(blockIdx.x) * WARPS + threadIdx.y, first = token * op.width;
	if (token >= op.tokens)
		return;
	const float keep = keep_of(op, token), D = static_cast<float>(op.width);
	const float mean = op.d_y ? static_cast<const float *>(op.mean)[token] : 0;
	const float rstd = op.d_y ? static_cast<const float *>(op.rstd)[token] : 0;
	means m = {0, 0};
	for (size_t d = threadIdx.x; d < op.width && op.d_y; d += MU_WARP) {
		const float g = element<E>(op.d_y, first + d) * element<E>(op.w, d);
		m.g += g;
		m.gh = fmaf(g, (normed<E>(op, first + d) - mean) * rstd, m.gh);
	}
	m.g = mu_warp_sum(m.g) / D;
	m.gh = mu_warp_sum(m.gh) / D;
	for (size_t d = threadIdx.x; d < op.width; d += MU_WARP) {
		const size_t i = first + d;
		const float g = op.d_y ? element<E>(op.d_y, i) * element<E>(op.w, d) : 0;
		const float h = op.d_y ? (normed<E>(op, i) - mean) * rstd : 0;
		const float later = op.d_sum ? element<E>(op.d_sum, i) : 0;
		const float d_s = stream_gradient(op, later, g, h, rstd, m);
		static_cast<E *>(op.d_r)[i] = mu_round<E>(d_s);
		if (op.d_x)
			static_cast<E *>(op.d_x)[i] =
			        mu_round<E>(op.gain ? d_s * keep * element<E>(op.gain, d) : d_s * keep);
	}
}

/* ... after one thread per column and block has summed over its tokens, while d_y and d_sum are still there. d_gain
 * needs d_s, hence both means of each token: a warp finds them first, 32 tokens at a time. */
template <typename E> static __global__ void layernorm_columns_loose_kernel(const mu_layernorm op)
{
	__shared__ means of_token[MU_WARP];
	const float D = static_cast<float>(op.width);
	const size_t column = static_cast<size_t>(blockIdx.y) * blockDim.x + threadIdx.x;
	float sum_w = 0, sum_b = 0, sum_gain = 0;
	for (size_t first = static_cast<size_t>(blockIdx.x) * MU_WARP; first < op.tokens;
	     first += static_cast<size_t>(gridDim.x) * MU_WARP) {
		const size_t last = first + MU_WARP < op.tokens ? first + MU_WARP : op.tokens;
		for (size_t t = first + threadIdx.x / MU_WARP; t < last && op.d_y && op.d_gain;
		     t += blockDim.x / MU_WARP) {
			const float mean = static_cast<const float *>(op.mean)[t],
			            rstd = static_cast<const float *>(op.rstd)[t];
			means m = {0, 0};
			for (size_t d = threadIdx.x % MU_WARP; d < op.width; d += MU_WARP) {
				const float g = element<E>(op.d_y, t * op.width + d) * element<E>(op.w, d);
				m.g += g;
				m.gh = fmaf(g, (normed<E>(op, t * op.width + d) - mean) * rstd, m.gh);
			}
			m.g = mu_warp_sum(m.g) / D;
			m.gh = mu_warp_sum(m.gh) / D;
			if (threadIdx.x % MU_WARP == 0)
				of_token[t - first] = m;
		}
		__syncthreads();
		for (size_t t = first; t < last && column < op.width; t++) {
			const size_t i = t * op.width + column;
			float d = 0, h = 0, rstd = 0;
			means m = {0, 0};
			if (op.d_y) {
				rstd = static_cast<const float *>(op.rstd)[t];
				d = element<E>(op.d_y, i);
				h = (normed<E>(op, i) - static_cast<const float *>(op.mean)[t]) * rstd;
				sum_w = fmaf(d, h, sum_w);
				sum_b += d;
				if (op.d_gain)
					m = of_token[t - first];
			}
			if (op.d_gain) {
				const float g = op.d_y ? d * element<E>(op.w, column) : 0;
				const float later = op.d_sum ? element<E>(op.d_sum, i) : 0;
				sum_gain += stream_gradient(op, later, g, h, rstd, m) * element<E>(op.x, i) *
				            keep_of(op, t);
			}
		}
		__syncthreads();
	}
	float *partial = static_cast<float *>(op.scratch) + static_cast<size_t>(blockIdx.x) * 3 * op.width;
	if (column >= op.width)
		return;
	partial[column] = sum_w;
	partial[op.width + column] = sum_b;
	partial[2 * op.width + column] = sum_gain;
}

static bool is_held(const mu_layernorm *op)
{
	return op->width % PACK == 0 && op->width <= MU_WARP * PACK * MOST_PACKS;
}

/* Warps that share a row in backward. */
static unsigned wide_of(const mu_layernorm *op)
{
	const size_t most = MU_WARP * PACK * 3; /* columns of one warp */
	return op->width <= most ? 1 : op->width <= 2 * most ? 2 : 4;
}

/* Blocks of the backward kernels: fixed by the shape and the card. */
static unsigned backward_blocks(const mu_ops_context *c, const mu_layernorm *op)
{
	const unsigned most = static_cast<unsigned>(c->device->multiprocessors * MOST_BLOCKS);
	const unsigned blocks = mu_blocks(op->tokens, is_held(op) ? WARPS / wide_of(op) : MU_WARP);
	return blocks < most ? blocks : most;
}

size_t mu_cuda_layernorm_workspace(mu_ops_context *c, const mu_layernorm *op)
{
	return 3 * op->width * sizeof(float) * backward_blocks(c, op);
}

/* Runs the statement with N packs per lane. */
#define BY_PACKS(width, ...)                                \
	switch (((width) / PACK + MU_WARP - 1) / MU_WARP) { \
	case 1: {                                           \
		constexpr int N = 1;                        \
		__VA_ARGS__;                                \
		break;                                      \
	}                                                   \
	case 2: {                                           \
		constexpr int N = 2;                        \
		__VA_ARGS__;                                \
		break;                                      \
	}                                                   \
	case 3: {                                           \
		constexpr int N = 3;                        \
		__VA_ARGS__;                                \
		break;                                      \
	}                                                   \
	case 4: {                                           \
		constexpr int N = 4;                        \
		__VA_ARGS__;                                \
		break;                                      \
	}                                                   \
	case 5: {                                           \
		constexpr int N = 5;                        \
		__VA_ARGS__;                                \
		break;                                      \
	}                                                   \
	case 6: {                                           \
		constexpr int N = 6;                        \
		__VA_ARGS__;                                \
		break;                                      \
	}                                                   \
	default: {                                          \
		constexpr int N = MOST_PACKS;               \
		__VA_ARGS__;                                \
		break;                                      \
	}                                                   \
	}

mural_status mu_cuda_layernorm_forward(mu_ops_context *c, const mu_layernorm *op, mural_error *err)
{
	const dim3 block(MU_WARP, WARPS);
	const unsigned blocks = mu_blocks(op->tokens, WARPS);
	if (op->tokens == 0 || (!op->sum && !op->y))
		return MURAL_OK;
	if (is_held(op)) {
		MU_CUDA_BY_TYPE(op->type, BY_PACKS(op->width, layernorm_forward_held_kernel<E, N>
		                                   <<<blocks, block, 0, c->stream>>>(*op)));
	} else {
		MU_CUDA_BY_TYPE(op->type, layernorm_forward_loose_kernel<E><<<blocks, block, 0, c->stream>>>(*op));
	}
	return mu_cuda_launched("layernorm", err);
}

template <typename E, int N, int WIDE>
static void launch_held(mu_ops_context *c, const mu_layernorm *op, unsigned blocks)
{
	const dim3 block(MU_WARP, WARPS);
	if (op->d_gain)
		layernorm_backward_held_kernel<E, N, WIDE, true><<<blocks, block, 0, c->stream>>>(*op);
	else
		layernorm_backward_held_kernel<E, N, WIDE, false><<<blocks, block, 0, c->stream>>>(*op);
}

template <typename E> static void launch_backward(mu_ops_context *c, const mu_layernorm *op)
{
	const unsigned blocks = backward_blocks(c, op);
	if (!is_held(op)) {
		const dim3 block(MU_WARP, WARPS), grid(blocks, mu_blocks(op->width, 128));
		layernorm_columns_loose_kernel<E><<<grid, 128, 0, c->stream>>>(*op);
		layernorm_backward_loose_kernel<E><<<mu_blocks(op->tokens, WARPS), block, 0, c->stream>>>(*op);
		return;
	}
	const unsigned wide = wide_of(op), packs = mu_blocks(op->width / PACK, wide * MU_WARP);
	if (wide == 4)
		launch_held<E, 2, 4>(c, op, blocks);
	else if (wide == 2 && packs == 2)
		launch_held<E, 2, 2>(c, op, blocks);
	else if (wide == 2)
		launch_held<E, 3, 2>(c, op, blocks);
	else if (packs == 3)
		launch_held<E, 3, 1>(c, op, blocks);
	else if (packs == 2)
		launch_held<E, 2, 1>(c, op, blocks);
	else
		launch_held<E, 1, 1>(c, op, blocks);
}

mural_status mu_cuda_layernorm_backward(mu_ops_context *c, const mu_layernorm *op, mural_error *err)
{
	const unsigned blocks = backward_blocks(c, op);
	const float *partial = static_cast<const float *>(op->scratch);
	const mu_cuda_partials sums = {
	        op->type,      partial,   blocks,
	        3 * op->width, op->width, {op->d_y ? op->d_w : nullptr, op->d_y ? op->d_b : nullptr, op->d_gain}};
	if (op->tokens == 0)
		return MURAL_OK;
	MU_CUDA_BY_TYPE(op->type, launch_backward<E>(c, op));
	MU_TRY(mu_cuda_launched("layernorm backward", err));
	return mu_cuda_add_partials(c, &sums, err);
}
