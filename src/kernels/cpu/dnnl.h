/* Dense matrix products on the CPU, prepared once per shape: the only door to oneDNN.
 *
 *     c[m, n] = op(a)[m, k] op(b)[k, n] (+ bias[n]) (+ c)
 *
 * op transposes when asked: a is [k, m] in memory with transpose_a, b is [n, k] with transpose_b. All dense, row-major.
 *
 *     bytes = mu_dnnl_prepare(dnnl, &shape);            before the first step; slow, allocates
 *     mu_dnnl_run(dnnl, &shape, a, b, bias, c, scratch, err);   allocates nothing of its own
 *
 * Built without oneDNN (MU_WITH_ONEDNN undefined) the same calls run plain blocked loops of fp32, many times slower;
 * that serves ThreadSanitizer, which cannot see into the library. One owner thread at a time.
 * SPDX-License-Identifier: MIT */
#ifndef MU_KERNELS_CPU_DNNL_H
#define MU_KERNELS_CPU_DNNL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/fail.h"
#include "base/types.h"

typedef struct mu_dnnl mu_dnnl;

typedef struct mu_dnnl_shape {
	mu_dtype type; /* of a, b and bias: MU_F32 or MU_BF16; sums are fp32 */
	mu_dtype result; /* of c: the same, or MU_F32 */
	size_t m, n, k;
	bool transpose_a, transpose_b;
	bool bias;
	bool accumulate; /* adds to c instead of overwriting it */
} mu_dnnl_shape;

/* How this processor multiplies bf16. */
typedef enum mu_dnnl_bf16 {
	MU_DNNL_BF16_NONE, /* the library cannot, or only by emulation slower than fp32 */
	MU_DNNL_BF16_SLOW, /* by AVX512_BF16 at half the rate of fp32 */
	MU_DNNL_BF16_FAST
} mu_dnnl_bf16;

mu_dnnl_bf16 mu_dnnl_bf16_products(void);

/* What the table does with bf16 products here, for a person: "AMX", "widened to fp32: ..."; static. */
const char *mu_dnnl_bf16_text(void);

/* threads: team of every product. The caller frees. */
mural_status mu_dnnl_create(mu_dnnl **dnnl, int threads, mural_error *err);
void mu_dnnl_free(mu_dnnl *dnnl); /* NULL is fine */

/* Bytes of scratch, aligned to 64, that running this shape needs. A failure is kept and told by mu_dnnl_run. */
size_t mu_dnnl_prepare(mu_dnnl *dnnl, const mu_dnnl_shape *shape);

/* MURAL_BUG if the shape was never prepared. */
mural_status mu_dnnl_run(mu_dnnl *dnnl, const mu_dnnl_shape *shape, const void *a, const void *b, const void *bias,
                         void *c, void *scratch, mural_error *err);

/* "oneDNN 2.6.3" or "plain loops". */
const char *mu_dnnl_text(void);

#endif
