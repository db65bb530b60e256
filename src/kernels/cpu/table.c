/* The CPU operations as a table on the host device: opens a context and sends each row to the variant for the context's
 * processor level and the call's type. MU_CPU_X86 says that the build made all three levels; elsewhere the baseline
 * serves, in the compiler's own vectors.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "base/version.h"
#include "kernels/cpu/cpu.h"

#ifdef _OPENMP
#include <omp.h>
#endif

#ifdef MU_CPU_X86
static const mu_ops *const variants[MU_CPU_LEVELS][3] = {
        {&mu_cpu_rows_base_f32, &mu_cpu_rows_base_bf16, &mu_cpu_rows_base_f16},
        {&mu_cpu_rows_avx2_f32, &mu_cpu_rows_avx2_bf16, &mu_cpu_rows_avx2_f16},
        {&mu_cpu_rows_avx512_f32, &mu_cpu_rows_avx512_bf16, &mu_cpu_rows_avx512_f16}};

static mu_cpu_level best_level(void)
{
	__builtin_cpu_init();
	if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
		return MU_CPU_BASE;
	const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
	return avx512 ? MU_CPU_AVX512 : MU_CPU_AVX2;
}
#else
static const mu_ops *const variants[MU_CPU_LEVELS][3] = {
        {&mu_cpu_rows_base_f32, &mu_cpu_rows_base_bf16, &mu_cpu_rows_base_f16},
        {&mu_cpu_rows_base_f32, &mu_cpu_rows_base_bf16, &mu_cpu_rows_base_f16},
        {&mu_cpu_rows_base_f32, &mu_cpu_rows_base_bf16, &mu_cpu_rows_base_f16}};

static mu_cpu_level best_level(void)
{
	return MU_CPU_BASE;
}
#endif

mu_cpu_level mu_cpu_detect(mu_cpu_level limit)
{
	const mu_cpu_level best = best_level();
	return best < limit ? best : limit;
}

static int default_threads(void)
{
#ifdef _OPENMP
	return omp_get_max_threads();
#else
	return 1;
#endif
}

static mural_status cpu_open(mu_queue *queue, int threads, mu_ops_context **context, mural_error *err)
{
	(void)queue;
	if (threads < 0)
		return mu_fail(err, MURAL_USAGE, NULL,
		               "a team of %d threads was asked for; expected 1 or more, or 0 for all", threads);
	mu_ops_context *c = calloc(1, sizeof *c);
	if (!c)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the CPU operations");
	c->threads = threads ? threads : default_threads();
	c->level = mu_cpu_detect(MU_CPU_AVX512);
	c->bf16_products = mu_dnnl_bf16_products() == MU_DNNL_BF16_FAST;
	const mural_status status = mu_dnnl_create(&c->dnnl, c->threads, err);
	if (status != MURAL_OK) {
		free(c);
		return status;
	}
	*context = c;
	return MURAL_OK;
}

static void cpu_close(mu_ops_context *context)
{
	if (!context)
		return;
	mu_dnnl_free(context->dnnl);
	free(context);
}

static bool cpu_supports(mu_ops_context *context, mu_dtype type)
{
	(void)context;
	return type == MU_F32 || type == MU_BF16 || type == MU_F16;
}

static const mu_ops *rows_of(const mu_ops_context *c, mu_dtype type)
{
	return variants[c->level][type == MU_BF16 ? 1 : type == MU_F16 ? 2 : 0];
}

/* Each row at the level of its context, for the type of the call. */
#define ROW(row, op)                                                                      \
	static mural_status row(mu_ops_context *c, const mu_##op *call, mural_error *err) \
	{                                                                                 \
		return rows_of(c, call->type)->row(c, call, err);                         \
	}
#define WORKSPACE(op)                                                        \
	static size_t op##_workspace(mu_ops_context *c, const mu_##op *call) \
	{                                                                    \
		return rows_of(c, call->type)->op##_workspace(c, call);      \
	}
ROW(patchify, patchify)
ROW(embed_forward, embed)
ROW(embed_backward, embed)
WORKSPACE(embed)
ROW(layernorm_forward, layernorm)
ROW(layernorm_backward, layernorm)
WORKSPACE(layernorm)
ROW(linear_forward, linear)
ROW(linear_backward, linear)
WORKSPACE(linear)
ROW(attention_forward, attention)
ROW(attention_backward, attention)
WORKSPACE(attention)
ROW(dropout, dropout)
ROW(drop_path, drop_path)
ROW(pool_forward, pool)
ROW(pool_backward, pool)
ROW(cross_entropy, cross_entropy)
ROW(adamw, adamw)
ROW(sum_squares, sum_squares)
WORKSPACE(sum_squares)

/* Work on fp32 arrays whatever the type of the parameters, or on pairs of types. */
static mural_status cast(mu_ops_context *c, const mu_cast *call, mural_error *err)
{
	return rows_of(c, MU_F32)->cast(c, call, err);
}

static mural_status newton_schulz(mu_ops_context *c, const mu_newton_schulz *call, mural_error *err)
{
	return rows_of(c, MU_F32)->newton_schulz(c, call, err);
}

static size_t newton_schulz_workspace(mu_ops_context *c, const mu_newton_schulz *call)
{
	return rows_of(c, MU_F32)->newton_schulz_workspace(c, call);
}

/* A few numbers: the reference's code serves. */
static mural_status settle(mu_ops_context *c, const mu_settle *call, mural_error *err)
{
	(void)c;
	return mu_ops_reference.settle(NULL, call, err);
}

ROW(accumulate, accumulate)
ROW(sgd, sgd)
ROW(lion, lion)
ROW(lamb, lamb)
ROW(momentum, momentum)
ROW(tensor_norms, tensor_norms)
WORKSPACE(tensor_norms)
ROW(apply_update, apply_update)
ROW(ema, ema)

const mu_ops mu_ops_cpu = {
        .name = "cpu",
        .build_id = MU_BUILD_ID,
        .version = MU_OPS_VERSION,
        .device = &mu_device_host,
        .open = cpu_open,
        .close = cpu_close,
        .supports = cpu_supports,
        .patchify = patchify,
        .embed_forward = embed_forward,
        .embed_backward = embed_backward,
        .embed_workspace = embed_workspace,
        .layernorm_forward = layernorm_forward,
        .layernorm_backward = layernorm_backward,
        .layernorm_workspace = layernorm_workspace,
        .linear_forward = linear_forward,
        .linear_backward = linear_backward,
        .linear_workspace = linear_workspace,
        .attention_forward = attention_forward,
        .attention_backward = attention_backward,
        .attention_workspace = attention_workspace,
        .dropout = dropout,
        .drop_path = drop_path,
        .pool_forward = pool_forward,
        .pool_backward = pool_backward,
        .cross_entropy = cross_entropy,
        .settle = settle,
        .adamw = adamw,
        .sum_squares = sum_squares,
        .sum_squares_workspace = sum_squares_workspace,
        .cast = cast,
        .accumulate = accumulate,
        .sgd = sgd,
        .lion = lion,
        .lamb = lamb,
        .momentum = momentum,
        .newton_schulz = newton_schulz,
        .newton_schulz_workspace = newton_schulz_workspace,
        .tensor_norms = tensor_norms,
        .tensor_norms_workspace = tensor_norms_workspace,
        .apply_update = apply_update,
        .ema = ema,
};
