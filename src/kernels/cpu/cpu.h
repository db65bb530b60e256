/* What the files of the CPU table share: the context, the thread team, and kernels compiled for several processors.
 *
 * An operation is a small struct that says what is to be done (the work), a kernel that does parts [begin, end) of it,
 * and a call of mu_cpu_run that spreads the parts over the team:
 *
 *     MU_CPU_KERNEL(scale_rows)
 *     {
 *             const struct scale *s = work;
 *             for (size_t row = begin; row < end; row++) ...
 *     }
 *     mu_cpu_run(context, scale_rows, &(struct scale){...}, rows);
 *
 * The kernel is compiled once per processor level (baseline, AVX2, AVX-512) from the same C; the context picks one.
 * A plain table of functions instead of target_clones, because that needs ifunc, which sanitizers, musl and older
 * clang do not have, and because a test can force each level.
 *
 * Determinism: parts are cut by shape, never by time, and a sum over rows goes through partial sums per chunk of
 * MU_CPU_CHUNK rows that are then added in double in their order. So results do not depend on the number of threads
 * at all, except where oneDNN cuts a product differently.
 * SPDX-License-Identifier: MIT */
#ifndef MU_KERNELS_CPU_CPU_H
#define MU_KERNELS_CPU_CPU_H

#include <stdbool.h>
#include <stddef.h>

#include "base/fail.h"
#include "kernels/ops.h"

/* Rows whose float sum is one chain. 32: the rounding of a chain stays near one unit in the last place, and writing
 * the partial sums costs 1/32 of reading the rows. */
#define MU_CPU_CHUNK 32

typedef enum mu_cpu_level { MU_CPU_BASE, MU_CPU_AVX2, MU_CPU_AVX512, MU_CPU_LEVELS } mu_cpu_level;

typedef struct mu_dnnl mu_dnnl;

struct mu_ops_context {
	int threads;
	mu_cpu_level level;
	mu_dnnl *dnnl; /* matrix products prepared per shape */
};

/* Parts [begin, end) of the work, as member `thread` of the team. */
typedef void mu_cpu_kernel(const void *work, size_t begin, size_t end, size_t thread);

/* Runs all parts in contiguous shares. Everything is done on return. */
void mu_cpu_run(const mu_ops_context *c, mu_cpu_kernel *const kernel[MU_CPU_LEVELS], const void *work, size_t parts);

/* The best level of this processor, at most `limit`. */
mu_cpu_level mu_cpu_detect(mu_cpu_level limit);

static inline size_t mu_cpu_chunks(size_t rows)
{
	return (rows + MU_CPU_CHUNK - 1) / MU_CPU_CHUNK;
}

/* to[j] += sum over chunks of partial[chunk * width + j], in double and in order. */
void mu_cpu_add_partials(const mu_ops_context *c, float *to, const float *partial, size_t chunks, size_t width);

#define MU_CPU_INLINE static inline __attribute__((always_inline))

#if defined(__x86_64__) && defined(__GNUC__)
#define MU_CPU_FOR_AVX2 __attribute__((target("avx,avx2,fma")))
#define MU_CPU_FOR_AVX512 __attribute__((target("avx,avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")))
#else
#define MU_CPU_FOR_AVX2
#define MU_CPU_FOR_AVX512
#endif

#define MU_CPU_VARIANT(name, suffix, level, attribute)                                                   \
	attribute static void name##_##suffix(const void *work, size_t begin, size_t end, size_t thread) \
	{                                                                                                \
		name##_body(work, begin, end, thread, level);                                            \
	}

/* `level` is a constant in the body, for the rare kernel that wants other tile sizes. */
#define MU_CPU_KERNEL(name)                                                                                            \
	MU_CPU_INLINE void name##_body(const void *work, size_t begin, size_t end, size_t thread, mu_cpu_level level); \
	MU_CPU_VARIANT(name, base, MU_CPU_BASE, )                                                                      \
	MU_CPU_VARIANT(name, avx2, MU_CPU_AVX2, MU_CPU_FOR_AVX2)                                                       \
	MU_CPU_VARIANT(name, avx512, MU_CPU_AVX512, MU_CPU_FOR_AVX512)                                                 \
	static mu_cpu_kernel *const name[MU_CPU_LEVELS] = {name##_base, name##_avx2, name##_avx512};                   \
	MU_CPU_INLINE void name##_body(const void *work, size_t begin, size_t end,                                     \
	                               __attribute__((unused)) size_t thread,                                          \
	                               __attribute__((unused)) mu_cpu_level level)

/* The rows, one file per operation. */
#define MU_CPU_ROW(name) mural_status mu_cpu_##name(mu_ops_context *, const mu_##name *, mural_error *)
#define MU_CPU_PAIR(name)                                                                          \
	mural_status mu_cpu_##name##_forward(mu_ops_context *, const mu_##name *, mural_error *);  \
	mural_status mu_cpu_##name##_backward(mu_ops_context *, const mu_##name *, mural_error *); \
	size_t mu_cpu_##name##_workspace(mu_ops_context *, const mu_##name *)
MU_CPU_ROW(patchify);
MU_CPU_PAIR(embed);
MU_CPU_PAIR(layernorm);
MU_CPU_PAIR(linear);
MU_CPU_PAIR(attention);
MU_CPU_ROW(dropout);
MU_CPU_ROW(drop_path);
mural_status mu_cpu_pool_forward(mu_ops_context *, const mu_pool *, mural_error *);
mural_status mu_cpu_pool_backward(mu_ops_context *, const mu_pool *, mural_error *);
MU_CPU_ROW(cross_entropy);
MU_CPU_ROW(adamw);
MU_CPU_ROW(sum_squares);
size_t mu_cpu_sum_squares_workspace(mu_ops_context *, const mu_sum_squares *);
MU_CPU_ROW(cast);

#endif
