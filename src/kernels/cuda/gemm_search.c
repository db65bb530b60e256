/* Which of cuBLASLt's algorithms multiplies a shape: the best of those that its heuristics propose, by a short
 * measurement with random numbers in memory of its own. Where there is no memory for that, the queue is being
 * captured, or algorithms are to be the same in every process, the first proposal stands. A proposal replaces an earlier one only when it is clearly faster, so that noise
 * seldom chooses.
 *
 * On one H200 this took ViT-B/16's products at 256 images from 45.7 to 43.2 ms a step. Sums of d_b in the epilogue of
 * the d_w product (BGRADB) lost: the product of 768 x 2304 x 50432 went from 242 to 342 us, a pass of our own is 55 us;
 * and for sums over a few rows the result was wrong in cuBLASLt 13.0.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "kernels/cuda/gemm.h"

#define PROPOSALS 8
#define ROUNDS 4 /* measured runs of a proposal, after one that is not */
#define CLEARLY 0.985f
#define NUMBERS_BYTES ((size_t)1 << 16)

static cublasStatus_t set_preferences(cublasLtMatmulPreference_t preference)
{
	const size_t workspace = MU_CUDA_WORKSPACE_BYTES;
	const uint32_t alignment = MU_CUDA_ALIGNMENT;
	const uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
	static const cublasLtMatmulPreferenceAttributes_t operands[] = {
	        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
	        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
	cublasStatus_t status = cublasLtMatmulPreferenceSetAttribute(
	        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
		                                              &reductions, sizeof reductions);
	for (size_t i = 0; i < sizeof operands / sizeof *operands && status == CUBLAS_STATUS_SUCCESS; i++)
		status = cublasLtMatmulPreferenceSetAttribute(preference, operands[i], &alignment, sizeof alignment);
	return status;
}

/* Operands to measure with. */
typedef struct trial {
	void *a, *b, *d, *vector;
	cudaEvent_t from, to;
} trial;

static void release_trial(trial *t)
{
	(void)cudaFree(t->a);
	(void)cudaFree(t->b);
	(void)cudaFree(t->d);
	(void)cudaFree(t->vector);
	if (t->from)
		(void)cudaEventDestroy(t->from);
	if (t->to)
		(void)cudaEventDestroy(t->to);
	(void)cudaGetLastError(); /* what went wrong here is nobody's concern */
}

/* Numbers between 1/2 and 2 in each of our types: as 16 bits, and as halves of 32. NULL when memory is short. */
static void *random_operand(cudaStream_t stream, size_t bytes)
{
	void *p = NULL;
	uint16_t *numbers = malloc(NUMBERS_BYTES);
	const size_t first = bytes < NUMBERS_BYTES ? bytes : NUMBERS_BYTES;
	if (!numbers || cudaMalloc(&p, bytes ? bytes : 1) != cudaSuccess) {
		free(numbers);
		return NULL;
	}
	for (size_t i = 0; i < NUMBERS_BYTES / 2; i++)
		numbers[i] = (uint16_t)(0x3f00u | (mu_random_u32((mu_random_key){1, 1}, 0, i) & 0x807fu));
	bool filled = cudaMemcpyAsync(p, numbers, first, cudaMemcpyHostToDevice, stream) == cudaSuccess &&
	              cudaStreamSynchronize(stream) == cudaSuccess;
	for (size_t done = first; filled && done < bytes; done *= 2)
		filled = cudaMemcpyAsync((char *)p + done, p, done < bytes - done ? done : bytes - done,
		                         cudaMemcpyDeviceToDevice, stream) == cudaSuccess;
	free(numbers);
	if (filled)
		return p;
	(void)cudaFree(p);
	return NULL;
}

static bool make_trial(trial *t, const mu_cuda_shape *s, cudaStream_t stream)
{
	const size_t element = s->type == MU_F32 ? 4 : 2, longer = s->m > s->n ? s->m : s->n;
	*t = (trial){.a = random_operand(stream, s->m * s->k * element),
	             .b = random_operand(stream, s->k * s->n * element),
	             .d = random_operand(stream, s->m * s->n * element),
	             .vector = random_operand(stream, longer * element)};
	return t->a && t->b && t->d && t->vector && cudaEventCreate(&t->from) == cudaSuccess &&
	       cudaEventCreate(&t->to) == cudaSuccess;
}

/* Milliseconds of ROUNDS runs; negative when it does not run. */
static float measure(mu_ops_context *c, mu_cuda_entry *e, const trial *t, const cublasLtMatmulAlgo_t *algorithm)
{
	const mu_cuda_products *p = c->products;
	const float one = 1, beta = e->shape.add ? 1 : 0;
	float milliseconds = -1;
	if (e->shape.bias)
		(void)cublasLtMatmulDescSetAttribute(e->operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &t->vector,
		                                     sizeof t->vector);
	for (int i = 0; i < 1 + ROUNDS; i++) {
		if (i == 1)
			(void)cudaEventRecord(t->from, c->stream);
		if (cublasLtMatmul(p->library, e->operation, &one, t->a, e->a, t->b, e->b, &beta, t->d, e->d, t->d,
		                   e->d, algorithm, p->workspace, MU_CUDA_WORKSPACE_BYTES,
		                   c->stream) != CUBLAS_STATUS_SUCCESS)
			return -1;
	}
	if (cudaEventRecord(t->to, c->stream) != cudaSuccess || cudaEventSynchronize(t->to) != cudaSuccess ||
	    cudaEventElapsedTime(&milliseconds, t->from, t->to) != cudaSuccess)
		return -1;
	return milliseconds;
}

static bool may_measure(const mu_ops_context *c)
{
	enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusActive;
	(void)cudaStreamIsCapturing(c->stream, &capture);
	return !c->fixed_algorithms && capture == cudaStreamCaptureStatusNone;
}

static int fastest(mu_ops_context *c, mu_cuda_entry *e, const cublasLtMatmulHeuristicResult_t *proposals, int n)
{
	trial t = {0};
	int best = 0;
	float shortest = -1;
	if (n > 1 && may_measure(c) && make_trial(&t, &e->shape, c->stream)) {
		for (int i = 0; i < n; i++) {
			const float took = measure(c, e, &t, &proposals[i].algo);
			if (took >= 0 && (shortest < 0 || took < shortest * CLEARLY)) {
				shortest = took;
				best = i;
			}
		}
		(void)cudaStreamSynchronize(c->stream);
	}
	release_trial(&t);
	return best;
}

mural_status mu_cuda_choose(mu_ops_context *c, mu_cuda_entry *e, mural_error *err)
{
	cublasLtMatmulPreference_t preference = NULL;
	cublasLtMatmulHeuristicResult_t proposals[PROPOSALS];
	int found = 0;
	MU_TRY(mu_cuda_library_said(cublasLtMatmulPreferenceCreate(&preference), "a search", &e->shape, err));
	cublasStatus_t status = set_preferences(preference);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = cublasLtMatmulAlgoGetHeuristic(c->products->library, e->operation, e->a, e->b, e->d, e->d,
		                                        preference, PROPOSALS, proposals, &found);
	(void)cublasLtMatmulPreferenceDestroy(preference);
	if (status == CUBLAS_STATUS_SUCCESS && found == 0)
		status = CUBLAS_STATUS_NOT_SUPPORTED;
	MU_TRY(mu_cuda_library_said(status, "an algorithm", &e->shape, err));
	e->algorithm = proposals[fastest(c, e, proposals, found)].algo;
	return MURAL_OK;
}
