/* Self-attention, one image, head and query at a time. Letters as in kernels/ops.h.
 *
 * Backward, per query row, with keep_j = 0 or scale:
 *     d_p_j = keep_j (d_o . v_j);  d_s_j = p_j (d_p_j - sum_i p_i d_p_i)
 *     d_q = sum_j d_s_j k_j / sqrt(K);  d_k_j += d_s_j q / sqrt(K);  d_v_j += keep_j p_j d_o
 * It recomputes the softmax instead of trusting the rounded lse and o of forward.
 * SPDX-License-Identifier: MIT */
#include "kernels/reference/element.h"
#include "kernels/reference/reference.h"

enum part { Q, K_PART, V };

/* Index in qkv of element 0 of a token's q, k or v. */
static size_t at(const mu_attention *op, size_t b, size_t token, enum part part, size_t h)
{
	return (((b * op->tokens + token) * 3 + part) * op->heads + h) * op->head_size;
}

static size_t output_at(const mu_attention *op, size_t b, size_t token, size_t h)
{
	return ((b * op->tokens + token) * op->heads + h) * op->head_size;
}

static double keep_of(const mu_attention *op, size_t b, size_t h, size_t query, size_t key)
{
	return mu_reference_keep(&op->dropout, b, (h * op->tokens + query) * op->tokens + key);
}

/* Fills p_N with the softmax of one query's scores; returns their log-sum-exp. */
static double softmax_row(const mu_attention *op, size_t b, size_t h, size_t query, double *p_N)
{
	const size_t N = op->tokens, K = op->head_size;
	double largest = -(double)INFINITY, sum = 0;
	for (size_t key = 0; key < N; key++) {
		double dot = 0;
		for (size_t i = 0; i < K; i++)
			dot += mu_element_load(op->type, op->qkv, at(op, b, query, Q, h) + i) *
			       mu_element_load(op->type, op->qkv, at(op, b, key, K_PART, h) + i);
		p_N[key] = dot / sqrt((double)K);
		largest = fmax(largest, p_N[key]);
	}
	for (size_t key = 0; key < N; key++) {
		p_N[key] = exp(p_N[key] - largest);
		sum += p_N[key];
	}
	for (size_t key = 0; key < N; key++)
		p_N[key] /= sum;
	return largest + log(sum);
}

static void query_forward(const mu_attention *op, size_t b, size_t h, size_t query)
{
	const size_t N = op->tokens, K = op->head_size;
	double *p_N = op->scratch;
	const double lse = softmax_row(op, b, h, query, p_N);
	mu_element_store(mu_stat_type(op->type), op->lse, (b * op->heads + h) * N + query, lse);
	for (size_t i = 0; i < K; i++) {
		double o = 0;
		for (size_t key = 0; key < N; key++)
			o += p_N[key] * keep_of(op, b, h, query, key) *
			     mu_element_load(op->type, op->qkv, at(op, b, key, V, h) + i);
		mu_element_store(op->type, op->o, output_at(op, b, query, h) + i, o);
	}
}

mural_status mu_reference_attention_forward(mu_ops_context *context, const mu_attention *op, mural_error *err)
{
	(void)context;
	(void)err;
	for (size_t b = 0; b < op->images; b++)
		for (size_t h = 0; h < op->heads; h++)
			for (size_t query = 0; query < op->tokens; query++)
				query_forward(op, b, h, query);
	return MURAL_OK;
}

/* scratch: p_N, d_p_N, then the gradients of one head's q, k and v as [3, N, K], all double. */
size_t mu_reference_attention_workspace(mu_ops_context *context, const mu_attention *op)
{
	(void)context;
	return (2 * op->tokens + 3 * op->tokens * op->head_size) * sizeof(double);
}

/* Adds what one query row sends to q, k and v of its head. */
static void query_backward(const mu_attention *op, size_t b, size_t h, size_t query, double *p_N, double *d_p_N,
                           double *d_qkv_3NK)
{
	const size_t N = op->tokens, K = op->head_size;
	double *d_q = d_qkv_3NK + query * K, *d_k = d_qkv_3NK + N * K, *d_v = d_qkv_3NK + 2 * N * K;
	double mean = 0;
	softmax_row(op, b, h, query, p_N);
	for (size_t key = 0; key < N; key++) {
		const double keep = keep_of(op, b, h, query, key);
		d_p_N[key] = 0;
		for (size_t i = 0; i < K; i++) {
			const double d_o = mu_element_load(op->type, op->d_o, output_at(op, b, query, h) + i);
			d_p_N[key] += keep * d_o * mu_element_load(op->type, op->qkv, at(op, b, key, V, h) + i);
			d_v[key * K + i] += keep * p_N[key] * d_o;
		}
		mean += p_N[key] * d_p_N[key];
	}
	for (size_t key = 0; key < N; key++) {
		const double d_s = p_N[key] * (d_p_N[key] - mean) / sqrt((double)K);
		for (size_t i = 0; i < K; i++) {
			d_q[i] += d_s * mu_element_load(op->type, op->qkv, at(op, b, key, K_PART, h) + i);
			d_k[key * K + i] += d_s * mu_element_load(op->type, op->qkv, at(op, b, query, Q, h) + i);
		}
	}
}

static void head_backward(const mu_attention *op, size_t b, size_t h)
{
	const size_t N = op->tokens, K = op->head_size;
	double *p_N = op->scratch, *d_p_N = p_N + N, *d_qkv_3NK = d_p_N + N;
	for (size_t i = 0; i < 3 * N * K; i++)
		d_qkv_3NK[i] = 0;
	for (size_t query = 0; query < N; query++)
		query_backward(op, b, h, query, p_N, d_p_N, d_qkv_3NK);
	for (size_t token = 0; token < N; token++)
		for (size_t i = 0; i < K; i++)
			for (enum part part = Q; part <= V; part++)
				mu_element_store(op->type, op->d_qkv, at(op, b, token, part, h) + i,
				                 d_qkv_3NK[(part * N + token) * K + i]);
}

mural_status mu_reference_attention_backward(mu_ops_context *context, const mu_attention *op, mural_error *err)
{
	(void)context;
	(void)err;
	for (size_t b = 0; b < op->images; b++)
		for (size_t h = 0; h < op->heads; h++)
			head_backward(op, b, h);
	return MURAL_OK;
}
