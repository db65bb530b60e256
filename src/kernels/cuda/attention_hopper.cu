/* Attention on Hopper's warp groups (hopper.cuh), for bf16 and f16 without dropout: heads of 193 to 208 tokens of 64,
 * which is every ViT of head size 64 at 224 with patches of 16. The copy engine moves rows both ways.
 *
 * Forward: a warp group has a head to itself, keys and values in shared memory, and takes 64 queries at a time. All their
 * scores [64, 208] are in its registers, so the softmax is plain: no running maximum.
 *
 * Backward: a block has a head, and warp group w of it keys 64 w to 64 w + 63, whose d_k and d_v are its registers. It walks
 * over the queries: s^T = k q^T and d_p^T = v d_o^T come out with keys as rows, so p^T and d_s^T are operands of d_v += p^T d_o
 * and d_k += d_s^T q as they stand. d_s also goes to shared memory; when all groups are through, group w computes
 * d_q = d_s k for queries 64 w and on. Five products and one exponential per score, every input read once, no atomics,
 * the same bits every time.
 *
 * One H200, ViT-B/16, bf16, 256 images: forward 124 us, backward 395 us, where cuDNN's best takes 806 us for both and
 * attention_tensor.cu 885 us. What made the difference, in this order: the copy engine instead of 16 bytes per thread
 * (199 and 605 us: three quarters of the time were waits for loads and stores), and operands described by numbers that
 * the compiler knows to be the same in a warp group (219 and 656 us: it moved them to uniform registers in front of
 * every product). Blocks of backward have a multiprocessor to themselves, so loads and stores are still in the open.
 *
 * Rows of a group past the keys that exist read what lies behind in shared memory: rows of a product do not touch each
 * other, and those are dropped. SPDX-License-Identifier: MIT */
#include <math_constants.h>

#include "kernels/cuda/hopper.cuh"

#define GROUP 128 /* threads of a warp group */
#define ROWS 64 /* of its products */
#define HEAD 64
#define MOST_TOKENS 208 /* all loops have their number of steps, which products in flight need */
#define LEAST_TOKENS 192
#define MOST_GROUPS 4
#define ROW_BYTES (HEAD * 2)
#define SUMS (HEAD / 2) /* registers of an accumulator [64, HEAD] */

/* Where this lane's part of an accumulator lies: rows row and row + 8 of the group's 64, columns column and column + 1. */
struct lane {
	int row, column;
	int warp; /* rows 16 warp .. 16 warp + 15: the same for the whole warp, which the compiler should know */
};

[[maybe_unused]] static __device__ __forceinline__ lane find_lane(void)
{
	const int l = static_cast<int>(threadIdx.x) % MU_WARP;
	const int warp = mu_uniform(static_cast<int>(threadIdx.x) % GROUP / MU_WARP);
	return {warp * 16 + l / 4, l % 4 * 2, warp};
}

/* Operand a of rows, made of columns 16 k .. 16 k + 15 of an accumulator. */
template <typename E, int R>
static __device__ __forceinline__ void to_operand(uint32_t (&a)[4], const float (&d)[R], int k)
{
#pragma unroll
	for (int i = 0; i < 4; i++)
		a[i] = pack_pair<E>(d[k * 8 + i * 2], d[k * 8 + i * 2 + 1]);
}

/* Sums of the group's rows times factor, to an array in rows whose row 0 is the group's first. */
template <typename E>
static __device__ __forceinline__ void put_rows(unsigned char *to, const float (&sum)[SUMS], float factor0,
                                                float factor1, const lane &l)
{
	unsigned char *at = to + l.row * ROW_BYTES + l.column * 2;
#pragma unroll
	for (int n = 0; n < HEAD / 8; n++) {
		unsigned char *piece = at + (n ^ l.row % 8) * 16; /* row + 8 has the same swizzle */
		*reinterpret_cast<uint32_t *>(piece) = pack_pair<E>(sum[4 * n] * factor0, sum[4 * n + 1] * factor0);
		*reinterpret_cast<uint32_t *>(piece + 8 * ROW_BYTES) =
		        pack_pair<E>(sum[4 * n + 2] * factor1, sum[4 * n + 3] * factor1);
	}
}

