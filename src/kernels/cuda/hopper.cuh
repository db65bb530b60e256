/* Matrix products of a warp group on Hopper (wgmma, compute capability 9.0a), and tiles that the copy engine moves: four
 * warps multiply 64 rows at a time, from shared memory into registers.
 *
 * Arrays of 16-bit numbers lie in shared memory in one of two ways, and either serves as operand in both directions: with its
 * rows as rows of the operand ("along"), or with its rows as the summed dimension ("across", what wgmma calls transposed).
 *
 *     rows      64 elements each, as the copy engine leaves them with its 128-byte swizzle: piece c (16 bytes) of row r is
 *               at r * 128 + (c ^ r % 8) * 16. The array begins at a multiple of 1024 bytes.
 *     columns   piece c of row r at c * stride + r * 16: for what registers write, any number of pieces
 *
 * In both, eight neighbouring rows of a piece are what wgmma calls a core matrix. All layouts ran at the same 890 to 950
 * TFLOP/s on an H200.
 *
 * Registers of an accumulator [64, N] and of an operand a [64, 16] are as with mma.m16n8k16: warp w has rows 16 w to
 * 16 w + 15; lane l of it rows l / 4 and l / 4 + 8, columns l % 4 * 2 and the next of every eight.
 *
 * Compiled for other cards these are empty; nothing calls them there. SPDX-License-Identifier: MIT */
#ifndef MU_KERNELS_CUDA_HOPPER_CUH
#define MU_KERNELS_CUDA_HOPPER_CUH

#include <cuda.h>

#include "kernels/cuda/attention_lanes.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define MU_HOPPER 1
#endif

/* An array as operand: what wgmma wants to know, in pieces of 16 bytes. Kept small and the same for all threads of a warp
 * group, so that a product's descriptor costs an addition in a uniform register. */
struct mu_operand {
	uint32_t low, high; /* of the descriptor of piece (0, 0) */
	uint32_t row, column; /* pieces from one to the next */

	__device__ __forceinline__ uint64_t at(uint32_t r, uint32_t c) const
	{
		return static_cast<uint64_t>(high) << 32 | (low + r * row + c * column);
	}
};

#define MU_SWIZZLE_128 (1u << 30) /* in the descriptor's upper half */

/* An array in columns, across. The descriptor's two steps: from one group of eight rows to the next, and from piece to
 * piece. */
static __device__ __forceinline__ mu_operand mu_columns_operand(uint32_t at, uint32_t stride)
{
	return {at >> 4 | 128 >> 4 << 16, stride >> 4, 1, stride >> 4};
}
/* An array in rows: both directions step from one group of eight rows to the next. Rows in multiples of eight. */
static __device__ __forceinline__ mu_operand mu_rows_operand(uint32_t at)
{
	return {at >> 4 | 1 << 16, 1024 >> 4 | MU_SWIZZLE_128, 8, 1};
}

/* The same in every thread of a warp, and known to be. */
static __device__ __forceinline__ int mu_uniform(int x)
{
	return __shfl_sync(0xffffffffu, x, 0);
}

/* Before the first product of a batch, and whenever its registers were written by others. */
static __device__ __forceinline__ void mu_group_begin(void)
{
#ifdef MU_HOPPER
	asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}
static __device__ __forceinline__ void mu_group_commit(void)
{
#ifdef MU_HOPPER
	asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}
template <int BATCHES> static __device__ __forceinline__ void mu_group_wait(void)
{
#ifdef MU_HOPPER
	asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(BATCHES) : "memory");
