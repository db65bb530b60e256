/* Attention on tensor cores (mma.m16n8k16, capability 8.0), for bf16 and f16.
 *
 * A warp owns 16 rows of one head: queries, or in the keys' role of backward keys. Their operands stay in registers; the
 * columns lie in shared memory, the whole head where it fits a tile (ViT lengths: 197 tokens of 64 are 60 KiB), else
 * tile after tile with an online softmax. Scores never leave the registers: the accumulator layout of one product is the
 * operand layout of the next, so p and d_s are rounded in place and multiplied on.
 *
 * KB is the head size in blocks of 16, the rest 0. Rows in shared memory are 16 bytes longer than the head, which puts
 * the eight rows that ldmatrix reads at a time in different banks for every KB. Rows past N are 0.
 *
 * Work at 197 tokens: 13 x 13 blocks of 16 x 16, 90 % of the products useful. Bytes at batch 256, ViT-B: forward 0.31 GB,
 * backward 0.54 GB and the same again for the second role.
 *
 * Measured on one H200, ViT-B/16, bf16, 256 images (12 heads of 64): forward 241 us (127 TFLOP/s, 30 % of what its bytes
 * need), backward 644 us counted as five products (118 TFLOP/s). cuDNN's best on such a card is 806 us for both.
 * What helped: dropout as a template parameter (a branch per element had split every step into eight blocks of code:
 * 917 -> 654 us backward), groups of keys without branches (324 -> 257 us forward), ex2 instead of exp2f.
 * What is left, by count: a warp with 16 rows loads each operand from shared memory for one product only, so ldmatrix
 * takes as long as the products; 32 rows per warp would halve it. Dropout draws Philox per element, four times too often:
 * 1.3 ms and 2.5 ms.
 * SPDX-License-Identifier: MIT */
#include <math_constants.h>

#include "kernels/cuda/attention_lanes.cuh"

#define CHUNK 16 /* rows of a warp, and columns of a step */
#define GROUP 4 /* chunks of columns that forward takes at a time: one update of the online softmax */
#define MOST_BLOCK_CHUNKS 16 /* of rows: 256 tokens */
#define PAD 8 /* elements: 16 bytes */
#define TILE_BYTES (72 * 1024) /* three blocks share a multiprocessor's 228 KiB, one has it in the 99 KiB of 8.6 */

/* Warps of a block, and blocks that a multiprocessor's registers shall hold, by the registers that a role needs. 7 warps
 * take the 13 chunks of 197 tokens in two rounds with 128 registers each; the keys' role has twice the sums, which 128
 * registers hold for small heads only: there 4 warps in four rounds, three blocks of which fit with 168. */
enum role { FORWARD, BY_QUERIES, BY_KEYS };

static constexpr int most_warps(role r, int KB)
{
	return r == BY_KEYS && KB >= 4 ? 4 : 7;
}

static constexpr int blocks_wanted(role r, int KB)
{
	return r == BY_KEYS && KB >= 4 ? (KB == 4 ? 3 : 2) : KB <= 5 ? 2 : 1;
}

/* How the rows of a head are spread over blocks and warps, and its columns over tiles. */
struct split {
	int chunks; /* of rows, in the head */
	int per_block; /* chunks */
	int warps; /* of a block */
	int tile, tiles; /* columns of a tile, a multiple of CHUNK */
};

/* c [16, 8] += a [16, 16] b [16, 8]; this file's kernels are not launched below capability 8.0. */
static __device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1,
                                                mu_bf16)
{
#if __CUDA_ARCH__ >= 800
	asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
	    "{%0,%1,%2,%3};"
	    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
	    : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}
static __device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, mu_f16)
{
#if __CUDA_ARCH__ >= 800
	asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
	    "{%0,%1,%2,%3};"
	    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
	    : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

/* Four 8 x 8 matrices. Rows as they are: two b operands [16, 8] of a product with the tile transposed. */
static __device__ __forceinline__ void load_rows(uint32_t (&r)[4], const void *p)
{
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
	             : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
	             : "r"(shared_address(p)));
}
/* Transposed: two b operands of a product with the tile as it is. */
static __device__ __forceinline__ void load_columns(uint32_t (&r)[4], const void *p)
{
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
	             : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
	             : "r"(shared_address(p)));
}

