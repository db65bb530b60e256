/* What the files of the CPU table share: the context, the thread team, and how one source serves several
 * processors.
 *
 * An operation is a small struct that says what is to be done (the work), a kernel that does parts [begin, end) of
 * it, and a call of mu_cpu_run that spreads the parts over the team:
 *
 *     MU_CPU_KERNEL(scale_rows)
 *     {
 *             const struct scale *s = work;
 *             for (size_t row = begin; row < end; row++) ...
 *     }
 *     mu_cpu_run(context, scale_rows, &(struct scale){...}, rows);
 *
 * Variants: every file of an operation, and rows.c, is compiled once per processor level (baseline, AVX2, AVX-512)
 * and element type (fp32, bf16, fp16; real.h), with the compiler's flags for the level, MU_CPU_LEVEL and perhaps
 * MU_CPU_BF16 or MU_CPU_F16 set; names that leave the file get both appended here. table.c picks the rows at run time, and a test
 * can force each level. Two other ways were weighed:
 * target_clones needs ifunc, which sanitizers, musl and clang 14 lack; one body inlined into functions with target
 * attributes leaves 64-byte vectors in memory where AVX-512 is off (attention ten times slower with AVX2).
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
#include "kernels/cpu/dnnl.h"
#include "kernels/ops.h"

/* Rows whose float sum is one chain. 32: the rounding of a chain stays near one unit in the last place, and writing
 * the partial sums costs 1/32 of reading the rows. */
#define MU_CPU_CHUNK 32

typedef enum mu_cpu_level { MU_CPU_BASE, MU_CPU_AVX2, MU_CPU_AVX512, MU_CPU_LEVELS } mu_cpu_level;

struct mu_ops_context {
	int threads;
	mu_cpu_level level;
	bool bf16_products; /* through oneDNN as they are; else widened to fp32 (product.c) */
	mu_dnnl *dnnl; /* matrix products prepared per shape */
};

/* Parts [begin, end) of the work, as member `thread` of the team. */
typedef void mu_cpu_kernel(const void *work, size_t begin, size_t end, size_t thread);

#define MU_CPU_KERNEL(name) \
	static void name(const void *work, size_t begin, size_t end, __attribute__((unused)) size_t thread)

#define MU_CPU_INLINE static inline __attribute__((always_inline))

/* Runs all parts in contiguous shares. Everything is done on return. */
void mu_cpu_run(const mu_ops_context *c, mu_cpu_kernel *kernel, const void *work, size_t parts);

static inline size_t mu_cpu_chunks(size_t rows)
{
	return (rows + MU_CPU_CHUNK - 1) / MU_CPU_CHUNK;
}

/* Rows of each piece but the last, when `rows` are cut into equal pieces of about `about` rows. */
static inline size_t mu_cpu_piece(size_t rows, size_t about)
{
	const size_t pieces = (rows + about / 2) / about;
	return pieces > 1 ? (rows + pieces - 1) / pieces : rows;
}

/* The best level of this processor, at most `limit`. */
mu_cpu_level mu_cpu_detect(mu_cpu_level limit);

/* The rows of one variant; only the rows of the struct are filled. */
extern const mu_ops mu_cpu_rows_base_f32, mu_cpu_rows_avx2_f32, mu_cpu_rows_avx512_f32;
extern const mu_ops mu_cpu_rows_base_bf16, mu_cpu_rows_avx2_bf16, mu_cpu_rows_avx512_bf16;
extern const mu_ops mu_cpu_rows_base_f16, mu_cpu_rows_avx2_f16, mu_cpu_rows_avx512_f16;

#ifndef MU_CPU_LEVEL
#define MU_CPU_LEVEL base
#endif
#if defined(MU_CPU_BF16)
#define MU_CPU_TYPE bf16
#elif defined(MU_CPU_F16)
#define MU_CPU_TYPE f16
#else
#define MU_CPU_TYPE f32
#endif
#define MU_CPU_PASTE(name, level, type) name##_##level##_##type
#define MU_CPU_EXPAND(name, level, type) MU_CPU_PASTE(name, level, type)
#define MU_CPU_VARIANT(name) MU_CPU_EXPAND(name, MU_CPU_LEVEL, MU_CPU_TYPE)