/* Scores of 16 keys a piece, as operand a. */
#define STEPS (MOST_TOKENS / 16)

/* Softmax of the lane's two rows of scores, not yet divided by its total. Packed at once: registers are scarce. */
template <typename E>
static __device__ __forceinline__ void soften(uint32_t (&p)[STEPS][4], float (&s)[MOST_TOKENS / 2], float (&largest)[2],
                                              float (&total)[2], float scale2, const lane &l, int N)
{
	constexpr int BLOCKS = MOST_TOKENS / 8;
#pragma unroll
	for (int n = LEAST_TOKENS / 8; n < BLOCKS; n++)
#pragma unroll
		for (int i = 0; i < 4; i++)
			if (n * 8 + l.column + i % 2 >= N)
				s[4 * n + i] = -CUDART_INF_F;
#pragma unroll
	for (int half = 0; half < 2; half++) {
		float most = s[2 * half], sum = 0;
#pragma unroll
		for (int n = 0; n < BLOCKS; n++)
			most = fmaxf(most, fmaxf(s[4 * n + 2 * half], s[4 * n + 2 * half + 1]));
		most = quad_max(most);
		const float offset = -most * scale2;
#pragma unroll
		for (int n = 0; n < BLOCKS; n++) {
			const float x = power_of_2(fmaf(s[4 * n + 2 * half], scale2, offset));
			const float y = power_of_2(fmaf(s[4 * n + 2 * half + 1], scale2, offset));
			sum += x + y;
			p[n / 2][n % 2 * 2 + half] = pack_pair<E>(x, y);
		}
		largest[half] = most;
		total[half] = quad_sum(sum);
	}
}

/* Arrays of the copy engine: q, k, v of heads as 3 H heads; o as H. */
struct forward_maps {
	CUtensorMap whole, part; /* q, k, v: MOST_TOKENS rows at a time, ROWS rows at a time */
	CUtensorMap o; /* ROWS rows at a time */
};

/* Shared memory of forward, in bytes. */
#define FORWARD_K 0
#define FORWARD_V (MOST_TOKENS * ROW_BYTES)
#define FORWARD_Q (2 * MOST_TOKENS * ROW_BYTES)
#define FORWARD_O (FORWARD_Q + ROWS * ROW_BYTES)
#define FORWARD_BARRIERS (FORWARD_O + ROWS * ROW_BYTES)
#define FORWARD_BYTES (FORWARD_BARRIERS + 16)

