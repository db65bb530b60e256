/* From one floating type to another. The pairs that training uses (fp32 with bf16 or fp16) are vector loops on the bits; the
 * others go element by element through double, one rounding each. Bound by memory bandwidth. A part is a block.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "kernels/cpu/real.h"
#include "kernels/reference/element.h"

#define BLOCK 16384

MU_CPU_KERNEL(cast_blocks)
{
	const mu_cast *op = work;
	const size_t first = begin * BLOCK, last = end * BLOCK < op->n ? end * BLOCK : op->n;
	if (op->from_type == op->to_type) {
		const size_t bytes = mu_dtype_bytes(op->to_type);
		memcpy((char *)op->to + first * bytes, (const char *)op->from + first * bytes, (last - first) * bytes);
	} else if (op->from_type == MU_F32 && op->to_type == MU_BF16) {
		const float *from = op->from;
		uint16_t *to = op->to;
#pragma omp simd
		for (size_t i = first; i < last; i++)
			to[i] = mu_bf16_bits(from[i]);
	} else if (op->from_type == MU_BF16 && op->to_type == MU_F32) {
		const uint16_t *from = op->from;
		float *to = op->to;
#pragma omp simd
		for (size_t i = first; i < last; i++)
			to[i] = mu_bf16_float(from[i]);
	} else if (op->from_type == MU_F32 && op->to_type == MU_F16) {
		const float *from = op->from;
		uint16_t *to = op->to;
#pragma omp simd
		for (size_t i = first; i < last; i++)
			to[i] = mu_f16_bits(from[i]);
	} else if (op->from_type == MU_F16 && op->to_type == MU_F32) {
		const uint16_t *from = op->from;
		float *to = op->to;
#pragma omp simd
		for (size_t i = first; i < last; i++)
			to[i] = mu_f16_float(from[i]);
	} else {
		for (size_t i = first; i < last; i++)
			mu_element_store(op->to_type, op->to, i, mu_element_load(op->from_type, op->from, i));
	}
}

mural_status mu_cpu_cast(mu_ops_context *c, const mu_cast *op, mural_error *err)
{
	(void)err;
	mu_cpu_run(c, cast_blocks, op, (op->n + BLOCK - 1) / BLOCK);
	return MURAL_OK;
}
