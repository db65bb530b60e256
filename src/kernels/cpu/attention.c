/* Self-attention, one image and head at a time, scores in cache. Letters as in kernels/ops.h.
 *
 * Idea: a head's keys and values (2 * N * K floats, 100 KiB for a ViT at 224) are packed once into this thread's
 * scratch. Blocks of 64 queries then go through scores, softmax and the product with the values; no N x N array
 * exists. Scores lie transposed, [key, query]: a vector holds 16 queries with AVX-512, so maxima and sums run down
 * the keys without a horizontal step, and nothing has to be masked behind the last key. (Scores as [query, key]
 * spent 220 cycles per row on horizontal maxima and sums, three times the products of a head of size 16.) Backward
 * recomputes the probabilities from lse and adds each block's share to d_k and d_v. FLOPs: 4 N^2 K per head
 * forward, 10 N^2 K backward.
 *
 * Every product is c[m, n] (+)= a[m, k] b[k, n] with rows of b and c contiguous and a with any two strides (so a
 * transpose costs nothing), in tiles of 6 rows x 64 columns of accumulators: 24 AVX-512 registers, 10 loads per 24
 * multiply-adds; 6 x 16 for AVX2 (12 registers). m is rounded up to whole tiles; the extra rows are scratch that
 * nobody reads.
 *
 * Measured on one core of a Xeon with AVX-512 (150 GFLOP/s in a large product): 197 tokens, K = 64: 98 GFLOP/s
 * forward, 100 backward; 50 tokens, K = 16: 48 and 57, of which padding to tiles and lanes takes a quarter. The
 * inner loop runs at the peak; the rest is exp and the trip of q, k, v and gradients between the third-level cache
 * and scratch. Did not help: blocks of 32, 48 or 96 queries; asking for output rows before the products.
 *
 * 1 / sqrt(K) is multiplied into q when it is packed. Sums of the softmax divide o at the end, not each
 * probability.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "kernels/cpu/real.h"

#define TILE_ROWS 6
/* Accumulators of a tile: 24 of 32 registers with AVX-512, 12 of 16 with less. */
#define TILE_VECTORS (MU_LANES == 16 ? 4 : 2)
#define QUERIES 64 /* columns of scores at a time */
#define CHAINS 4 /* maxima and sums side by side, to hide the latency of one */
/* Rows ahead that packing asks the memory for: a head's rows are a page apart, too far for the hardware to guess. */
#define AHEAD 8

