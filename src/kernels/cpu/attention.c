/* Self-attention, one image and head at a time, scores in cache. Letters as in kernels/ops.h.
 *
 * Idea: a head's keys and values (2 * N * K floats, 100 KiB for a ViT at 224) are packed once into this thread's scratch,
 * keys transposed; then blocks of QUERIES rows go through scores, softmax and the product with the values while their
 * scores stay in the first- and second-level caches. No N x N array exists. Backward recomputes the probabilities from
 * lse and adds each block's share to d_k and d_v. FLOPs: 4 N^2 K per head forward, 10 N^2 K backward.
 *
 * Every product is c[m, n] (+)= a[m, k] b[k, n] with b and c rows contiguous and a with any two strides (so a transpose
 * costs nothing), in tiles of 6 rows x 64 columns of accumulators: 24 AVX-512 registers, 10 loads per 24 multiply-adds;
 * 6 x 16 for AVX2 (12 registers). m is rounded up to whole tiles; the extra rows are scratch that nobody reads.
 *
 * 1 / sqrt(K) is multiplied into q when it is packed. Sums of the softmax divide o at the end, not each probability.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/simd.h"

#define TILE_ROWS 6
#define TILE_VECTORS 4
#define QUERIES 24 /* rows of scores at a time; a multiple of TILE_ROWS */

struct product {
	size_t n, k; /* n: a multiple of MU_LANES; m is the number of parts times TILE_ROWS */
	const float *a, *b;
	size_t a_row, a_k, b_row, c_row;
	float *c;
	bool accumulate;
};

/* A tile of TILE_ROWS x vectors; `vectors` is a constant, so the accumulators live in registers. */
MU_CPU_INLINE void tile(const struct product *p, const int vectors, size_t row, size_t column)
{
	const float *a = p->a + row * p->a_row, *b = p->b + column;
	float *c = p->c + row * p->c_row + column;
	mu_simd sum[TILE_ROWS][TILE_VECTORS];
#pragma GCC unroll 8
	for (int r = 0; r < TILE_ROWS; r++)
#pragma GCC unroll 8
		for (int v = 0; v < vectors; v++)
			sum[r][v] = (mu_simd){0};
	for (size_t k = 0; k < p->k; k++) {
		mu_simd line[TILE_VECTORS];
#pragma GCC unroll 8
		for (int v = 0; v < vectors; v++)
			line[v] = mu_simd_load(b + k * p->b_row + v * MU_LANES);
#pragma GCC unroll 8
		for (int r = 0; r < TILE_ROWS; r++) {
			const float x = a[r * p->a_row + k * p->a_k];
#pragma GCC unroll 8
			for (int v = 0; v < vectors; v++)
				sum[r][v] += x * line[v];
		}
	}
#pragma GCC unroll 8
	for (int r = 0; r < TILE_ROWS; r++)
#pragma GCC unroll 8
		for (int v = 0; v < vectors; v++) {
			float *to = c + r * p->c_row + v * MU_LANES;
			mu_simd_store(to, p->accumulate ? mu_simd_load(to) + sum[r][v] : sum[r][v]);
		}
}

/* Parts are tiles of rows. */
MU_CPU_KERNEL(multiply)
{
	const struct product *p = work;
	for (size_t part = begin; part < end; part++) {
		const size_t row = part * TILE_ROWS;
		size_t column = 0;
		if (level == MU_CPU_AVX512)
			for (; column + 4 * MU_LANES <= p->n; column += 4 * MU_LANES)
				tile(p, 4, row, column);
		for (; column + 2 * MU_LANES <= p->n && level == MU_CPU_AVX512; column += 2 * MU_LANES)
			tile(p, 2, row, column);
		for (; column < p->n; column += MU_LANES)
			tile(p, 1, row, column);
	}
}

/* Sizes in floats, padded so that tiles may run over, and where the arrays of one thread lie in its scratch. */
struct layout {
	size_t keys, size; /* N and K in whole vectors */
	size_t rows; /* N in whole blocks */
	size_t stride; /* floats of one thread */
};

static size_t round_up(size_t n, size_t unit)
{
	return (n + unit - 1) / unit * unit;
}

static struct layout layout_of(const mu_attention *op)
{
	struct layout l = {.keys = round_up(op->tokens, MU_LANES),
	                   .size = round_up(op->head_size, MU_LANES),
	                   .rows = round_up(op->tokens, QUERIES)};
	const size_t transposed = op->head_size * l.keys, plain = l.rows * l.size;
	const size_t block = QUERIES * l.size, scores = QUERIES * l.keys;
	const size_t keep = round_up(MU_SIMD_KEEP_SPACE(l.keys), MU_LANES);
	l.stride = 2 * transposed + 3 * plain + 4 * block + 2 * scores + keep;
	return l;
}