template <typename E>
static __global__ void __launch_bounds__(GROUP, 3)
        attention_forward_hopper_kernel(const mu_attention op, const __grid_constant__ forward_maps maps)
{
#ifdef MU_HOPPER
	constexpr int HALF = MOST_TOKENS / 2;
	extern __shared__ __align__(1024) unsigned char shared[];
	const uint32_t begin = shared_address(shared), q_at = begin + FORWARD_Q;
	const uint32_t arrived = begin + FORWARD_BARRIERS, q_arrived = arrived + 8;
	const mu_operand q = mu_rows_operand(q_at), k = mu_rows_operand(begin + FORWARD_K);
	const mu_operand v = mu_rows_operand(begin + FORWARD_V);
	const int H = static_cast<int>(op.heads), N = static_cast<int>(op.tokens);
	const int b = static_cast<int>(blockIdx.x) / H, h = static_cast<int>(blockIdx.x) % H;
	const bool leads = threadIdx.x == 0;
	const lane l = find_lane();
	const float scale = rsqrtf(static_cast<float>(HEAD)), scale2 = scale * MU_LOG2_E;
	if (leads) {
		mu_bytes_init(arrived);
		mu_bytes_init(q_arrived);
		mu_bytes_expect(q_arrived, ROWS * ROW_BYTES);
		mu_rows_load(q_at, &maps.part, 0, h, b, q_arrived);
		mu_bytes_expect(arrived, 2 * MOST_TOKENS * ROW_BYTES);
		mu_rows_load(begin + FORWARD_K, &maps.whole, 0, H + h, b, arrived);
		mu_rows_load(begin + FORWARD_V, &maps.whole, 0, 2 * H + h, b, arrived);
	}
	__syncthreads();
	mu_bytes_wait(arrived, 0);
	uint32_t parity = 0;
	for (int first = 0; first < N; first += ROWS) {
		float s[MOST_TOKENS / 2], o[SUMS];
		float(&low)[HALF / 2] = reinterpret_cast<float(&)[HALF / 2]>(s[0]);
		float(&high)[HALF / 2] = reinterpret_cast<float(&)[HALF / 2]>(s[HALF / 2]);
		mu_bytes_wait(q_arrived, parity);
		parity ^= 1;
		mu_group_begin();
#pragma unroll
		for (int i = 0; i < HEAD / 16; i++) {
			mu_multiply_shared<E, 0, 0, HALF / 2>::run(low, q.at(0, 2 * i), k.at(0, 2 * i), i > 0);
			mu_multiply_shared<E, 0, 0, HALF / 2>::run(high, q.at(0, 2 * i), k.at(HALF, 2 * i), i > 0);
		}
		mu_group_commit();
		mu_group_wait<0>();
		mu_group_settle(s);
		if (leads)
			mu_rows_stored(); /* of the rows before */
		__syncthreads(); /* everybody is through with q, and the place of o is free */
		if (leads && first + ROWS < N) {
			mu_bytes_expect(q_arrived, ROWS * ROW_BYTES);
			mu_rows_load(q_at, &maps.part, first + ROWS, h, b, q_arrived);
		}
		float largest[2], total[2];
		uint32_t p[STEPS][4];
		soften<E>(p, s, largest, total, scale2, l, N);
		mu_group_begin();
#pragma unroll
		for (int i = 0; i < STEPS; i++)
			mu_multiply_held<E, 1, SUMS>::run(o, p[i], v.at(16 * i, 0), i > 0);
		mu_group_commit();
		float *lse = static_cast<float *>(op.lse) + (static_cast<size_t>(b) * H + h) * N;
#pragma unroll
		for (int half = 0; half < 2; half++)
			if (l.column == 0 && first + l.row + 8 * half < N)
				lse[first + l.row + 8 * half] = largest[half] * scale + logf(total[half]);
		mu_group_wait<0>();
		mu_group_settle(o);
		put_rows<E>(shared + FORWARD_O, o, 1 / total[0], 1 / total[1], l);
		mu_group_publish();
		__syncthreads();
		if (leads)
			mu_rows_store(&maps.o, begin + FORWARD_O, first, h, b);
	}
	if (leads)
		mu_rows_stored();
#endif
}

/* Arrays of the copy engine; all rows of a head at a time, but for those that are written: ROWS rows at a time. */
struct backward_maps {
	CUtensorMap qkv, o, d_o, d_qkv;
};

/* Shared memory of backward: q, k, v, d_o in rows; d_s in columns, with o in its place before; statistics. A group reads 8
 * columns of d_s, whether they exist or not. */
#define ARRAY_BYTES (MOST_TOKENS * ROW_BYTES)
#define COLUMN_BYTES (MOST_TOKENS * 16 + 16) /* not a multiple of 128: see hopper.cuh */
#define BACKWARD_D_S (4 * ARRAY_BYTES)
#define BACKWARD_STATISTICS (BACKWARD_D_S + MOST_GROUPS * 8 * COLUMN_BYTES)
#define BACKWARD_BARRIER (BACKWARD_STATISTICS + MOST_TOKENS * 8)
#define BACKWARD_BYTES (BACKWARD_BARRIER + 8)

struct backward_operands {
	mu_operand q, k, v, d_o; /* in rows: the same for both directions */
	mu_operand d_s;
};

struct key_sums {
	float d_k[SUMS], d_v[SUMS];
};

/* The group's keys, `keys` and on, and where this lane leaves d_s. */
struct own_keys {
	int keys, last; /* last: how many of the lane's warp's 16 rows exist; may be negative */
	unsigned char *d_s; /* piece of (the lane's row, queries 0 .. 7), at the lane's columns */
};

/* What the queries' columns of s^T and d_p^T need: log-sum-exp in base 2, and delta = sum of d_o o. Two threads to a row,
 * four pieces each; own_lse is the row's, read before the rows were waited for. */
