/* Matrix products through cuBLASLt, one prepared entry per shape.
 *
 * An entry holds the descriptors and an algorithm (gemm_search.c), so that a call is a look-up and a launch. One
 * workspace serves all: products of a context run one after the other on its queue.
 *
 * MU_F32 multiplies in true fp32. Split-K may reduce through the workspace in fp32, in a fixed order; reductions in place
 * or in the output's type are excluded, because the first depend on timing and the second round more than once.
 *
 * Measured: docs/benchmarks.md, "Operations on a GPU". SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/gemm.h"

size_t mu_cuda_products_version(void)
{
	return cublasLtGetVersion();
}

mural_status mu_cuda_library_said(cublasStatus_t status, const char *what, const mu_cuda_shape *s, mural_error *err)
{
	if (status == CUBLAS_STATUS_SUCCESS)
		return MURAL_OK;
	return mu_fail(err, MURAL_FAILED, NULL, "cuBLASLt refused %s for a product of %zu x %zu x %zu: %s", what,
	               s ? s->m : 0, s ? s->n : 0, s ? s->k : 0, cublasLtGetStatusString(status));
}

static void release_entry(mu_cuda_entry *e)
{
	if (e->a)
		(void)cublasLtMatrixLayoutDestroy(e->a);
	if (e->b)
		(void)cublasLtMatrixLayoutDestroy(e->b);
	if (e->d)
		(void)cublasLtMatrixLayoutDestroy(e->d);
	if (e->operation)
		(void)cublasLtMatmulDescDestroy(e->operation);
}

mural_status mu_cuda_products_create(mu_cuda_products **products, mural_error *err)
{
	mural_status status;
	mu_cuda_products *p = calloc(1, sizeof *p);
	*products = NULL;
	if (!p)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for matrix products");
	MU_TRY_OUT(mu_cuda_library_said(cublasLtCreate(&p->library), "to start", NULL, err));
	MU_TRY_OUT(mu_cuda_said(cudaMalloc(&p->workspace, MU_CUDA_WORKSPACE_BYTES), "memory", err));
	*products = p;
	return MURAL_OK;
out:
	mu_cuda_products_free(p);
	return status;
}

void mu_cuda_products_free(mu_cuda_products *products)
{
	if (!products)
		return;
	for (size_t i = 0; i < products->n; i++)
		release_entry(&products->entries[i]);
	free(products->entries);
	(void)cudaFree(products->workspace);
	if (products->library)
		(void)cublasLtDestroy(products->library);
	free(products);
}

static cudaDataType_t data_type(mu_dtype type)
{
	return type == MU_BF16 ? CUDA_R_16BF : type == MU_F16 ? CUDA_R_16F : CUDA_R_32F;
}

static mural_status set_operation(mu_cuda_entry *e, cublasLtMatmulDescAttributes_t which, const void *value,
                                  size_t bytes, mural_error *err)
{
	return mu_cuda_library_said(cublasLtMatmulDescSetAttribute(e->operation, which, value, bytes), "a setting",
	                            &e->shape, err);
}

static mural_status describe(mu_cuda_entry *e, mural_error *err)
{
	const mu_cuda_shape *s = &e->shape;
	const cudaDataType_t type = data_type((mu_dtype)s->type);
	const cublasOperation_t a = s->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
	const cublasOperation_t b = s->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
	const cublasLtEpilogue_t epilogue = s->bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
	const size_t a_rows = s->transpose_a ? s->k : s->m, a_columns = s->transpose_a ? s->m : s->k;
	const size_t b_rows = s->transpose_b ? s->n : s->k, b_columns = s->transpose_b ? s->k : s->n;
	MU_TRY(mu_cuda_library_said(cublasLtMatmulDescCreate(&e->operation, CUBLAS_COMPUTE_32F, CUDA_R_32F),
	                            "a product", s, err));
	MU_TRY(set_operation(e, CUBLASLT_MATMUL_DESC_TRANSA, &a, sizeof a, err));
	MU_TRY(set_operation(e, CUBLASLT_MATMUL_DESC_TRANSB, &b, sizeof b, err));
	MU_TRY(set_operation(e, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue, err));
	MU_TRY(mu_cuda_library_said(cublasLtMatrixLayoutCreate(&e->a, type, a_rows, a_columns, (int64_t)a_rows),
	                            "a matrix", s, err));
	MU_TRY(mu_cuda_library_said(cublasLtMatrixLayoutCreate(&e->b, type, b_rows, b_columns, (int64_t)b_rows),
	                            "a matrix", s, err));
	return mu_cuda_library_said(cublasLtMatrixLayoutCreate(&e->d, type, s->m, s->n, (int64_t)s->m), "a matrix", s,
	                            err);
}

static mural_status grow(mu_cuda_products *p, mural_error *err)
{
	if (p->n < p->capacity)
		return MURAL_OK;
	const size_t capacity = p->capacity ? 2 * p->capacity : 64;
	mu_cuda_entry *entries = realloc(p->entries, capacity * sizeof *entries);
	if (!entries)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for matrix products");
	p->entries = entries;
	p->capacity = capacity;
	return MURAL_OK;
}

/* A step has some twenty shapes: looking through them costs less than a hash. */
static mural_status find(mu_ops_context *c, const mu_cuda_product *product, mu_cuda_entry **found, mural_error *err)
{
	mu_cuda_products *p = c->products;
	const mu_cuda_shape s = {product->type,        product->m,           product->n,   product->k,
	                         product->transpose_a, product->transpose_b, product->add, product->bias != NULL};
	for (size_t i = 0; i < p->n; i++)
		if (memcmp(&p->entries[i].shape, &s, sizeof s) == 0) {
			*found = &p->entries[i];
			return MURAL_OK;
		}
	MU_TRY(grow(p, err));
	mu_cuda_entry *e = &p->entries[p->n];
	*e = (mu_cuda_entry){.shape = s};
	mural_status status = describe(e, err);
	if (status == MURAL_OK)
		status = mu_cuda_choose(c, e, err);
	if (status != MURAL_OK) {
		release_entry(e);
		return status;
	}
	p->n++;
	*found = e;
	return MURAL_OK;
}

mural_status mu_cuda_product_prepare(mu_ops_context *c, const mu_cuda_product *product, mural_error *err)
{
	mu_cuda_entry *e;
	return find(c, product, &e, err);
}

mural_status mu_cuda_product_run(mu_ops_context *c, const mu_cuda_product *product, mural_error *err)
{
	mu_cuda_products *p = c->products;
	const float one = 1, beta = product->add ? 1 : 0;
	mu_cuda_entry *e;
	MU_TRY(find(c, product, &e, err));
	if (product->bias)
		MU_TRY(set_operation(e, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &product->bias, sizeof product->bias, err));
	return mu_cuda_library_said(cublasLtMatmul(p->library, e->operation, &one, product->a, e->a, product->b, e->b,
	                                           &beta, product->d, e->d, product->d, e->d, &e->algorithm,
	                                           p->workspace, MU_CUDA_WORKSPACE_BYTES, c->stream),
	                            "a launch", &e->shape, err);
}
