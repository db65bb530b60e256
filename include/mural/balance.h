/* Unequal workers on a described cluster, before anyone runs it: equal shares of the batch, balanced ones, and the best team.
 *
 *     mural_balance_forecast *forecast;
 *     const mural_balance_settings settings = {.cluster = cluster, .config = &config, .ranks = 5};
 *     mural_balance_forecast_create(&forecast, &settings, &err);
 *     for (size_t i = 0; i < mural_balance_forecast_lines(forecast); i++)
 *             mural_balance_forecast_line(forecast, i)->split[MURAL_BALANCE_BEST].images_per_second ...
 *     mural_balance_forecast_free(forecast);
 *
 * A line for each number of ranks, 1 to 8, 16, 32 ... and all. The same functions decide in a run with `--balance auto`: docs/unequal-workers.md.
 * SPDX-License-Identifier: MIT */
#ifndef MURAL_BALANCE_H
#define MURAL_BALANCE_H

#include "mural/cluster.h"
#include "mural/config.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum mural_balance_kind {
	MURAL_BALANCE_EQUAL, /* every rank the same */
	MURAL_BALANCE_ALL, /* all ranks, by speed */
	MURAL_BALANCE_BEST, /* by speed, without whoever costs more than it brings; rank 0 always stays, as in a run */
	MURAL_BALANCE_KINDS
} mural_balance_kind;

typedef struct mural_balance_split {
	double seconds, computing, reduction; /* of a step; of its slowest rank; of all gradients, hidden or not */
	double images_per_second;
	int members; /* ranks that take part */
	const int *shares; /* [ranks]; who takes no part has 0. The forecast's own */
} mural_balance_split;

typedef struct mural_balance_line {
	int ranks;
	int batch; /* images of a step */
	mural_balance_split split[MURAL_BALANCE_KINDS];
} mural_balance_line;

typedef struct mural_balance_settings {
	const mural_cluster *cluster; /* borrowed for the call */
	const mural_config
	        *config; /* model, precision, overlap, buckets, placement, link_scale; borrowed for the call */
	int ranks; /* most; 0: all devices of the cluster, at most MURAL_BALANCE_RANKS */
	int batch_per_rank; /* the batch grows with the ranks; 0: it is config->batch.train_batch on any number of them */
	int micro_batch; /* a rank with more images takes several micro-batches; 0: no bound */
} mural_balance_settings;

typedef struct mural_balance_forecast mural_balance_forecast;

/* MURAL_USAGE: a device whose speed is not told, more ranks than devices or than images. The caller frees *forecast. */
MURAL_API mural_status mural_balance_forecast_create(mural_balance_forecast **forecast,
                                                     const mural_balance_settings *settings, mural_error *err);
MURAL_API void mural_balance_forecast_free(mural_balance_forecast *forecast);

MURAL_API size_t mural_balance_forecast_lines(const mural_balance_forecast *forecast);
MURAL_API const mural_balance_line *mural_balance_forecast_line(const mural_balance_forecast *forecast, size_t i);

/* For all ranks together: who costs more than it brings and whether by its device or by its link, and what would help. Lines, ""
 * where there is nothing to say. */
MURAL_API const char *mural_balance_forecast_advice(const mural_balance_forecast *forecast);

/* Lines and advice. */
MURAL_API mural_status mural_balance_forecast_write_json(const mural_balance_forecast *forecast, const char *path,
                                                         mural_error *err);

#ifdef __cplusplus
}
#endif
#endif
