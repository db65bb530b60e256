/* What the files of the CUDA table share, for C and CUDA C++: the context and the rows.
 *
 * Rows enqueue and return; nothing here waits for the card. Whatever a row's fields point to is device memory, but for
 * the extents of tensor_norms. No row uses floating-point atomics: sums go through partial sums that are cut by shape
 * and added in their order, so the same call gives the same bits. (cuBLASLt cuts its products by shape too, and
 * split-K reductions that are not reproducible are excluded; but another process may measure another algorithm to be
 * the fastest, gemm_search.c.)
 * SPDX-License-Identifier: MIT */
#ifndef MU_KERNELS_CUDA_CUDA_H
#define MU_KERNELS_CUDA_CUDA_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "device/cuda/cuda.h"
#include "kernels/ops.h"

typedef struct mu_cuda_products mu_cuda_products; /* matrix products prepared per shape; gemm.c */
typedef struct mu_cuda_loss_row mu_cuda_loss_row; /* cross_entropy.cu */

#define MU_CUDA_LOSS_ROWS 65536 /* images of one micro-batch, at most: 2 MiB of the context's memory */

struct mu_ops_context {
	mu_device_handle *device; /* of the queue */
	cudaStream_t stream;
	mu_cuda_products *products;
	mu_cuda_loss_row *loss_rows; /* [MU_CUDA_LOSS_ROWS] on the device */
	bool fixed_algorithms; /* products do not measure */
};

/* MURAL_OK, or the last launch's error with the operation's name. */
mural_status mu_cuda_launched(const char *operation, mural_error *err);

/* Does the first card run what was compiled here? */
bool mu_cuda_has_code(void);

/* The rows, one file per operation. */
#define MU_CUDA_ROW(name) mural_status mu_cuda_##name(mu_ops_context *, const mu_##name *, mural_error *)
#define MU_CUDA_PAIR(name)                                                                          \
	mural_status mu_cuda_##name##_forward(mu_ops_context *, const mu_##name *, mural_error *);  \
	mural_status mu_cuda_##name##_backward(mu_ops_context *, const mu_##name *, mural_error *); \
	size_t mu_cuda_##name##_workspace(mu_ops_context *, const mu_##name *)
MU_CUDA_ROW(patchify);
MU_CUDA_PAIR(embed);
MU_CUDA_PAIR(layernorm);
MU_CUDA_PAIR(linear);
MU_CUDA_PAIR(attention);
MU_CUDA_ROW(dropout);
MU_CUDA_ROW(drop_path);
mural_status mu_cuda_pool_forward(mu_ops_context *, const mu_pool *, mural_error *);
mural_status mu_cuda_pool_backward(mu_ops_context *, const mu_pool *, mural_error *);
MU_CUDA_ROW(cross_entropy);
MU_CUDA_ROW(settle);
MU_CUDA_ROW(adamw);
MU_CUDA_ROW(sum_squares);
size_t mu_cuda_sum_squares_workspace(mu_ops_context *, const mu_sum_squares *);
MU_CUDA_ROW(cast);
MU_CUDA_ROW(accumulate);
MU_CUDA_ROW(sgd);
MU_CUDA_ROW(lion);
MU_CUDA_ROW(lamb);
MU_CUDA_ROW(momentum);
MU_CUDA_ROW(newton_schulz);
size_t mu_cuda_newton_schulz_workspace(mu_ops_context *, const mu_newton_schulz *);
MU_CUDA_ROW(tensor_norms);
size_t mu_cuda_tensor_norms_workspace(mu_ops_context *, const mu_tensor_norms *);
MU_CUDA_ROW(apply_update);
MU_CUDA_ROW(ema);

/* d = op(a) op(b) + bias, or + d, on column-major matrices as BLAS has them: a is m x k, b is k x n, d is m x n; a
 * transposed operand lies the other way round. bias: [m] or NULL, only without add. Sums in fp32; true fp32 products
 * for MU_F32. Leading dimensions are the dense ones. */
typedef struct mu_cuda_product {
	mu_dtype type;
	size_t m, n, k;
	bool transpose_a, transpose_b, add;
	const void *a, *b, *bias;
	void *d;
} mu_cuda_product;

mural_status mu_cuda_products_create(mu_cuda_products **products, mural_error *err);
void mu_cuda_products_free(mu_cuda_products *products);
/* Chooses an algorithm for the shape if that was not done before; pointers do not matter. */
mural_status mu_cuda_product_prepare(mu_ops_context *c, const mu_cuda_product *product, mural_error *err);
mural_status mu_cuda_product_run(mu_ops_context *c, const mu_cuda_product *product, mural_error *err);
size_t mu_cuda_products_version(void);

/* For each to[i] that is not NULL, j < width: to[i][j] += sum over chunks of partial[chunk * stride + i * width + j], the
 * chunks in an order fixed by their number. */
typedef struct mu_cuda_partials {
	mu_dtype type;
	const float *partial;
	size_t chunks, stride, width;
	void *to[3];
} mu_cuda_partials;
mural_status mu_cuda_add_partials(mu_ops_context *c, const mu_cuda_partials *sums, mural_error *err);

#ifdef __cplusplus
}
#endif

#endif