struct attention {
	const mu_attention *op;
	struct layout layout;
	float scale; /* 1 / sqrt(K) */
};

/* What one thread works on: one head of one image. */
struct head {
	size_t b, h, tokens, size;
	const float *q, *k, *v; /* first token of the head; rows are 3 D apart */
	float *k_transposed, *v_transposed; /* [K, keys] */
	float *k_rows, *v_rows; /* [rows, size]; forward uses v, backward k: one place */
	float *d_k, *d_v; /* [rows, size] */
	float *q_block, *o_block, *d_o_block, *d_q_block; /* [QUERIES, size] */
	float *p, *d_p; /* [QUERIES, keys] */
	float *keep; /* dropout factors of one row */
};

static struct head head_of(const struct attention *a, size_t part, size_t thread)
{
	const mu_attention *op = a->op;
	const struct layout *l = &a->layout;
	const size_t D = op->heads * op->head_size;
	struct head head = {.b = part / op->heads, .h = part % op->heads, .tokens = op->tokens, .size = op->head_size};
	head.q = (const float *)op->qkv + head.b * op->tokens * 3 * D + head.h * op->head_size;
	head.k = head.q + D;
	head.v = head.k + D;
	float *at = (float *)op->scratch + thread * l->stride;
	head.k_transposed = at, at += op->head_size * l->keys;
	head.v_transposed = at, at += op->head_size * l->keys;
	head.k_rows = head.v_rows = at, at += l->rows * l->size;
	head.d_k = at, at += l->rows * l->size;
	head.d_v = at, at += l->rows * l->size;
	head.q_block = at, at += QUERIES * l->size;
	head.o_block = at, at += QUERIES * l->size;
	head.d_o_block = at, at += QUERIES * l->size;
	head.d_q_block = at, at += QUERIES * l->size;
	head.p = at, at += QUERIES * l->keys;
	head.d_p = at, at += QUERIES * l->keys;
	head.keep = at;
	return head;
}

/* rows x K from an array with rows `stride` apart to a dense one [.., size] times scale, zeros in the padding; fills up
 * to whole tiles of rows. */
MU_CPU_INLINE void pack(float *to, const float *from, size_t stride, size_t rows, size_t K, size_t size, float scale)
{
	const size_t padded = (rows + TILE_ROWS - 1) / TILE_ROWS * TILE_ROWS;
	for (size_t row = 0; row < rows; row++) {
#pragma omp simd
		for (size_t i = 0; i < K; i++)
			to[row * size + i] = from[row * stride + i] * scale;
		for (size_t i = K; i < size; i++)
			to[row * size + i] = 0;
	}
	memset(to + rows * size, 0, (padded - rows) * size * sizeof *to);
}

MU_CPU_INLINE void unpack(float *to, size_t stride, const float *from, size_t rows, size_t K, size_t size, float scale)
{
	for (size_t row = 0; row < rows; row++) {
#pragma omp simd
		for (size_t i = 0; i < K; i++)
			to[row * stride + i] = from[row * size + i] * scale;
	}
}

/* to[K, keys] = transpose of from, zeros in the padding. Sixteen tokens at a time, so that stores fill whole lines. */
MU_CPU_INLINE void pack_transposed(float *to, const float *from, size_t stride, size_t N, size_t K, size_t keys)
{
	for (size_t first = 0; first < keys; first += MU_LANES) {
		const size_t n = N - first < MU_LANES ? N - first : MU_LANES;
		const float *line = from + first * stride;
		for (size_t i = 0; i < K; i++) {
			float *row = to + i * keys + first;
			for (size_t j = 0; j < n; j++)
				row[j] = line[j * stride + i];
			for (size_t j = n; j < MU_LANES; j++)
				row[j] = 0;
		}
	}
}

/* The dropout factors of one query's probabilities. */
MU_CPU_INLINE const float *keep_row(const mu_attention *op, const struct head *head, size_t query)
{
	const uint64_t element = ((uint64_t)head->h * op->tokens + query) * op->tokens;
	return mu_simd_keep(&op->dropout, op->dropout.stream_B[head->b], element, op->tokens, head->keep);
}

/* Scores become exp(score - largest) in place, 0 in the padding. Returns their sum. */
MU_CPU_INLINE float softmax_row(float *p, size_t N, size_t keys, float *largest)
{
	for (size_t key = N; key < keys; key++)
		p[key] = -INFINITY;
	const float most = mu_simd_largest(p, keys);
	mu_simd sum = {0};
	for (size_t key = 0; key < keys; key += MU_LANES) {
		const mu_simd e = mu_simd_exp(mu_simd_load(p + key) - most);
		mu_simd_store(p + key, e);
		sum += e;
	}
	*largest = most;
	return mu_simd_sum(sum);
}

