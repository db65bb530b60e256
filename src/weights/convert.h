/* Numbers of any floating-point type as fp32. SPDX-License-Identifier: MIT */
#ifndef MU_WEIGHTS_CONVERT_H
#define MU_WEIGHTS_CONVERT_H

#include "base/types.h"

/* type: MU_F32, MU_F16, MU_BF16 or MU_F64. Exact but for doubles, which are rounded. `from` may lie at any address. */
void mu_to_floats(mu_dtype type, const void *from, size_t n, float *to);

#endif