/* Begins to bring rows [first, first + rows) into a tile. */
template <typename E, int KB>
static __device__ void begin_tile(E *tile, mu_head<const E> from, int first, int rows, const mu_attention &op)
{
	constexpr int PIECES = KB * 2, S = KB * 16 + PAD;
	for (int i = static_cast<int>(threadIdx.x); i < rows * PIECES; i += static_cast<int>(blockDim.x)) {
		const int row = i / PIECES, piece = i % PIECES;
		const bool inside =
		        first + row < static_cast<int>(op.tokens) && piece * 8 < static_cast<int>(op.head_size);
		const E *at = inside ? from.data + (first + row) * from.stride + piece * 8 : from.data;
		copy_piece(shared_address(tile + row * S + piece * 8), at, inside);
	}
}

struct lane {
	int row, column; /* of the accumulator's first element: rows row and row + 8, columns column and column + 1 */
	int rows_at, rows_piece; /* where this lane's address for load_rows lies: row of the chunk, element */
	int columns_at, columns_piece;
};

static __device__ __forceinline__ lane find_lane(void)
{
	const int l = static_cast<int>(threadIdx.x) % MU_WARP;
	return {l / 4, l % 4 * 2, l / 16 * 8 + l % 8, l / 8 % 2 * 8, l / 8 % 2 * 8 + l % 8, l / 16 * 8};
}

/* Operand a of 16 rows from global memory: read once, so not through shared memory. */
template <typename E, int KB>
static __device__ __forceinline__ void load_operand(uint32_t (&x)[KB][4], mu_head<const E> from, int first,
                                                    const lane &l, const mu_attention &op)
{
#pragma unroll
	for (int k = 0; k < KB; k++)
#pragma unroll
		for (int i = 0; i < 4; i++) {
			const int row = first + l.row + i % 2 * 8, d = k * 16 + l.column + i / 2 * 8;
			const bool inside = row < static_cast<int>(op.tokens) && d < static_cast<int>(op.head_size);
			x[k][i] = inside ? *reinterpret_cast<const uint32_t *>(from.data + row * from.stride + d) : 0;
		}
}

/* c [16, 16] = x times the 16 rows of the tile that begin at `rows`, transposed. */
template <typename E, int KB>
static __device__ __forceinline__ void multiply_rows(float (&c0)[4], float (&c1)[4], const uint32_t (&x)[KB][4],
                                                     const E *rows, const lane &l)
{
	constexpr int S = KB * 16 + PAD;
#pragma unroll
	for (int i = 0; i < 4; i++)
		c0[i] = c1[i] = 0;
#pragma unroll
	for (int k = 0; k < KB; k++) {
		uint32_t b[4];
		load_rows(b, rows + l.rows_at * S + k * 16 + l.rows_piece);
		multiply(c0, x[k], b[0], b[1], E());
		multiply(c1, x[k], b[2], b[3], E());
	}
}

/* sum [16, K] += weights [16, 16] times the 16 rows of the tile. */
template <typename E, int KB>
static __device__ __forceinline__ void add_weighted(float (&sum)[2 * KB][4], const float (&w0)[4], const float (&w1)[4],
                                                    const E *rows, const lane &l)
{
	constexpr int S = KB * 16 + PAD;
	const uint32_t a[4] = {pack_pair<E>(w0[0], w0[1]), pack_pair<E>(w0[2], w0[3]), pack_pair<E>(w1[0], w1[1]),
	                       pack_pair<E>(w1[2], w1[3])};
#pragma unroll
	for (int k = 0; k < KB; k++) {
		uint32_t b[4];
		load_columns(b, rows + l.columns_at * S + k * 16 + l.columns_piece);
		multiply(sum[2 * k], a, b[0], b[1], E());
		multiply(sum[2 * k + 1], a, b[2], b[3], E());
	}
}

/* Rows times factor, as E. */
template <typename E, int KB>
static __device__ __forceinline__ void store_rows(mu_head<E> to, const float (&sum)[2 * KB][4],
                                                  const float (&factor)[2], int first, const lane &l,
                                                  const mu_attention &op)
{
#pragma unroll
	for (int n = 0; n < 2 * KB; n++)
#pragma unroll
		for (int half = 0; half < 2; half++) {
			const int row = first + l.row + half * 8, d = n * 8 + l.column;
			if (row < static_cast<int>(op.tokens) && d < static_cast<int>(op.head_size))
				*reinterpret_cast<uint32_t *>(to.data + row * to.stride + d) = pack_pair<E>(
				        sum[n][2 * half] * factor[half], sum[n][2 * half + 1] * factor[half]);
		}
}

