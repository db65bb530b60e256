/* What the two files of matrix products share. SPDX-License-Identifier: MIT */
#ifndef MU_KERNELS_CUDA_GEMM_H
#define MU_KERNELS_CUDA_GEMM_H

#include <cublasLt.h>

#include "kernels/cuda/cuda.h"

#define MU_CUDA_WORKSPACE_BYTES ((size_t)32 << 20) /* what NVIDIA advises for Hopper */
#define MU_CUDA_ALIGNMENT 64 /* bytes of every operand: what ops.h promises */

/* What tells shapes apart. Compared as bytes: all members are of one size. */
typedef struct mu_cuda_shape {
	size_t type, m, n, k, transpose_a, transpose_b, add, bias;
} mu_cuda_shape;

typedef struct mu_cuda_entry {
	mu_cuda_shape shape;
	cublasLtMatmulDesc_t operation;
	cublasLtMatrixLayout_t a, b, d;
	cublasLtMatmulAlgo_t algorithm;
} mu_cuda_entry;

struct mu_cuda_products {
	cublasLtHandle_t library;
	void *workspace;
	mu_cuda_entry *entries;
	size_t n, capacity;
};

mural_status mu_cuda_library_said(cublasStatus_t status, const char *what, const mu_cuda_shape *shape,
                                  mural_error *err);

/* Fills e->algorithm. */
mural_status mu_cuda_choose(mu_ops_context *c, mu_cuda_entry *e, mural_error *err);

#endif