/* Names that leave the files of a variant. */
#define mu_cpu_rows MU_CPU_VARIANT(mu_cpu_rows)
#define mu_cpu_add_partials MU_CPU_VARIANT(mu_cpu_add_partials)
#define mu_cpu_product MU_CPU_VARIANT(mu_cpu_product)
#define mu_cpu_product_workspace MU_CPU_VARIANT(mu_cpu_product_workspace)
#define mu_cpu_patchify MU_CPU_VARIANT(mu_cpu_patchify)
#define mu_cpu_embed_forward MU_CPU_VARIANT(mu_cpu_embed_forward)
#define mu_cpu_embed_backward MU_CPU_VARIANT(mu_cpu_embed_backward)
#define mu_cpu_embed_workspace MU_CPU_VARIANT(mu_cpu_embed_workspace)
#define mu_cpu_layernorm_forward MU_CPU_VARIANT(mu_cpu_layernorm_forward)
#define mu_cpu_layernorm_backward MU_CPU_VARIANT(mu_cpu_layernorm_backward)
#define mu_cpu_layernorm_workspace MU_CPU_VARIANT(mu_cpu_layernorm_workspace)
#define mu_cpu_linear_forward MU_CPU_VARIANT(mu_cpu_linear_forward)
#define mu_cpu_linear_backward MU_CPU_VARIANT(mu_cpu_linear_backward)
#define mu_cpu_linear_workspace MU_CPU_VARIANT(mu_cpu_linear_workspace)
#define mu_cpu_attention_forward MU_CPU_VARIANT(mu_cpu_attention_forward)
#define mu_cpu_attention_backward MU_CPU_VARIANT(mu_cpu_attention_backward)
#define mu_cpu_attention_workspace MU_CPU_VARIANT(mu_cpu_attention_workspace)
#define mu_cpu_dropout MU_CPU_VARIANT(mu_cpu_dropout)
#define mu_cpu_drop_path MU_CPU_VARIANT(mu_cpu_drop_path)
#define mu_cpu_pool_forward MU_CPU_VARIANT(mu_cpu_pool_forward)
#define mu_cpu_pool_backward MU_CPU_VARIANT(mu_cpu_pool_backward)
#define mu_cpu_cross_entropy MU_CPU_VARIANT(mu_cpu_cross_entropy)
#define mu_cpu_adamw MU_CPU_VARIANT(mu_cpu_adamw)
#define mu_cpu_sum_squares MU_CPU_VARIANT(mu_cpu_sum_squares)
#define mu_cpu_sum_squares_workspace MU_CPU_VARIANT(mu_cpu_sum_squares_workspace)
#define mu_cpu_cast MU_CPU_VARIANT(mu_cpu_cast)
#define mu_cpu_accumulate MU_CPU_VARIANT(mu_cpu_accumulate)
#define mu_cpu_sgd MU_CPU_VARIANT(mu_cpu_sgd)
#define mu_cpu_lion MU_CPU_VARIANT(mu_cpu_lion)
#define mu_cpu_lamb MU_CPU_VARIANT(mu_cpu_lamb)
#define mu_cpu_momentum MU_CPU_VARIANT(mu_cpu_momentum)
#define mu_cpu_newton_schulz MU_CPU_VARIANT(mu_cpu_newton_schulz)
#define mu_cpu_newton_schulz_workspace MU_CPU_VARIANT(mu_cpu_newton_schulz_workspace)
#define mu_cpu_tensor_norms MU_CPU_VARIANT(mu_cpu_tensor_norms)
#define mu_cpu_tensor_norms_workspace MU_CPU_VARIANT(mu_cpu_tensor_norms_workspace)
#define mu_cpu_apply_update MU_CPU_VARIANT(mu_cpu_apply_update)
#define mu_cpu_ema MU_CPU_VARIANT(mu_cpu_ema)

/* to[j] += sum over chunks of partial[chunk * width + j], in double and in order; to: [width] mu_real, rounded once. */
void mu_cpu_add_partials(const mu_ops_context *c, void *to, const float *partial, size_t chunks, size_t width);