MU_CPU_INLINE void scores(const struct attention *a, const struct head *head, size_t tiles, size_t thread,
                          mu_cpu_level level)
{
	const struct layout *l = &a->layout;
	const struct product product = {.n = l->keys,
	                                .k = head->size,
	                                .a = head->q_block,
	                                .a_row = l->size,
	                                .a_k = 1,
	                                .b = head->k_transposed,
	                                .b_row = l->keys,
	                                .c = head->p,
	                                .c_row = l->keys};
	multiply[level](&product, 0, tiles, thread);
}

MU_CPU_INLINE void block_forward(const struct attention *a, const struct head *head, size_t first, size_t count,
                                 size_t thread, mu_cpu_level level)
{
	const mu_attention *op = a->op;
	const struct layout *l = &a->layout;
	const size_t N = op->tokens, K = op->head_size, D = op->heads * K;
	const size_t tiles = (count + TILE_ROWS - 1) / TILE_ROWS;
	float *o = (float *)op->o + (head->b * N + first) * D + head->h * K;
	float *lse = (float *)op->lse + (head->b * op->heads + head->h) * N + first;
	float share[QUERIES];

	pack(head->q_block, head->q + first * 3 * D, 3 * D, count, K, l->size, a->scale);
	scores(a, head, tiles, thread, level);
	for (size_t row = 0; row < count; row++) {
		float *p = head->p + row * l->keys, largest;
		const float sum = softmax_row(p, N, l->keys, &largest);
		lse[row] = (float)((double)largest + log((double)sum));
		share[row] = 1 / sum;
		if (op->dropout.threshold == 0)
			continue;
		const float *keep = keep_row(op, head, first + row);
		for (size_t key = 0; key < l->keys; key += MU_LANES)
			mu_simd_store(p + key, mu_simd_load(p + key) * mu_simd_load(keep + key));
	}
	const struct product product = {.n = l->size,
	                                .k = N,
	                                .a = head->p,
	                                .a_row = l->keys,
	                                .a_k = 1,
	                                .b = head->v_rows,
	                                .b_row = l->size,
	                                .c = head->o_block,
	                                .c_row = l->size};
	multiply[level](&product, 0, tiles, thread);
	for (size_t row = 0; row < count; row++)
		unpack(o + row * D, D, head->o_block + row * l->size, 1, K, l->size, share[row]);
}

MU_CPU_KERNEL(heads_forward)
{
	const struct attention *a = work;
	const struct layout *l = &a->layout;
	const size_t N = a->op->tokens, K = a->op->head_size, row = 3 * a->op->heads * K;
	for (size_t part = begin; part < end; part++) {
		const struct head head = head_of(a, part, thread);
		pack_transposed(head.k_transposed, head.k, row, N, K, l->keys);
		pack(head.v_rows, head.v, row, N, K, l->size, 1);
		for (size_t first = 0; first < N; first += QUERIES)
			block_forward(a, &head, first, N - first < QUERIES ? N - first : QUERIES, thread, level);
	}
}

/* p = exp(score - lse) and its gradient d_s = p (keep d_p - sum p keep d_p) in place of d_p; then p takes the keep. */
MU_CPU_INLINE void row_backward(const struct attention *a, const struct head *head, size_t query, float *p, float *d_p)
{
	const mu_attention *op = a->op;
	const size_t keys = a->layout.keys;
	const float lse = ((const float *)op->lse)[(head->b * op->heads + head->h) * op->tokens + query];
	const float *keep = op->dropout.threshold == 0 ? NULL : keep_row(op, head, query);
	mu_simd sums = {0};
	for (size_t key = 0; key < keys; key += MU_LANES) {
		const mu_simd e = mu_simd_exp(mu_simd_load(p + key) - lse);
		mu_simd d = mu_simd_load(d_p + key);
		if (keep) {
			d *= mu_simd_load(keep + key);
			mu_simd_store(d_p + key, d);
		}
		mu_simd_store(p + key, e);
		sums += e * d;
	}
	const float sum = mu_simd_sum(sums);
	for (size_t key = 0; key < keys; key += MU_LANES) {
		const mu_simd e = mu_simd_load(p + key);
		mu_simd_store(d_p + key, e * (mu_simd_load(d_p + key) - sum));
		if (keep)
			mu_simd_store(p + key, e * mu_simd_load(keep + key));
	}
}

