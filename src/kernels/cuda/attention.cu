/* Self-attention: which implementation takes a shape. SPDX-License-Identifier: MIT */
#include "kernels/cuda/attention.cuh"

#define MOST_HEAD_SIZE 128

/* delta: [B, H, N] float */
size_t mu_cuda_attention_workspace(mu_ops_context *c, const mu_attention *op)
{
	(void)c;
	return op->images * op->heads * op->tokens * sizeof(float);
}

static mural_status check_head_size(const mu_attention *op, mural_error *err)
{
	if (op->head_size <= MOST_HEAD_SIZE)
		return MURAL_OK;
	return mu_fail(err, MURAL_USAGE, NULL, "heads of size %zu; attention on a GPU takes up to %d", op->head_size,
	               MOST_HEAD_SIZE);
}

mural_status mu_cuda_attention_forward(mu_ops_context *c, const mu_attention *op, mural_error *err)
{
	MU_TRY(check_head_size(op, err));
	if (op->images * op->heads * op->tokens == 0)
		return MURAL_OK;
	if (mu_attention_hopper_fits(c, op))
		MU_TRY(mu_attention_hopper_forward(c, op, err));
	else if (mu_attention_tensor_fits(c, op))
		mu_attention_tensor_forward(c, op);
	else
		mu_attention_tiled_forward(c, op);
	return mu_cuda_launched("attention", err);
}

mural_status mu_cuda_attention_backward(mu_ops_context *c, const mu_attention *op, mural_error *err)
{
	float *delta = static_cast<float *>(op->scratch);
	MU_TRY(check_head_size(op, err));
	if (op->images * op->heads * op->tokens == 0)
		return MURAL_OK;
	if (mu_attention_hopper_fits(c, op))
		MU_TRY(mu_attention_hopper_backward(c, op, err));
	else if (mu_attention_tensor_fits(c, op))
		mu_attention_tensor_backward(c, op, delta);
	else
		mu_attention_tiled_backward(c, op, delta);
	return mu_cuda_launched("attention backward", err);
}
