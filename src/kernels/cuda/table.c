/* The CUDA operations as a table on the CUDA device, and the module's entry. SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>

#include "base/version.h"
#include "kernels/cuda.h"
#include "kernels/cuda/cuda.h"

#define OLDEST_RUNTIME_DRIVER CUDART_VERSION / 1000 /* a driver serves every runtime of its major version */
#define LOSS_ROW_BYTES 32

mural_status mu_cuda_launched(const char *operation, mural_error *err)
{
	return mu_cuda_said(cudaGetLastError(), operation, err);
}

static void cuda_close(mu_ops_context *context)
{
	if (!context)
		return;
	mu_cuda_products_free(context->products);
	(void)cudaFree(context->loss_rows);
	free(context);
}

static mural_status cuda_open(mu_queue *queue, int threads, mu_ops_context **context, mural_error *err)
{
	mural_status status;
	(void)threads;
	*context = NULL;
	mu_ops_context *c = calloc(1, sizeof *c);
	if (!c)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the CUDA operations");
	c->device = queue->device;
	c->stream = queue->stream;
	MU_TRY_OUT(mu_cuda_said(cudaSetDevice(c->device->index), "to be made current", err));
	MU_TRY_OUT(mu_cuda_said(cudaMalloc((void **)&c->loss_rows, MU_CUDA_LOSS_ROWS * LOSS_ROW_BYTES), "memory", err));
	MU_TRY_OUT(mu_cuda_products_create(&c->products, err));
	*context = c;
	return MURAL_OK;
out:
	cuda_close(c);
	return status;
}

static bool cuda_supports(mu_ops_context *context, mu_dtype type)
{
	(void)context;
	return type == MU_F32 || type == MU_BF16 || type == MU_F16;
}

static void cuda_fix_algorithms(mu_ops_context *context, bool fixed)
{
	context->fixed_algorithms = fixed;
}

static const mu_ops mu_ops_cuda = {
        .name = "cuda",
        .build_id = MU_BUILD_ID,
        .version = MU_OPS_VERSION,
        .device = &mu_device_cuda,
        .open = cuda_open,
        .close = cuda_close,
        .supports = cuda_supports,
        .fix_algorithms = cuda_fix_algorithms,
        .patchify = mu_cuda_patchify,
        .embed_forward = mu_cuda_embed_forward,
        .embed_backward = mu_cuda_embed_backward,
        .embed_workspace = mu_cuda_embed_workspace,
        .layernorm_forward = mu_cuda_layernorm_forward,
        .layernorm_backward = mu_cuda_layernorm_backward,
        .layernorm_workspace = mu_cuda_layernorm_workspace,
        .linear_forward = mu_cuda_linear_forward,
        .linear_backward = mu_cuda_linear_backward,
        .linear_workspace = mu_cuda_linear_workspace,
        .attention_forward = mu_cuda_attention_forward,
        .attention_backward = mu_cuda_attention_backward,
        .attention_workspace = mu_cuda_attention_workspace,
        .dropout = mu_cuda_dropout,
        .drop_path = mu_cuda_drop_path,
        .pool_forward = mu_cuda_pool_forward,
        .pool_backward = mu_cuda_pool_backward,
        .cross_entropy = mu_cuda_cross_entropy,
        .settle = mu_cuda_settle,
        .adamw = mu_cuda_adamw,
        .sum_squares = mu_cuda_sum_squares,
        .sum_squares_workspace = mu_cuda_sum_squares_workspace,
        .cast = mu_cuda_cast,
        .accumulate = mu_cuda_accumulate,
        .sgd = mu_cuda_sgd,
        .lion = mu_cuda_lion,
        .lamb = mu_cuda_lamb,
        .momentum = mu_cuda_momentum,
        .newton_schulz = mu_cuda_newton_schulz,
        .newton_schulz_workspace = mu_cuda_newton_schulz_workspace,
        .tensor_norms = mu_cuda_tensor_norms,
        .tensor_norms_workspace = mu_cuda_tensor_norms_workspace,
        .apply_update = mu_cuda_apply_update,
        .ema = mu_cuda_ema,
};

static void version_text(char *text, size_t size, int version)
{
	snprintf(text, size, "%d.%d", version / 1000, version % 1000 / 10);
}

/* Which cards there is code for: the kernels were compiled for these and serve newer ones through PTX. */
static mural_status check_code(mural_error *err)
{
	struct cudaDeviceProp properties;
	MU_TRY(mu_cuda_said(cudaGetDeviceProperties(&properties, 0), "a question about itself", err));
	if (mu_cuda_has_code())
		return MURAL_OK;
	(void)cudaGetLastError();
	return mu_fail(err, MURAL_FAILED, NULL,
	               "the CUDA module has no code for %.64s (compute capability %d.%d): build Mural with "
	               "-DMURAL_CUDA_ARCHITECTURES=%d%d, if this CUDA still knows the card",
	               properties.name, properties.major, properties.minor, properties.major, properties.minor);
}

mural_status mu_cuda_check(mural_error *err)
{
	int driver = 0, count = 0;
	char have[16], want[16];
	(void)cudaDriverGetVersion(&driver); /* 0: no driver */
	version_text(have, sizeof have, driver);
	version_text(want, sizeof want, CUDART_VERSION);
	if (driver == 0)
		return mu_fail(err, MURAL_FAILED, NULL, "no NVIDIA driver is loaded on this machine");
	if (driver / 1000 < OLDEST_RUNTIME_DRIVER)
		return mu_fail(
		        err, MURAL_FAILED, NULL,
		        "the NVIDIA driver is too old: it serves CUDA up to %s, Mural was built with %s; install a "
		        "newer driver, or build Mural with an older CUDA",
		        have, want);
	const cudaError_t said = cudaGetDeviceCount(&count);
	if (said == cudaErrorNoDevice || (said == cudaSuccess && count == 0)) {
		(void)cudaGetLastError();
		return mu_fail(
		        err, MURAL_FAILED, NULL,
		        "there is a driver but no GPU: is CUDA_VISIBLE_DEVICES empty, or has the batch system given "
		        "none?");
	}
	MU_TRY(mu_cuda_said(said, "to be counted", err));
	return check_code(err);
}

static void describe(char *text, size_t size)
{
	struct cudaDeviceProp properties;
	int driver = 0, count = 0;
	char serves[16], runtime[16];
	(void)cudaDriverGetVersion(&driver);
	(void)cudaGetDeviceCount(&count);
	version_text(serves, sizeof serves, driver);
	version_text(runtime, sizeof runtime, CUDART_VERSION);
	if (cudaGetDeviceProperties(&properties, 0) != cudaSuccess) {
		snprintf(text, size, "a GPU that does not answer");
		return;
	}
	snprintf(text, size, "%d x %.64s (%d.%d), %s; driver for CUDA %s, built with %s, cuBLASLt %zu", count,
	         properties.name, properties.major, properties.minor, MU_SIZE(properties.totalGlobalMem), serves,
	         runtime, mu_cuda_products_version());
}

extern MURAL_API const mu_cuda_module mu_cuda_module_entry;
const mu_cuda_module mu_cuda_module_entry = {
        .build_id = MU_BUILD_ID, .ops = &mu_ops_cuda, .check = mu_cuda_check, .describe = describe};
