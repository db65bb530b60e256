/* Element types. SPDX-License-Identifier: MIT */
#include "base/types.h"

const char *mu_dtype_text(mu_dtype type)
{
	switch (type) {
#define MU_X(name, bytes, text) \
	case name: return text;
		MU_DTYPE_LIST(MU_X)
#undef MU_X
	case MU_DTYPE_COUNT: break;
	}
	return "unknown";
}