template <typename E>
static __device__ __forceinline__ void find_statistics(float2 *of_query, const unsigned char *o,
                                                       const unsigned char *d_o, float own_lse, int N)
{
	const int row = static_cast<int>(threadIdx.x) / 2, half = static_cast<int>(threadIdx.x) % 2;
	float delta = 0;
	if (row >= MOST_TOKENS)
		return;
#pragma unroll
	for (int j = 0; j < 4; j++) {
		const int at = row * ROW_BYTES + ((half * 4 + j) ^ row % 8) * 16;
		const mu_pack<E, 8> x = mu_read<E, 8>(o + at, 0), y = mu_read<E, 8>(d_o + at, 0);
#pragma unroll
		for (int k = 0; k < 8; k++)
			delta = fmaf(mu_load(x.e[k]), mu_load(y.e[k]), delta);
	}
	delta += __shfl_xor_sync(0xffffffffu, delta, 1);
	if (half == 0)
		of_query[row] = row < N ? make_float2(own_lse * MU_LOG2_E, delta) : make_float2(CUDART_INF_F, 0);
}

/* Queries [first, first + 16 Q) against the group's keys. */
template <typename E, int Q>
static __device__ __forceinline__ void backward_queries(key_sums &sums, const backward_operands &m, const own_keys &own,
                                                        const float2 *of_query, int first, float scale2, const lane &l)
{
	float s[Q * 8], d_p[Q * 8];
	mu_group_begin();
#pragma unroll
	for (int i = 0; i < HEAD / 16; i++)
		mu_multiply_shared<E, 0, 0, Q * 8>::run(s, m.k.at(own.keys, 2 * i), m.q.at(first, 2 * i), i > 0);
#pragma unroll
	for (int i = 0; i < HEAD / 16; i++)
		mu_multiply_shared<E, 0, 0, Q * 8>::run(d_p, m.v.at(own.keys, 2 * i), m.d_o.at(first, 2 * i), i > 0);
	mu_group_commit();
	mu_group_wait<0>();
	mu_group_settle(s);
	mu_group_settle(d_p);
#pragma unroll
	for (int n = 0; n < 2 * Q; n++) {
		const float4 of = *reinterpret_cast<const float4 *>(of_query + first + n * 8 + l.column);
#pragma unroll
		for (int i = 4 * n; i < 4 * n + 4; i++) {
			s[i] = power_of_2(fmaf(s[i], scale2, i % 2 ? -of.z : -of.x));
			d_p[i] = s[i] * (d_p[i] - (i % 2 ? of.w : of.y));
		}
	}
	if (own.last < 16)
#pragma unroll
		for (int i = 0; i < Q * 8; i++)
			if (l.row % 16 + i / 2 % 2 * 8 >= own.last)
				s[i] = d_p[i] = 0;
	uint32_t p[Q][4], d_s[Q][4];
#pragma unroll
	for (int j = 0; j < Q; j++) {
		to_operand<E>(p[j], s, j);
		to_operand<E>(d_s[j], d_p, j);
	}
	mu_group_begin();
#pragma unroll
	for (int j = 0; j < Q; j++) {
		mu_multiply_held<E, 1, SUMS>::run(sums.d_v, p[j], m.d_o.at(first + 16 * j, 0), 1);
		mu_multiply_held<E, 1, SUMS>::run(sums.d_k, d_s[j], m.q.at(first + 16 * j, 0), 1);
	}
	mu_group_commit();
	if (own.last > 0) {
		unsigned char *to = own.d_s + first / 8 * COLUMN_BYTES;
#pragma unroll
		for (int j = 0; j < Q; j++)
#pragma unroll
			for (int i = 0; i < 4; i++)
				*reinterpret_cast<uint32_t *>(to + (2 * j + i / 2) * COLUMN_BYTES + i % 2 * 128) =
				        d_s[j][i];
	}
	mu_group_wait<0>();
	mu_group_settle(sums.d_k);
	mu_group_settle(sums.d_v);
}

