/* The shares of another run, read from its balance.csv (monitor/balance_csv.h). SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_SHARING_REPLAY_H
#define MU_ENGINE_SHARING_REPLAY_H

#include <stdint.h>

#include "base/fail.h"

/* Shares in the order of the steps from which they hold, without what a later row of the file took back. */
typedef struct mu_sharing_log {
	int ranks;
	size_t n; /* changes */
	int64_t *changes; /* [n][1 + ranks]: step (counted from 0), shares; -1: left out */
} mu_sharing_log;

/* MURAL_USAGE names path:line: no such log, or of other ranks or another batch. On failure nothing is kept. */
mural_status mu_sharing_log_read(mu_sharing_log *log, const char *path, int ranks, int batch, mural_error *err);
void mu_sharing_log_release(mu_sharing_log *log);

static inline const int64_t *mu_sharing_log_change(const mu_sharing_log *log, size_t i)
{
	return log->changes + i * (size_t)(1 + log->ranks);
}

#endif
