/* Element types, shared by every table. SPDX-License-Identifier: MIT */
#ifndef MU_BASE_TYPES_H
#define MU_BASE_TYPES_H

#include <stddef.h>
#include <stdint.h>

/* X(enum, bytes, safetensors name). MU_F64 exists for gradient checks: only the reference operations take it. */
#define MU_DTYPE_LIST(X)      \
	X(MU_F32, 4, "F32")   \
	X(MU_BF16, 2, "BF16") \
	X(MU_F16, 2, "F16")   \
	X(MU_F64, 8, "F64")   \
	X(MU_U8, 1, "U8")     \
	X(MU_I32, 4, "I32")   \
	X(MU_I64, 8, "I64")

typedef enum mu_dtype {
#define MU_X(name, bytes, text) name,
	MU_DTYPE_LIST(MU_X)
#undef MU_X
	        MU_DTYPE_COUNT
} mu_dtype;

static inline size_t mu_dtype_bytes(mu_dtype type)
{
	static const unsigned char bytes[MU_DTYPE_COUNT] = {
#define MU_X(name, bytes, text) bytes,
	        MU_DTYPE_LIST(MU_X)
#undef MU_X
	};
	return bytes[type];
}

/* "F32", "BF16", ... as safetensors writes them. */
const char *mu_dtype_text(mu_dtype type);

#endif