#endif
}
/* Keeps the compiler from using registers before the wait above this line. */
template <int N> static __device__ __forceinline__ void mu_group_settle(float (&d)[N])
{
#pragma unroll
	for (int i = 0; i < N; i++)
		asm volatile("" : "+f"(d[i])::"memory");
}
/* What threads wrote to shared memory becomes visible to products: each writer, before the barrier. */
static __device__ __forceinline__ void mu_group_publish(void)
{
#ifdef MU_HOPPER
	asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

/* Lists of registers: %0 .. %(n - 1), and the same as operands. */
#define MU_LIST_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define MU_LIST_16 MU_LIST_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define MU_LIST_24 MU_LIST_16 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define MU_LIST_32 MU_LIST_24 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define MU_LIST_40 MU_LIST_32 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define MU_LIST_52 MU_LIST_40 ", %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51"
#define MU_OUT_4(d, i) "+f"((d)[i]), "+f"((d)[i + 1]), "+f"((d)[i + 2]), "+f"((d)[i + 3])
#define MU_OUT_8(d, i) MU_OUT_4(d, i), MU_OUT_4(d, i + 4)
#define MU_OUTS_8(d) MU_OUT_8(d, 0)
#define MU_OUTS_16(d) MU_OUTS_8(d), MU_OUT_8(d, 8)
#define MU_OUTS_24(d) MU_OUTS_16(d), MU_OUT_8(d, 16)
#define MU_OUTS_32(d) MU_OUTS_24(d), MU_OUT_8(d, 24)
#define MU_OUTS_40(d) MU_OUTS_32(d), MU_OUT_8(d, 32)
#define MU_OUTS_52(d) MU_OUTS_40(d), MU_OUT_8(d, 40), MU_OUT_4(d, 48)

/* d [64, N] = (add ? d : 0) + a [64, 16] b [N, 16]^T.
 * multiply_shared<A, B>: both operands by descriptor; A, B: 1 where the operand is taken across. multiply_held<B>: a in
 * registers. R: registers of d, N / 2. The numbers of the asm operands follow those of d. */
template <typename E, int A, int B, int R> struct mu_multiply_shared;
template <typename E, int B, int R> struct mu_multiply_held;

#ifdef MU_HOPPER
#define MU_DEFINE_SHARED(E, TYPE, R, N, DA, DB, ADD, TA, TB)                                                         \
	template <int A, int B> struct mu_multiply_shared<E, A, B, R> {                                              \
		static __device__ __forceinline__ void run(float (&d)[R], uint64_t a, uint64_t b, int add)           \
		{                                                                                                    \
			asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " ADD ", 0;\n"                                \
			             "wgmma.mma_async.sync.aligned.m64n" N "k16.f32." TYPE "." TYPE " {" MU_LIST_##R \
			             "}, " DA ", " DB ", p, 1, 1, " TA ", " TB ";\n}\n"                              \
			             : MU_OUTS_##R(d)                                                                \
			             : "l"(a), "l"(b), "r"(add), "n"(A), "n"(B));                                    \
		}                                                                                                    \
	};
#define MU_DEFINE_HELD(E, TYPE, R, N, A0, A1, A2, A3, DB, ADD, TB)                                                     \
	template <int B> struct mu_multiply_held<E, B, R> {                                                            \
		static __device__ __forceinline__ void run(float (&d)[R], const uint32_t (&a)[4], uint64_t b, int add) \
		{                                                                                                      \
			asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " ADD ", 0;\n"                                  \
			             "wgmma.mma_async.sync.aligned.m64n" N "k16.f32." TYPE "." TYPE " {" MU_LIST_##R   \
			             "}, {" A0 ", " A1 ", " A2 ", " A3 "}, " DB ", p, 1, 1, " TB ";\n}\n"              \
			             : MU_OUTS_##R(d)                                                                  \
			             : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add), "n"(B));          \
		}                                                                                                      \
	};
#define MU_DEFINE_PRODUCTS(E, TYPE)                                                        \
	MU_DEFINE_SHARED(E, TYPE, 8, "16", "%8", "%9", "%10", "%11", "%12")                \
	MU_DEFINE_HELD(E, TYPE, 8, "16", "%8", "%9", "%10", "%11", "%12", "%13", "%14")    \
	MU_DEFINE_SHARED(E, TYPE, 16, "32", "%16", "%17", "%18", "%19", "%20")             \
	MU_DEFINE_HELD(E, TYPE, 16, "32", "%16", "%17", "%18", "%19", "%20", "%21", "%22") \
	MU_DEFINE_SHARED(E, TYPE, 24, "48", "%24", "%25", "%26", "%27", "%28")             \
	MU_DEFINE_HELD(E, TYPE, 24, "48", "%24", "%25", "%26", "%27", "%28", "%29", "%30") \
	MU_DEFINE_SHARED(E, TYPE, 32, "64", "%32", "%33", "%34", "%35", "%36")             \
	MU_DEFINE_HELD(E, TYPE, 32, "64", "%32", "%33", "%34", "%35", "%36", "%37", "%38") \
	MU_DEFINE_SHARED(E, TYPE, 40, "80", "%40", "%41", "%42", "%43", "%44")             \
	MU_DEFINE_HELD(E, TYPE, 40, "80", "%40", "%41", "%42", "%43", "%44", "%45", "%46") \
	MU_DEFINE_SHARED(E, TYPE, 52, "104", "%52", "%53", "%54", "%55", "%56")
MU_DEFINE_PRODUCTS(mu_bf16, "bf16")
MU_DEFINE_PRODUCTS(mu_f16, "f16")
#else
template <typename E, int A, int B, int R> struct mu_multiply_shared {
	static __device__ __forceinline__ void run(float (&)[R], uint64_t, uint64_t, int)
	{
	}
};
template <typename E, int B, int R> struct mu_multiply_held {
	static __device__ __forceinline__ void run(float (&)[R], const uint32_t (&)[4], uint64_t, int)
	{
	}
};
#endif

/* A barrier in shared memory that counts bytes of the copy engine. One thread makes it and expects bytes. */
static __device__ __forceinline__ void mu_bytes_init(uint32_t barrier)
{
#ifdef MU_HOPPER
	asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\nfence.mbarrier_init.release.cluster;" ::"r"(barrier)
	             : "memory");
#endif
}
static __device__ __forceinline__ void mu_bytes_expect(uint32_t barrier, uint32_t bytes)
{
#ifdef MU_HOPPER
	asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
#endif
}
static __device__ __forceinline__ void mu_bytes_wait(uint32_t barrier, uint32_t parity)
{
#ifdef MU_HOPPER
	uint32_t done;
	do {
		asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
		             "selp.u32 %0, 1, 0, p;\n}"
		             : "=r"(done)
		             : "r"(barrier), "r"(parity)
		             : "memory");
	} while (!done);
#endif
}

/* Rows of one head to shared memory and back; what lies past the last token is read as 0 and not written. */
static __device__ __forceinline__ void mu_rows_load(uint32_t to, const CUtensorMap *map, int token, int head, int image,
                                                    uint32_t barrier)
{
#ifdef MU_HOPPER
	asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
	             "[%1, {%2, %3, %4, %5}], [%6];" ::"r"(to),
	             "l"(map), "r"(0), "r"(token), "r"(head), "r"(image), "r"(barrier)
	             : "memory");
#endif
}
static __device__ __forceinline__ void mu_rows_store(const CUtensorMap *map, uint32_t from, int token, int head,
                                                     int image)
{
#ifdef MU_HOPPER
	asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%1, %2, %3, %4}], [%5];\n"
	             "cp.async.bulk.commit_group;" ::"l"(map),
	             "r"(0), "r"(token), "r"(head), "r"(image), "r"(from)
	             : "memory");
#endif
}
/* Until what was stored has been read from shared memory. */
static __device__ __forceinline__ void mu_rows_stored(void)
{
#ifdef MU_HOPPER
	asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
#endif
}

/* Barrier of one warp group among several in a block. */
static __device__ __forceinline__ void mu_group_sync(int group)
{
	asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
}

#endif