template <typename E>
static __global__ void __launch_bounds__(MOST_GROUPS *GROUP, 1)
        attention_backward_hopper_kernel(const mu_attention op, const __grid_constant__ backward_maps maps)
{
#ifdef MU_HOPPER
	extern __shared__ __align__(1024) unsigned char shared[];
	const uint32_t begin = shared_address(shared), q_at = begin, k_at = begin + ARRAY_BYTES,
	               v_at = begin + 2 * ARRAY_BYTES, d_o_at = begin + 3 * ARRAY_BYTES, d_s_at = begin + BACKWARD_D_S;
	const uint32_t arrived = begin + BACKWARD_BARRIER;
	unsigned char *d_s = shared + BACKWARD_D_S;
	float2 *of_query = reinterpret_cast<float2 *>(shared + BACKWARD_STATISTICS);
	const backward_operands m = {mu_rows_operand(q_at), mu_rows_operand(k_at), mu_rows_operand(v_at),
	                             mu_rows_operand(d_o_at), mu_columns_operand(d_s_at, COLUMN_BYTES)};
	const int H = static_cast<int>(op.heads), N = static_cast<int>(op.tokens);
	const int b = static_cast<int>(blockIdx.x) / H, h = static_cast<int>(blockIdx.x) % H;
	const int group = mu_uniform(static_cast<int>(threadIdx.x) / GROUP), keys = group * ROWS;
	const lane l = find_lane();
	const own_keys own = {keys, N - keys - l.warp * 16, d_s + (keys + l.row) * 16 + l.column * 2};
	const float scale = rsqrtf(static_cast<float>(HEAD)), scale2 = scale * MU_LOG2_E;
	if (threadIdx.x == 0) {
		mu_bytes_init(arrived);
		mu_bytes_expect(arrived, 5 * ARRAY_BYTES);
		mu_rows_load(d_s_at, &maps.o, 0, h, b, arrived);
		mu_rows_load(d_o_at, &maps.d_o, 0, h, b, arrived);
		mu_rows_load(q_at, &maps.qkv, 0, h, b, arrived);
		mu_rows_load(k_at, &maps.qkv, 0, H + h, b, arrived);
		mu_rows_load(v_at, &maps.qkv, 0, 2 * H + h, b, arrived);
	}
	const int own_row = static_cast<int>(threadIdx.x) / 2;
	const float own_lse =
	        own_row < N ? static_cast<const float *>(op.lse)[(static_cast<size_t>(b) * H + h) * N + own_row] : 0;
	__syncthreads();
	mu_bytes_wait(arrived, 0);
	find_statistics<E>(of_query, d_s, shared + 3 * ARRAY_BYTES, own_lse, N);
	__syncthreads();
	key_sums sums;
#pragma unroll
	for (int i = 0; i < SUMS; i++)
		sums.d_k[i] = sums.d_v[i] = 0;
#pragma unroll 1
	for (int first = 0; first < LEAST_TOKENS; first += 32)
		backward_queries<E, 2>(sums, m, own, of_query, first, scale2, l);
	backward_queries<E, 1>(sums, m, own, of_query, LEAST_TOKENS, scale2, l);
	mu_group_publish();
	__syncthreads();
	/* d_k, d_v and d_q leave through the places of q, v and d_o, which nobody reads any more. */
	const uint32_t place = keys * ROW_BYTES;
	const bool exists = keys + l.warp * 16 < MOST_TOKENS, leads = threadIdx.x % GROUP == 0;
	if (exists) {
		put_rows<E>(shared + place, sums.d_k, scale, scale, l);
		put_rows<E>(shared + 2 * ARRAY_BYTES + place, sums.d_v, 1, 1, l);
	}
	mu_group_publish();
	mu_group_sync(group);
	if (leads) {
		mu_rows_store(&maps.d_qkv, q_at + place, keys, H + h, b);
		mu_rows_store(&maps.d_qkv, v_at + place, keys, 2 * H + h, b);
	}
	float d_q[SUMS];
	mu_group_begin();
#pragma unroll
	for (int i = 0; i < MOST_TOKENS; i += 16)
		mu_multiply_shared<E, 1, 1, SUMS>::run(d_q, m.d_s.at(i, keys / 8), m.k.at(i, 0), i > 0);
	mu_group_commit();
	mu_group_wait<0>();
	mu_group_settle(d_q);
	if (exists)
		put_rows<E>(shared + 3 * ARRAY_BYTES + place, d_q, scale, scale, l);
	mu_group_publish();
	mu_group_sync(group);
	if (leads) {
		mu_rows_store(&maps.d_qkv, d_o_at + place, keys, h, b);
		mu_rows_stored();
	}
#endif
}