/* mu_dnnl_prepare and mu_dnnl_run for matrices of mu_real; a result that is not of shape->type is fp32. */
size_t mu_cpu_product_workspace(mu_ops_context *c, const mu_dnnl_shape *shape);
mural_status mu_cpu_product(mu_ops_context *c, const mu_dnnl_shape *shape, const void *a, const void *b,
                            const void *bias, void *to, void *scratch, mural_error *err);

/* One file per operation. */
mural_status mu_cpu_patchify(mu_ops_context *c, const mu_patchify *op, mural_error *err);
mural_status mu_cpu_embed_forward(mu_ops_context *c, const mu_embed *op, mural_error *err);
mural_status mu_cpu_embed_backward(mu_ops_context *c, const mu_embed *op, mural_error *err);
size_t mu_cpu_embed_workspace(mu_ops_context *c, const mu_embed *op);
mural_status mu_cpu_layernorm_forward(mu_ops_context *c, const mu_layernorm *op, mural_error *err);
mural_status mu_cpu_layernorm_backward(mu_ops_context *c, const mu_layernorm *op, mural_error *err);
size_t mu_cpu_layernorm_workspace(mu_ops_context *c, const mu_layernorm *op);
mural_status mu_cpu_linear_forward(mu_ops_context *c, const mu_linear *op, mural_error *err);
mural_status mu_cpu_linear_backward(mu_ops_context *c, const mu_linear *op, mural_error *err);
size_t mu_cpu_linear_workspace(mu_ops_context *c, const mu_linear *op);
mural_status mu_cpu_attention_forward(mu_ops_context *c, const mu_attention *op, mural_error *err);
mural_status mu_cpu_attention_backward(mu_ops_context *c, const mu_attention *op, mural_error *err);
size_t mu_cpu_attention_workspace(mu_ops_context *c, const mu_attention *op);
mural_status mu_cpu_dropout(mu_ops_context *c, const mu_dropout *op, mural_error *err);
mural_status mu_cpu_drop_path(mu_ops_context *c, const mu_drop_path *op, mural_error *err);
mural_status mu_cpu_pool_forward(mu_ops_context *c, const mu_pool *op, mural_error *err);
mural_status mu_cpu_pool_backward(mu_ops_context *c, const mu_pool *op, mural_error *err);
mural_status mu_cpu_cross_entropy(mu_ops_context *c, const mu_cross_entropy *op, mural_error *err);
mural_status mu_cpu_adamw(mu_ops_context *c, const mu_adamw *op, mural_error *err);
mural_status mu_cpu_sum_squares(mu_ops_context *c, const mu_sum_squares *op, mural_error *err);
size_t mu_cpu_sum_squares_workspace(mu_ops_context *c, const mu_sum_squares *op);
mural_status mu_cpu_cast(mu_ops_context *c, const mu_cast *op, mural_error *err);
mural_status mu_cpu_accumulate(mu_ops_context *c, const mu_accumulate *op, mural_error *err);
mural_status mu_cpu_sgd(mu_ops_context *c, const mu_sgd *op, mural_error *err);
mural_status mu_cpu_lion(mu_ops_context *c, const mu_lion *op, mural_error *err);
mural_status mu_cpu_lamb(mu_ops_context *c, const mu_lamb *op, mural_error *err);
mural_status mu_cpu_momentum(mu_ops_context *c, const mu_momentum *op, mural_error *err);
mural_status mu_cpu_newton_schulz(mu_ops_context *c, const mu_newton_schulz *op, mural_error *err);
size_t mu_cpu_newton_schulz_workspace(mu_ops_context *c, const mu_newton_schulz *op);
mural_status mu_cpu_tensor_norms(mu_ops_context *c, const mu_tensor_norms *op, mural_error *err);
size_t mu_cpu_tensor_norms_workspace(mu_ops_context *c, const mu_tensor_norms *op);
mural_status mu_cpu_apply_update(mu_ops_context *c, const mu_apply_update *op, mural_error *err);
mural_status mu_cpu_ema(mu_ops_context *c, const mu_ema *op, mural_error *err);

#endif
