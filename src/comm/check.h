/* What every table refuses in the same words: calls that no user can cause, so each is a bug in Mural.
 * SPDX-License-Identifier: MIT */
#ifndef MU_COMM_CHECK_H
#define MU_COMM_CHECK_H

#include "comm/comm.h"

static inline mural_status mu_comm_check_idle(const mu_pending *pending, mural_error *err)
{
	return pending->request ? mu_bug(err, "a collective was begun with a handle that is still in flight")
	                        : MURAL_OK;
}

static inline mural_status mu_comm_check_reduce(mu_dtype type, mu_reduce how, mural_error *err)
{
	switch (type) {
	case MU_F32:
	case MU_F64:
	case MU_I32:
	case MU_I64: return MURAL_OK;
	case MU_BF16:
	case MU_F16:
		if (how == MU_SUM)
			return MURAL_OK;
		return mu_bug(err, "bf16 and fp16 are reduced by sums only");
	case MU_U8:
		if (how != MU_SUM)
			return MURAL_OK;
		return mu_bug(err, "bytes are reduced by maximum or minimum, not summed: they would overflow");
	default: return mu_bug(err, "this collectives table does not reduce elements of that type");
	}
}

static inline mural_status mu_comm_check_root(const mu_comm_facts *facts, int root, mural_error *err)
{
	return root >= 0 && root < facts->size ? MURAL_OK
	                                       : mu_bug(err, "a broadcast's root is not a rank of its group");
}

#endif