/* Where the driver makes descriptions of arrays; NULL where it cannot. */
typedef CUresult (*encode_function)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                                    const cuuint64_t *, const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave,
                                    CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

static encode_function find_encode(void)
{
	void *found = nullptr;
#if CUDART_VERSION >= 12050
	cudaDriverEntryPointQueryResult result;
	if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result) !=
	            cudaSuccess ||
	    result != cudaDriverEntryPointSuccess)
		found = nullptr;
#endif
	return reinterpret_cast<encode_function>(found);
}

static encode_function encode(void)
{
	static const encode_function found = find_encode();
	return found;
}

/* array: [B, N, heads, HEAD], `rows` tokens of one head at a time. */
static bool describe(CUtensorMap *map, const mu_attention *op, const void *array, size_t heads, int rows)
{
	const cuuint64_t sides[] = {HEAD, op->tokens, heads, op->images};
	const cuuint64_t strides[] = {heads * ROW_BYTES, ROW_BYTES, op->tokens * heads * ROW_BYTES};
	const cuuint32_t box[] = {HEAD, static_cast<cuuint32_t>(rows), 1, 1}, steps[] = {1, 1, 1, 1};
	return encode()(map, op->type == MU_BF16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
	                4, const_cast<void *>(array), sides, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
	                CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
	                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

bool mu_attention_hopper_fits(const mu_ops_context *c, const mu_attention *op)
{
	return c->device->capability == 90 && op->type != MU_F32 && op->dropout.threshold == 0 &&
	       op->head_size == HEAD && op->tokens > LEAST_TOKENS && op->tokens <= MOST_TOKENS && encode();
}

mural_status mu_attention_hopper_forward(mu_ops_context *c, const mu_attention *op, mural_error *err)
{
	const auto kernel = op->type == MU_BF16 ? attention_forward_hopper_kernel<mu_bf16>
	                                        : attention_forward_hopper_kernel<mu_f16>;
	forward_maps maps;
	if (!describe(&maps.whole, op, op->qkv, 3 * op->heads, MOST_TOKENS) ||
	    !describe(&maps.part, op, op->qkv, 3 * op->heads, ROWS) || !describe(&maps.o, op, op->o, op->heads, ROWS))
		return mu_bug(err, "the driver refused the arrays of attention");
	mu_allow_shared(reinterpret_cast<const void *>(kernel), FORWARD_BYTES);
	kernel<<<static_cast<unsigned>(op->images * op->heads), GROUP, FORWARD_BYTES, c->stream>>>(*op, maps);
	return MURAL_OK;
}

mural_status mu_attention_hopper_backward(mu_ops_context *c, const mu_attention *op, mural_error *err)
{
	const auto kernel = op->type == MU_BF16 ? attention_backward_hopper_kernel<mu_bf16>
	                                        : attention_backward_hopper_kernel<mu_f16>;
	backward_maps maps;
	if (!describe(&maps.qkv, op, op->qkv, 3 * op->heads, MOST_TOKENS) ||
	    !describe(&maps.o, op, op->o, op->heads, MOST_TOKENS) ||
	    !describe(&maps.d_o, op, op->d_o, op->heads, MOST_TOKENS) ||
	    !describe(&maps.d_qkv, op, op->d_qkv, 3 * op->heads, ROWS))
		return mu_bug(err, "the driver refused the arrays of attention");
	mu_allow_shared(reinterpret_cast<const void *>(kernel), BACKWARD_BYTES);
	kernel<<<static_cast<unsigned>(op->images * op->heads), MOST_GROUPS * GROUP, BACKWARD_BYTES, c->stream>>>(*op,
	                                                                                                          maps);
	return MURAL_OK;
}