/* One query chunk on its way through the keys. largest: of the scores before scaling; total: of this lane's columns. */
template <int KB> struct walk {
	float largest[2], total[2], sum[2 * KB][4];
};

/* Columns [first, first + chunks * CHUNK) of the head, whose rows of k and v begin at these places. WHOLE: there are
 * GROUP chunks or more, none past N; without a branch the compiler weaves their products together. */
template <typename E, int KB, bool DROPOUT, bool WHOLE>
static __device__ __forceinline__ void forward_group(walk<KB> &w, const uint32_t (&q)[KB][4], const E *k, const E *v,
                                                     int first, int chunks, int query, size_t b, size_t h, float scale2,
                                                     const lane &l, const mu_attention &op)
{
	constexpr int S = KB * 16 + PAD;
	const int N = static_cast<int>(op.tokens);
	float s[2 * GROUP][4];
#pragma unroll
	for (int j = 0; j < GROUP; j++)
		if (WHOLE || j < chunks) {
			multiply_rows<E, KB>(s[2 * j], s[2 * j + 1], q, k + j * CHUNK * S, l);
		} else {
#pragma unroll
			for (int i = 0; i < 4; i++)
				s[2 * j][i] = s[2 * j + 1][i] = -CUDART_INF_F;
		}
	if (!WHOLE)
#pragma unroll
		for (int n = 0; n < 2 * GROUP; n++)
#pragma unroll
			for (int i = 0; i < 4; i++)
				if (first + n * 8 + l.column + i % 2 >= N)
					s[n][i] = -CUDART_INF_F;
#pragma unroll
	for (int half = 0; half < 2; half++) {
		float largest = w.largest[half];
#pragma unroll
		for (int n = 0; n < 2 * GROUP; n++)
			largest = fmaxf(largest, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
		largest = quad_max(largest);
		const float shrink = power_of_2((w.largest[half] - largest) * scale2), offset = -largest * scale2;
		w.largest[half] = largest;
		w.total[half] *= shrink;
#pragma unroll
		for (int n = 0; n < 2 * KB; n++) {
			w.sum[n][2 * half] *= shrink;
			w.sum[n][2 * half + 1] *= shrink;
		}
#pragma unroll
		for (int n = 0; n < 2 * GROUP; n++)
#pragma unroll
			for (int i = 2 * half; i < 2 * half + 2; i++) {
				s[n][i] = power_of_2(fmaf(s[n][i], scale2, offset));
				w.total[half] += s[n][i];
				if (DROPOUT)
					s[n][i] *= mu_attention_keep(op, b, h, query + l.row + half * 8,
					                             first + n * 8 + l.column + i % 2);
			}
	}
#pragma unroll
	for (int j = 0; j < GROUP; j++)
		if (WHOLE || j < chunks)
			add_weighted<E, KB>(w.sum, s[2 * j], s[2 * j + 1], v + j * CHUNK * S, l);
}

template <typename E, int KB, bool DROPOUT>
static __global__ void __launch_bounds__(most_warps(FORWARD, KB) * MU_WARP, blocks_wanted(FORWARD, KB))
        attention_forward_tensor_kernel(const mu_attention op, const split p)
{
	constexpr int S = KB * 16 + PAD;
	extern __shared__ __align__(16) unsigned char shared[];
	E *k = reinterpret_cast<E *>(shared), *v = k + p.tile * S;
	const size_t b = blockIdx.x / op.heads, h = blockIdx.x % op.heads;
	const int warp = static_cast<int>(threadIdx.x) / MU_WARP, N = static_cast<int>(op.tokens);
	const lane l = find_lane();
	const float scale = rsqrtf(static_cast<float>(op.head_size)), scale2 = scale * MU_LOG2_E;
	const E *qkv = static_cast<const E *>(op.qkv);
	for (int round = 0; round < p.per_block; round += p.warps) {
		const int chunk = static_cast<int>(blockIdx.y) * p.per_block + round + warp;
		const bool active = round + warp < p.per_block && chunk < p.chunks;
		uint32_t q[KB][4];
		walk<KB> w = {{-CUDART_INF_F, -CUDART_INF_F}, {0, 0}, {}};
		if (active)
			load_operand<E, KB>(q, mu_part_of(op, qkv, b, h, MU_Q), chunk * CHUNK, l, op);
		for (int tile = 0; tile < p.tiles; tile++) {
			const int begin = tile * p.tile,
			          end = begin + p.tile < p.chunks * CHUNK ? begin + p.tile : p.chunks * CHUNK;
			if (p.tiles > 1 || round == 0) {
				__syncthreads();
				begin_tile<E, KB>(k, mu_part_of(op, qkv, b, h, MU_K), begin, p.tile, op);
				begin_tile<E, KB>(v, mu_part_of(op, qkv, b, h, MU_V), begin, p.tile, op);
				wait_for_pieces();
				__syncthreads();
			}
			for (int first = begin; first < end && active; first += GROUP * CHUNK) {
				const E *k_at = k + (first - begin) * S, *v_at = v + (first - begin) * S;
				if (first + GROUP * CHUNK <= (end < N ? end : N))
					forward_group<E, KB, DROPOUT, true>(w, q, k_at, v_at, first, GROUP,
					                                    chunk * CHUNK, b, h, scale2, l, op);
				else
					forward_group<E, KB, DROPOUT, false>(w, q, k_at, v_at, first,
					                                     (end - first) / CHUNK, chunk * CHUNK, b, h,
					                                     scale2, l, op);
			}
		}
		if (!active)
			continue;
		float factor[2];
#pragma unroll
		for (int half = 0; half < 2; half++) {
			const int row = chunk * CHUNK + l.row + half * 8;
			const float total = quad_sum(w.total[half]);
			factor[half] = 1 / total;
			if (l.column == 0 && row < N)
				static_cast<float *>(op.lse)[(b * op.heads + h) * N + row] =
				        w.largest[half] * scale + logf(total);
		}
		store_rows<E, KB>(mu_output_of(op, static_cast<E *>(op.o), b, h), w.sum, factor, chunk * CHUNK, l, op);
	}
}

/* Sum of d_o o for this lane's two queries; left for the keys' role. */
template <typename E, int KB>
static __device__ __forceinline__ void find_delta(float (&delta)[2], float *out, const uint32_t (&d_o)[KB][4],
                                                  mu_head<const E> o, int first, const lane &l, const mu_attention &op)
{
	uint32_t x[KB][4];
	load_operand<E, KB>(x, o, first, l, op);
	delta[0] = delta[1] = 0;
#pragma unroll
	for (int k = 0; k < KB; k++)
#pragma unroll
		for (int i = 0; i < 4; i++) {
			const float2 a = unpack_pair(x[k][i], E()), d = unpack_pair(d_o[k][i], E());
			delta[i % 2] += a.x * d.x + a.y * d.y;
		}
#pragma unroll
	for (int half = 0; half < 2; half++) {
		const int row = first + l.row + half * 8;
		delta[half] = quad_sum(delta[half]);
		if (l.column == 0 && row < static_cast<int>(op.tokens))
			out[row] = delta[half];
	}
}

template <typename E, int KB, role R, bool DROPOUT>
static __global__ void __launch_bounds__(most_warps(R, KB) * MU_WARP, blocks_wanted(R, KB))
        attention_backward_tensor_kernel(const mu_attention op, const split p, float *deltas)
{
	constexpr int S = KB * 16 + PAD;
	constexpr bool KEYS = R == BY_KEYS;
	extern __shared__ __align__(16) unsigned char shared[];
	E *y1 = reinterpret_cast<E *>(shared), *y2 = y1 + p.tile * S;
	float2 *of_column = reinterpret_cast<float2 *>(y2 + p.tile * S); /* keys' role: lse in base 2, delta */
	const size_t b = blockIdx.x / op.heads, h = blockIdx.x % op.heads;
	const int warp = static_cast<int>(threadIdx.x) / MU_WARP, N = static_cast<int>(op.tokens);
	const lane l = find_lane();
	const float scale = rsqrtf(static_cast<float>(op.head_size)), scale2 = scale * MU_LOG2_E;
	const E *qkv = static_cast<const E *>(op.qkv);
	const mu_head<const E> d_o = mu_output_of(op, static_cast<const E *>(op.d_o), b, h);
	const mu_head<const E> value = mu_part_of(op, qkv, b, h, MU_V);
	const float *lse = static_cast<const float *>(op.lse) + (b * op.heads + h) * N;
	float *delta = deltas + (b * op.heads + h) * N;
	for (int round = 0; round < p.per_block; round += p.warps) {
		const int chunk = static_cast<int>(blockIdx.y) * p.per_block + round + warp;
		const bool active = round + warp < p.per_block && chunk < p.chunks;
		uint32_t x1[KB][4], x2[KB][4];
		float sum1[2 * KB][4] = {}, sum2[KEYS ? 2 * KB : 1][4] = {};
		float own_lse[2] = {0, 0}, own_delta[2] = {0, 0};
		if (active) {
			load_operand<E, KB>(x1, mu_part_of(op, qkv, b, h, KEYS ? MU_K : MU_Q), chunk * CHUNK, l, op);
			load_operand<E, KB>(x2, KEYS ? value : d_o, chunk * CHUNK, l, op);
			if (!KEYS) {
				find_delta<E, KB>(own_delta, delta, x2,
				                  mu_output_of(op, static_cast<const E *>(op.o), b, h), chunk * CHUNK,
				                  l, op);
#pragma unroll
				for (int half = 0; half < 2; half++) {
					const int row = chunk * CHUNK + l.row + half * 8;
					own_lse[half] = row < N ? lse[row] * MU_LOG2_E : 0;
				}
			}
		}
		for (int tile = 0; tile < p.tiles; tile++) {
			const int begin = tile * p.tile,
			          end = begin + p.tile < p.chunks * CHUNK ? begin + p.tile : p.chunks * CHUNK;
			if (p.tiles > 1 || round == 0) {
				__syncthreads();
				begin_tile<E, KB>(y1, mu_part_of(op, qkv, b, h, KEYS ? MU_Q : MU_K), begin, p.tile, op);
				begin_tile<E, KB>(y2, KEYS ? d_o : value, begin, p.tile, op);
				for (int i = static_cast<int>(threadIdx.x); i < p.tile && KEYS;
				     i += static_cast<int>(blockDim.x)) {
					const bool inside = begin + i < N;
					of_column[i] = make_float2(inside ? lse[begin + i] * MU_LOG2_E : 0,
					                           inside ? delta[begin + i] : 0);
				}
				wait_for_pieces();
				__syncthreads();
			}
			for (int first = begin; first < end && active; first += CHUNK) {
				float s[2][4], d_p[2][4];
				multiply_rows<E, KB>(s[0], s[1], x1, y1 + (first - begin) * S, l);
				multiply_rows<E, KB>(d_p[0], d_p[1], x2, y2 + (first - begin) * S, l);
#pragma unroll
				for (int n = 0; n < 2; n++)
#pragma unroll
					for (int i = 0; i < 4; i++) {
						const int row = chunk * CHUNK + l.row + i / 2 * 8,
						          column = first + n * 8 + l.column + i % 2;
						float2 of = make_float2(own_lse[i / 2], own_delta[i / 2]);
						if (KEYS)
							of = of_column[column - begin];
						float keep = 1, probability = power_of_2(fmaf(s[n][i], scale2, -of.x));
						if (first + CHUNK > N && column >= N)
							probability = 0;
						if (DROPOUT)
							keep = mu_attention_keep(op, b, h, KEYS ? column : row,
							                         KEYS ? row : column);
						s[n][i] = probability * keep;
						d_p[n][i] = probability * (keep * d_p[n][i] - of.y);
					}
				add_weighted<E, KB>(sum1, d_p[0], d_p[1], y1 + (first - begin) * S, l);
				if constexpr (KEYS)
					add_weighted<E, KB>(sum2, s[0], s[1], y2 + (first - begin) * S, l);
			}
		}
		if (!active)
			continue;
		E *d_qkv = static_cast<E *>(op.d_qkv);
		const float factor[2] = {scale, scale}, one[2] = {1, 1};
		store_rows<E, KB>(mu_part_of(op, d_qkv, b, h, KEYS ? MU_K : MU_Q), sum1, factor, chunk * CHUNK, l, op);
		if constexpr (KEYS)
			store_rows<E, KB>(mu_part_of(op, d_qkv, b, h, MU_V), sum2, one, chunk * CHUNK, l, op);
	}
}

static int divide_up(int a, int b)
{
	return (a + b - 1) / b;
}

/* Bytes of one column: its rows in both arrays, lse and delta. */
static size_t column_bytes(const mu_attention *op)
{
	const size_t blocks = (op->head_size + 15) / 16;
	return 2 * (blocks * 16 + PAD) * 2 + sizeof(float2);
}

/* As many rounds per block as cover a head of ViT length, where that still fills the card: the tile is then loaded once.
 * Each round takes `most` warps. */
static split split_head(const mu_ops_context *c, const mu_attention *op, int most)
{
	split p;
	const size_t most_bytes = c->device->shared_bytes < TILE_BYTES ? c->device->shared_bytes : TILE_BYTES;
	const int most_chunks = static_cast<int>(most_bytes / (CHUNK * column_bytes(op)));
	p.chunks = divide_up(static_cast<int>(op->tokens), CHUNK);
	p.tiles = divide_up(p.chunks, most_chunks);
	p.tile = divide_up(p.chunks, p.tiles) * CHUNK;
	const bool many = op->images * op->heads >= static_cast<size_t>(4 * c->device->multiprocessors);
	const int most_rounds = p.tiles == 1 && many ? divide_up(MOST_BLOCK_CHUNKS, most) : 1;
	p.per_block = divide_up(p.chunks, divide_up(p.chunks, most_rounds * most));
	p.warps = divide_up(p.per_block, divide_up(p.per_block, most));
	return p;
}

static dim3 grid_of(const mu_attention *op, const split &p)
{
	return dim3(static_cast<unsigned>(op->images * op->heads),
	            static_cast<unsigned>(divide_up(p.chunks, p.per_block)));
}

template <typename E, int KB, bool DROPOUT> static void launch_forward(mu_ops_context *c, const mu_attention *op)
{
	const split p = split_head(c, op, most_warps(FORWARD, KB));
	const size_t bytes = p.tile * column_bytes(op);
	mu_allow_shared(reinterpret_cast<const void *>(attention_forward_tensor_kernel<E, KB, DROPOUT>), bytes);
	attention_forward_tensor_kernel<E, KB, DROPOUT>
	        <<<grid_of(op, p), p.warps * MU_WARP, bytes, c->stream>>>(*op, p);
}

template <typename E, int KB, role R, bool DROPOUT>
static void launch_role(mu_ops_context *c, const mu_attention *op, float *delta)
{
	const split p = split_head(c, op, most_warps(R, KB));
	const size_t bytes = p.tile * column_bytes(op);
	mu_allow_shared(reinterpret_cast<const void *>(attention_backward_tensor_kernel<E, KB, R, DROPOUT>), bytes);
	attention_backward_tensor_kernel<E, KB, R, DROPOUT>
	        <<<grid_of(op, p), p.warps * MU_WARP, bytes, c->stream>>>(*op, p, delta);
}

template <typename E, int KB> static void forward(mu_ops_context *c, const mu_attention *op)
{
	if (op->dropout.threshold)
		launch_forward<E, KB, true>(c, op);
	else
		launch_forward<E, KB, false>(c, op);
}

template <typename E, int KB> static void backward(mu_ops_context *c, const mu_attention *op, float *delta)
{
	if (op->dropout.threshold) {
		launch_role<E, KB, BY_QUERIES, true>(c, op, delta);
		launch_role<E, KB, BY_KEYS, true>(c, op, delta);
	} else {
		launch_role<E, KB, BY_QUERIES, false>(c, op, delta);
		launch_role<E, KB, BY_KEYS, false>(c, op, delta);
	}
}

/* Runs the statement with E and KB. */
#define BY_BLOCKS(op, call)                    \
	switch (((op)->head_size + 15) / 16) { \
	case 1: call(1); break;                \
	case 2: call(2); break;                \
	case 3: call(3); break;                \
	case 4: call(4); break;                \
	case 5: call(5); break;                \
	case 6: call(6); break;                \
	case 7: call(7); break;                \
	default: call(8); break;               \
	}

bool mu_attention_tensor_fits(const mu_ops_context *c, const mu_attention *op)
{
	return op->type != MU_F32 && op->head_size % 8 == 0 && op->head_size <= 128 && c->device->capability >= 80;
}

void mu_attention_tensor_forward(mu_ops_context *c, const mu_attention *op)
{
#define CALL(KB)                             \
	if (op->type == MU_BF16)             \
		forward<mu_bf16, KB>(c, op); \
	else                                 \
		forward<mu_f16, KB>(c, op)
	BY_BLOCKS(op, CALL)
#undef CALL
}

void mu_attention_tensor_backward(mu_ops_context *c, const mu_attention *op, float *delta)
{
#define CALL(KB)                                     \
	if (op->type == MU_BF16)                     \
		backward<mu_bf16, KB>(c, op, delta); \
	else                                         \
		backward<mu_f16, KB>(c, op, delta)
	BY_BLOCKS(op, CALL)
#undef CALL
}