struct product {
	size_t m, n, k; /* n: a multiple of MU_LANES */
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

static void multiply(const struct product *p)
{
	for (size_t row = 0; row < p->m; row += TILE_ROWS) {
		size_t column = 0;
		for (; column + TILE_VECTORS * MU_LANES <= p->n; column += TILE_VECTORS * MU_LANES)
			tile(p, TILE_VECTORS, row, column);
		for (; TILE_VECTORS > 2 && column + 2 * MU_LANES <= p->n; column += 2 * MU_LANES)
			tile(p, 2, row, column);
		for (; column < p->n; column += MU_LANES)
			tile(p, 1, row, column);
	}
}

static size_t round_up(size_t n, size_t unit)
{
	return (n + unit - 1) / unit * unit;
}

struct attention {
	const mu_attention *op;
	size_t rows, size; /* N in whole tiles, K in whole vectors */
	size_t keep_row; /* floats of dropout factors of one query */
	size_t stride; /* floats of one thread's scratch */
	float scale; /* 1 / sqrt(K) */
};

/* Rows of queries end in a tile, rows of scores are read a little past the last one. */
static struct attention view(const mu_attention *op)
{
	struct attention a = {.op = op,
	                      .rows = round_up(op->tokens, TILE_ROWS),
	                      .size = round_up(op->head_size, MU_LANES),
	                      .keep_row = round_up(MU_SIMD_KEEP_SPACE(op->tokens) + MU_LANES, MU_LANES),
	                      .scale = (float)(1 / sqrt((double)op->head_size))};
	const size_t rows = 4 * a.rows * a.size, blocks = 5 * round_up(QUERIES, TILE_ROWS) * a.size;
	const size_t scores = 3 * round_up(op->tokens, MU_LANES) * QUERIES;
	a.stride = round_up(rows + blocks + scores + MU_LANES * a.keep_row, 16);
	return a;
}

/* What one thread works on: one head of one image, and where its arrays lie in the scratch. */
struct head {
	size_t b, h;
	const mu_real *q, *k, *v; /* first token of the head; rows are 3 D apart */
	float *k_rows, *v_rows, *d_k, *d_v; /* [rows, size] */
	float *q_rows, *d_o_rows, *out; /* [QUERIES, size] */
	float *q_columns, *d_o_columns; /* [K, QUERIES] */
	float *p, *d_p, *keep; /* [N, QUERIES] */
	float *keep_rows; /* [MU_LANES, keep_row] */
};

static float *take(float **from, size_t n)
{
	float *taken = *from;
	*from += n;
	return taken;
}

static struct head head_of(const struct attention *a, size_t part, size_t thread)
{
	const mu_attention *op = a->op;
	const size_t D = op->heads * op->head_size, rows = a->rows * a->size;
	const size_t block = round_up(QUERIES, TILE_ROWS) * a->size;
	const size_t scores = round_up(op->tokens, MU_LANES) * QUERIES;
	float *scratch = (float *)op->scratch + thread * a->stride;
	struct head head = {.b = part / op->heads, .h = part % op->heads};
	head.q = (const mu_real *)op->qkv + head.b * op->tokens * 3 * D + head.h * op->head_size;
	head.k = head.q + D;
	head.v = head.k + D;
	head.k_rows = take(&scratch, rows);
	head.v_rows = take(&scratch, rows);
	head.d_k = take(&scratch, rows);
	head.d_v = take(&scratch, rows);
	head.q_rows = take(&scratch, block);
	head.d_o_rows = take(&scratch, block);
	head.out = take(&scratch, block);
	head.q_columns = take(&scratch, block);
	head.d_o_columns = take(&scratch, block);
	head.p = take(&scratch, scores);
	head.d_p = take(&scratch, scores);
	head.keep = take(&scratch, scores);
	head.keep_rows = scratch;
	return head;
}

/* rows x K from an array with rows `stride` apart to a dense one [.., size] times scale; zeros in the padding and in
 * rows up to `padded`. */
MU_CPU_INLINE void pack(const struct attention *a, float *to, const mu_real *from, size_t stride, size_t rows,
                        size_t padded, float scale)
{
	const size_t K = a->op->head_size, size = a->size;
	for (size_t row = 0; row < rows; row++) {
		const mu_real *line = from + row * stride, *later = row + AHEAD < rows ? line + AHEAD * stride : line;
		for (size_t i = 0; i < size; i += MU_LANES) {
			__builtin_prefetch(later + i);
			mu_simd_store(to + row * size + i, mu_real_load_up_to(line + i, K - i) * scale);
		}
	}
	memset(to + rows * size, 0, (padded - rows) * size * sizeof *to);
}

MU_CPU_INLINE void unpack(const struct attention *a, mu_real *to, size_t stride, const float *from, size_t rows,
                          float scale)
{
	const size_t K = a->op->head_size, size = a->size;
	for (size_t row = 0; row < rows; row++)
		for (size_t i = 0; i < size; i += MU_LANES)
			mu_real_store_up_to(to + row * stride + i, K - i, mu_simd_load(from + row * size + i) * scale);
}

/* to[rows, QUERIES] = transpose of from[n, ..], whose rows are `stride` apart; n and rows in whole vectors. */
MU_CPU_INLINE void transpose(float *to, const float *from, size_t stride, size_t n, size_t rows)
{
	for (size_t first = 0; first < n; first += MU_LANES)
		for (size_t row = 0; row < rows; row += MU_LANES) {
			mu_simd block[MU_LANES];
			for (size_t i = 0; i < MU_LANES; i++)
				block[i] = mu_simd_load(from + (first + i) * stride + row);
			mu_simd_transpose(block);
			for (size_t i = 0; i < MU_LANES; i++)
				mu_simd_store(to + (row + i) * QUERIES + first, block[i]);
		}
}

/* keep[N, QUERIES]: the dropout factors of queries [first, first + count). */
MU_CPU_INLINE void fill_keep(const struct attention *a, const struct head *head, size_t first, size_t count)
{
	const mu_attention *op = a->op;
	const size_t N = op->tokens;
	for (size_t group = 0; group < count; group += MU_LANES) {
		const float *rows[MU_LANES];
		for (size_t i = 0; i < MU_LANES; i++) {
			/* Lanes past the last query repeat it. */
			const size_t query = first + (group + i < count ? group + i : count - 1);
			rows[i] =
			        mu_simd_keep(&op->dropout, op->dropout.stream_B[head->b],
			                     ((uint64_t)head->h * N + query) * N, N, head->keep_rows + i * a->keep_row);
		}
		for (size_t key = 0; key < N; key += MU_LANES) {
			mu_simd block[MU_LANES];
			for (size_t i = 0; i < MU_LANES; i++)
				block[i] = mu_simd_load(rows[i] + key);
			mu_simd_transpose(block);
			for (size_t i = 0; i < MU_LANES; i++)
				mu_simd_store(head->keep + (key + i) * QUERIES + group, block[i]);
		}
	}
}

/* A vector of columns of scores becomes exp(score - largest of its column). */
MU_CPU_INLINE void softmax_columns(float *p, size_t N, mu_simd *largest, mu_simd *sum)
{
	mu_simd most[CHAINS], sums[CHAINS];
	for (size_t chain = 0; chain < CHAINS; chain++) {
		most[chain] = mu_simd_all(-INFINITY);
		sums[chain] = (mu_simd){0};
	}
	size_t key = 0;
	for (; key + CHAINS <= N; key += CHAINS)
		for (size_t chain = 0; chain < CHAINS; chain++)
			most[chain] = mu_simd_larger(most[chain], mu_simd_load(p + (key + chain) * QUERIES));
	for (; key < N; key++)
		most[0] = mu_simd_larger(most[0], mu_simd_load(p + key * QUERIES));
	const mu_simd top = mu_simd_larger(mu_simd_larger(most[0], most[1]), mu_simd_larger(most[2], most[3]));
	for (key = 0; key + CHAINS <= N; key += CHAINS)
		for (size_t chain = 0; chain < CHAINS; chain++) {
			float *at = p + (key + chain) * QUERIES;
			const mu_simd e = mu_simd_exp_negative(mu_simd_load(at) - top);
			mu_simd_store(at, e);
			sums[chain] += e;
		}
	for (; key < N; key++) {
		const mu_simd e = mu_simd_exp_negative(mu_simd_load(p + key * QUERIES) - top);
		mu_simd_store(p + key * QUERIES, e);
		sums[0] += e;
	}
	*largest = top;
	*sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

MU_CPU_INLINE void apply_keep(const struct head *head, size_t N, size_t columns)
{
	for (size_t key = 0; key < N; key++)
		for (size_t i = key * QUERIES; i < key * QUERIES + columns; i += MU_LANES)
			mu_simd_store(head->p + i, mu_simd_load(head->p + i) * mu_simd_load(head->keep + i));
}

/* Scores, or gradients of probabilities: c[N, QUERIES] = rows[N, K] columns[K, QUERIES]. */
MU_CPU_INLINE void keys_by_queries(const struct attention *a, float *c, const float *rows, const float *columns,
                                   size_t count)
{
	const struct product p = {.m = a->op->tokens,
	                          .n = (count + MU_LANES - 1) / MU_LANES * MU_LANES,
	                          .k = a->op->head_size,
	                          .a = rows,
	                          .a_row = a->size,
	                          .a_k = 1,
	                          .b = columns,
	                          .b_row = QUERIES,
	                          .c = c,
	                          .c_row = QUERIES};
	multiply(&p);
}

/* out[count, K] = weights[N, QUERIES]^T rows[N, K] */
MU_CPU_INLINE void queries_by_size(const struct attention *a, float *out, const float *weights, const float *rows,
                                   size_t count)
{
	const struct product p = {.m = count,
	                          .n = a->size,
	                          .k = a->op->tokens,
	                          .a = weights,
	                          .a_row = 1,
	                          .a_k = QUERIES,
	                          .b = rows,
	                          .b_row = a->size,
	                          .c = out,
	                          .c_row = a->size};
	multiply(&p);
}

/* d[N, K] += weights[N, QUERIES] rows[count, K]: what a block of queries sends to keys or values. */
MU_CPU_INLINE void add_to_keys(const struct attention *a, float *d, const float *weights, const float *rows,
                               size_t count)
{
	const struct product p = {.m = a->op->tokens,
	                          .n = a->size,
	                          .k = count,
	                          .a = weights,
	                          .a_row = QUERIES,
	                          .a_k = 1,
	                          .b = rows,
	                          .b_row = a->size,
	                          .c = d,
	                          .c_row = a->size,
	                          .accumulate = true};
	multiply(&p);
}

/* Packs queries [first, first + count) times 1 / sqrt(K) and makes their scores. */
MU_CPU_INLINE void make_scores(const struct attention *a, const struct head *head, size_t first, size_t count)
{
	const size_t stride = 3 * a->op->heads * a->op->head_size;
	const size_t columns = (count + MU_LANES - 1) / MU_LANES * MU_LANES;
	pack(a, head->q_rows, head->q + first * stride, stride, count, columns, a->scale);
	transpose(head->q_columns, head->q_rows, a->size, columns, a->size);
	keys_by_queries(a, head->p, head->k_rows, head->q_columns, count);
}

MU_CPU_INLINE void block_forward(const struct attention *a, const struct head *head, size_t first, size_t count)
{
	const mu_attention *op = a->op;
	const size_t N = op->tokens, D = op->heads * op->head_size;
	mu_real *o = (mu_real *)op->o + (head->b * N + first) * D + head->h * op->head_size;
	float *lse = (float *)op->lse + (head->b * op->heads + head->h) * N + first;
	float largest[QUERIES], sum[QUERIES];

	make_scores(a, head, first, count);
	for (size_t column = 0; column < count; column += MU_LANES) {
		mu_simd top, total;
		softmax_columns(head->p + column, N, &top, &total);
		mu_simd_store(largest + column, top);
		mu_simd_store(sum + column, total);
	}
	if (op->dropout.threshold != 0) {
		fill_keep(a, head, first, count);
		apply_keep(head, N, count);
	}
	queries_by_size(a, head->out, head->p, head->v_rows, count);
	for (size_t query = 0; query < count; query++) {
		lse[query] = largest[query] + logf(sum[query]);
		unpack(a, o + query * D, D, head->out + query * a->size, 1, 1 / sum[query]);
	}
}

MU_CPU_KERNEL(heads_forward)
{
	const struct attention *a = work;
	const size_t N = a->op->tokens, stride = 3 * a->op->heads * a->op->head_size;
	for (size_t part = begin; part < end; part++) {
		const struct head head = head_of(a, part, thread);
		pack(a, head.k_rows, head.k, stride, N, a->rows, 1);
		pack(a, head.v_rows, head.v, stride, N, a->rows, 1);
		for (size_t first = 0; first < N; first += QUERIES)
			block_forward(a, &head, first, N - first < QUERIES ? N - first : QUERIES);
	}
}

/* A vector of columns: p = exp(score - lse) and d_s = p (keep d_p - sum p keep d_p) in place of d_p. */
MU_CPU_INLINE void softmax_columns_backward(float *p, float *d_p, const float *keep, size_t N, mu_simd lse)
{
	mu_simd sum = {0};
	for (size_t key = 0; key < N; key++) {
		const size_t i = key * QUERIES;
		const mu_simd e = mu_simd_exp(mu_simd_load(p + i) - lse);
		mu_simd d = mu_simd_load(d_p + i);
		if (keep) {
			d *= mu_simd_load(keep + i);
			mu_simd_store(d_p + i, d);
		}
		mu_simd_store(p + i, e);
		sum += e * d;
	}
	for (size_t i = 0; i < N * QUERIES; i += QUERIES)
		mu_simd_store(d_p + i, mu_simd_load(p + i) * (mu_simd_load(d_p + i) - sum));
}

MU_CPU_INLINE void block_backward(const struct attention *a, const struct head *head, size_t first, size_t count)
{
	const mu_attention *op = a->op;
	const size_t N = op->tokens, D = op->heads * op->head_size;
	const size_t columns = (count + MU_LANES - 1) / MU_LANES * MU_LANES;
	const mu_real *d_o = (const mu_real *)op->d_o + (head->b * N + first) * D + head->h * op->head_size;
	const float *lse = (const float *)op->lse + (head->b * op->heads + head->h) * N + first;
	mu_real *d_q = (mu_real *)op->d_qkv + (head->q - (const mu_real *)op->qkv) + first * 3 * D;
	const bool dropout = op->dropout.threshold != 0;

	make_scores(a, head, first, count);
	pack(a, head->d_o_rows, d_o, D, count, columns, 1);
	transpose(head->d_o_columns, head->d_o_rows, a->size, columns, a->size);
	keys_by_queries(a, head->d_p, head->v_rows, head->d_o_columns, count);
	if (dropout)
		fill_keep(a, head, first, count);
	for (size_t column = 0; column < count; column += MU_LANES)
		softmax_columns_backward(head->p + column, head->d_p + column, dropout ? head->keep + column : NULL, N,
		                         mu_simd_load_up_to(lse + column, count - column));
	if (dropout)
		apply_keep(head, N, count);
	add_to_keys(a, head->d_v, head->p, head->d_o_rows, count);
	add_to_keys(a, head->d_k, head->d_p, head->q_rows, count);
	queries_by_size(a, head->out, head->d_p, head->k_rows, count);
	unpack(a, d_q, 3 * D, head->out, count, a->scale);
}

MU_CPU_KERNEL(heads_backward)
{
	const struct attention *a = work;
	const size_t N = a->op->tokens, D = a->op->heads * a->op->head_size;
	for (size_t part = begin; part < end; part++) {
		const struct head head = head_of(a, part, thread);
		pack(a, head.k_rows, head.k, 3 * D, N, a->rows, 1);
		pack(a, head.v_rows, head.v, 3 * D, N, a->rows, 1);
		memset(head.d_k, 0, a->rows * a->size * sizeof(float));
		memset(head.d_v, 0, a->rows * a->size * sizeof(float));
		for (size_t first = 0; first < N; first += QUERIES)
			block_backward(a, &head, first, N - first < QUERIES ? N - first : QUERIES);
		mu_real *d_k = (mu_real *)a->op->d_qkv + (head.k - (const mu_real *)a->op->qkv);
		unpack(a, d_k, 3 * D, head.d_k, N, 1);
		unpack(a, d_k + D, 3 * D, head.d_v, N, 1);
	}
}

size_t mu_cpu_attention_workspace(mu_ops_context *c, const mu_attention *op)
{
	return (size_t)c->threads * view(op).stride * sizeof(float);
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
