/* The CPU operations as a table on the host device. SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "base/version.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/dnnl.h"

#ifdef _OPENMP
#include <omp.h>
#endif

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
	return type == MU_F32;
}

const mu_ops mu_ops_cpu = {
        .name = "cpu",
        .build_id = MU_BUILD_ID,
        .version = MU_OPS_VERSION,
        .device = &mu_device_host,
        .open = cpu_open,
        .close = cpu_close,
        .supports = cpu_supports,
        .patchify = mu_cpu_patchify,
        .embed_forward = mu_cpu_embed_forward,
        .embed_backward = mu_cpu_embed_backward,
        .embed_workspace = mu_cpu_embed_workspace,
        .layernorm_forward = mu_cpu_layernorm_forward,
        .layernorm_backward = mu_cpu_layernorm_backward,
        .layernorm_workspace = mu_cpu_layernorm_workspace,
        .linear_forward = mu_cpu_linear_forward,
        .linear_backward = mu_cpu_linear_backward,
        .linear_workspace = mu_cpu_linear_workspace,
        .attention_forward = mu_cpu_attention_forward,
        .attention_backward = mu_cpu_attention_backward,
        .attention_workspace = mu_cpu_attention_workspace,
        .dropout = mu_cpu_dropout,
        .drop_path = mu_cpu_drop_path,
        .pool_forward = mu_cpu_pool_forward,
        .pool_backward = mu_cpu_pool_backward,
        .cross_entropy = mu_cpu_cross_entropy,
        .adamw = mu_cpu_adamw,
        .sum_squares = mu_cpu_sum_squares,
        .sum_squares_workspace = mu_cpu_sum_squares_workspace,
        .cast = mu_cpu_cast,
};