/* d[N, size] += weights[count, N]^T rows[count, size]: what a block of queries sends to keys or values. */
MU_CPU_INLINE void add_to_keys(const struct attention *a, float *d, const float *weights, const float *rows,
                               size_t count, size_t thread, mu_cpu_level level)
{
	const struct layout *l = &a->layout;
	const struct product product = {.n = l->size,
	                                .k = count,
	                                .a = weights,
	                                .a_row = 1,
	                                .a_k = l->keys,
	                                .b = rows,
	                                .b_row = l->size,
	                                .c = d,
	                                .c_row = l->size,
	                                .accumulate = true};
	multiply[level](&product, 0, (a->op->tokens + TILE_ROWS - 1) / TILE_ROWS, thread);
}

MU_CPU_INLINE void block_backward(const struct attention *a, const struct head *head, size_t first, size_t count,
                                  size_t thread, mu_cpu_level level)
{
	const mu_attention *op = a->op;
	const struct layout *l = &a->layout;
	const size_t N = op->tokens, K = op->head_size, D = op->heads * K;
	const size_t tiles = (count + TILE_ROWS - 1) / TILE_ROWS;
	const float *d_o = (const float *)op->d_o + (head->b * N + first) * D + head->h * K;

	pack(head->q_block, head->q + first * 3 * D, 3 * D, count, K, l->size, a->scale);
	pack(head->d_o_block, d_o, D, count, K, l->size, 1);
	scores(a, head, tiles, thread, level);
	const struct product to_p = {.n = l->keys,
	                             .k = K,
	                             .a = head->d_o_block,
	                             .a_row = l->size,
	                             .a_k = 1,
	                             .b = head->v_transposed,
	                             .b_row = l->keys,
	                             .c = head->d_p,
	                             .c_row = l->keys};
	multiply[level](&to_p, 0, tiles, thread);
	for (size_t row = 0; row < count; row++)
		row_backward(a, head, first + row, head->p + row * l->keys, head->d_p + row * l->keys);
	add_to_keys(a, head->d_v, head->p, head->d_o_block, count, thread, level);
	add_to_keys(a, head->d_k, head->d_p, head->q_block, count, thread, level);
	const struct product to_q = {.n = l->size,
	                             .k = N,
	                             .a = head->d_p,
	                             .a_row = l->keys,
	                             .a_k = 1,
	                             .b = head->k_rows,
	                             .b_row = l->size,
	                             .c = head->d_q_block,
	                             .c_row = l->size};
	multiply[level](&to_q, 0, tiles, thread);
	float *d_q = (float *)op->d_qkv + (head->q - (const float *)op->qkv) + first * 3 * D;
	unpack(d_q, 3 * D, head->d_q_block, count, K, l->size, a->scale);
}

MU_CPU_KERNEL(heads_backward)
{
	const struct attention *a = work;
	const struct layout *l = &a->layout;
	const size_t N = a->op->tokens, K = a->op->head_size, D = a->op->heads * K;
	for (size_t part = begin; part < end; part++) {
		const struct head head = head_of(a, part, thread);
		pack_transposed(head.k_transposed, head.k, 3 * D, N, K, l->keys);
		pack_transposed(head.v_transposed, head.v, 3 * D, N, K, l->keys);
		pack(head.k_rows, head.k, 3 * D, N, K, l->size, 1);
		memset(head.d_k, 0, l->rows * l->size * sizeof(float));
		memset(head.d_v, 0, l->rows * l->size * sizeof(float));
		for (size_t first = 0; first < N; first += QUERIES)
			block_backward(a, &head, first, N - first < QUERIES ? N - first : QUERIES, thread, level);
		float *d_k = (float *)a->op->d_qkv + (head.k - (const float *)a->op->qkv);
		unpack(d_k, 3 * D, head.d_k, N, K, l->size, 1);
		unpack(d_k + D, 3 * D, head.d_v, N, K, l->size, 1);
	}
}

size_t mu_cpu_attention_workspace(mu_ops_context *c, const mu_attention *op)
{
	return (size_t)c->threads * layout_of(op).stride * sizeof(float);
}

static struct attention view(const mu_attention *op)
{
	return (struct attention){op, layout_of(op), (float)(1 / sqrt((double)op->head_size))};
}

mural_status mu_cpu_attention_forward(mu_ops_context *c, const mu_attention *op, mural_error *err)
{
	(void)err;
	const struct attention a = view(op);
	mu_cpu_run(c, heads_forward, &a, op->images * op->heads);
	return MURAL_OK;
}

mural_status mu_cpu_attention_backward(mu_ops_context *c, const mu_attention *op, mural_error *err)
{
	(void)err;
	const struct attention a = view(op);
	mu_cpu_run(c, heads_backward, &a, op->images * op->heads);
	return MURAL_OK;
}
