/* What a training would take on machines that one has or does not have: seconds of a step by part, memory by part, scaling, money.
 * Arithmetic alone: nothing runs, no device is touched.
 *
 *     mural_forecast *forecast;
 *     const mural_forecast_settings settings = {.config = &config, .cluster = cluster, .images = 50000};
 *     mural_forecast_create(&forecast, &settings, &err);
 *     const mural_forecast_point asked = {.ranks = 8, .micro_batch = 32};
 *     mural_forecast_step step;
 *     mural_forecast_at(forecast, &asked, &step, &err);        step.seconds, step.exposed, step.images_per_second ...
 *     mural_forecast_free(forecast);
 *
 * The cluster says what its devices and links can do (docs/clusters.md); mural_cluster_here is a guess of this machine, a file that
 * `mural plan --calibrate` wrote is a measurement. A device's speed is, in this order,
 *
 *     its rates             measured on trainings, of this model or of any       some percent
 *     seconds_per_image, tflops      as the file says them                       as good as they are
 *     the table of known devices     MURAL_DEVICE_REACHED of the peak (mural/device.h)      a first guess
 *
 * and a step costs what src/study/cost.h says: micro-batches of the slowest rank, buckets of gradients that travel while backward
 * goes on, what of them nothing hides, the optimizer, and what the loader cannot deliver in that time. All times are seconds.
 * Shares are even, as the engine's are by default. Accurate as far as the profile is; docs/predicting.md has measured errors.
 * SPDX-License-Identifier: MIT */
#ifndef MURAL_FORECAST_H
#define MURAL_FORECAST_H

#include "mural/cluster.h"
#include "mural/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mural_forecast mural_forecast;

typedef struct mural_forecast_settings {
	const mural_config *config; /* model, batch, precision, optimizer, overlap, buckets; copied */
	const mural_cluster *cluster; /* borrowed for the forecast's life */
	mural_placement placement; /* in which order its devices join */
	uint64_t images; /* of the training set; 0: not known, then nothing is said of epochs */
} mural_forecast_settings;

/* What is asked. 0: the configuration's own. */
typedef struct mural_forecast_point {
	int ranks;
	uint64_t micro_batch, accumulation; /* images per rank and micro-batch; micro-batches per step */
	double uplink_bytes_per_second; /* as if every link between nodes had this bandwidth */
	double slowest_uplink_at_least; /* as if none were slower than this */
	bool sharded; /* by zero_stage, which the engine does not run yet; else stage 0 */
	int zero_stage; /* 0 .. 3 */
} mural_forecast_point;

typedef struct mural_forecast_step {
	int ranks, nodes;
	uint64_t micro_batch, accumulation;
	/* seconds; data + forward + backward + exposed + optimizer = seconds */
	double data; /* waiting for the loader */
	double forward, backward; /* all micro-batches of the step */
	double exposed, hidden; /* communication that is waited for, and that is not */
	double optimizer;
	double seconds;
	double bytes; /* that a rank hands to collectives */
	double ring_bytes; /* that it sends, and receives, in a ring */
	double images, images_per_second; /* of all ranks */
	double price_per_hour, watts; /* of all devices in use; 0: some are not told */
	/* Who the step waits for. */
	uint32_t slowest_device; /* of cluster->devices */
	int slowest_rank; /* the first with it */
	double slowness; /* its compute over that of the fastest device in use; 1: all are alike */
	int slowest_node; /* node whose uplink is the slowest in use, from 0; -1: one node */
	uint32_t slowest_entry; /* of cluster->nodes */
	double slowest_uplink,
	        other_uplinks; /* bytes per second; the second: the slowest of the others, 0 if there is none */
} mural_forecast_step;

/* MURAL_USAGE for a device whose speed nobody tells (file:line: its name). The caller frees *forecast. */
MURAL_API mural_status mural_forecast_create(mural_forecast **forecast, const mural_forecast_settings *settings,
                                             mural_error *err);
MURAL_API void mural_forecast_free(mural_forecast *forecast);

/* MURAL_USAGE if the cluster has fewer devices than ranks. One thread at a time. */
MURAL_API mural_status mural_forecast_at(mural_forecast *forecast, const mural_forecast_point *point,
                                         mural_forecast_step *step, mural_error *err);

/* Seconds of an epoch of settings.images with steps of the point's size, the short last one included; 0 if they are not known. */
MURAL_API mural_status mural_forecast_epoch(mural_forecast *forecast, const mural_forecast_point *point,
                                            uint64_t images, double *seconds, mural_error *err);

/* ---- scaling ---- */

#define MURAL_FORECAST_ROWS 20 /* 1, 2, 4, ... 65536 devices, and all of them */

/* So many devices, each with the configuration's micro-batch and accumulation: the global batch grows with them. */
typedef struct mural_forecast_row {
	mural_forecast_step step;
	double efficiency; /* weak: a step's seconds on one device over these; each device brings its own images */
	double epoch; /* strong: seconds of an epoch of settings.images, which all share; 0: they are not known */
	double strong_efficiency; /* one device's epoch / epoch / devices: short last steps count, too */
	/* The configuration's own global batch, divided among the devices; 0: fewer images than devices. */
	double same_batch_seconds, same_batch_efficiency;
	double money, joules; /* of an epoch; 0: not known */
} mural_forecast_row;

/* Rows of 1, 2, 4, ... devices up to `most`. MURAL_USAGE if the cluster has fewer. */
MURAL_API mural_status mural_forecast_scaling(mural_forecast *forecast, int most,
                                              mural_forecast_row rows[MURAL_FORECAST_ROWS], size_t *n,
                                              mural_error *err);

/* ---- what people ask ---- */

typedef struct mural_forecast_answers {
	/* Devices: from how many on is weak efficiency below 80 %? */
	int looked_at, inefficient_from; /* 0: not up to looked_at */
	double last_efficiency; /* there */
	/* Batch: the smallest micro-batch with 95 % of the images per second of the largest one that fits. */
	uint64_t batch, largest_batch;
	double batch_images_per_second, best_images_per_second;
	/* Network: a step as described, on the ranks asked for, or on all of looked_at where those are in one node; and its seconds with
	 * 10 Gb/s (1.25 GB/s) between nodes; 0: there is one node. */
	mural_forecast_step network;
	double ten_gigabit_seconds;
	/* And if the slowest uplink were as fast as the slowest of the others; 0: they are alike. */
	double even_uplinks_seconds;
} mural_forecast_answers;

/* ranks: for batch and network. most: devices looked at. largest_batch: what memory allows (mural_plan_memory); 0: not known, then
 * 1024 is taken. */
MURAL_API mural_status mural_forecast_answer(mural_forecast *forecast, int ranks, int most, uint64_t largest_batch,
                                             mural_forecast_answers *answers, mural_error *err);

/* ---- memory under ZeRO, by formula ---- */

/* Bytes of a rank's state. The engine runs stage 0 alone so far; the others are what they would be. */
typedef struct mural_forecast_state {
	double parameters, gradients, optimizer;
	double gathered; /* stage 3: two whole units while computing */
	double total;
} mural_forecast_state;

MURAL_API mural_forecast_state mural_forecast_memory(const mural_forecast *forecast, int zero_stage, int ranks);

/* ---- the whole plan as a file ---- */

typedef struct mural_forecast_plan {
	mural_forecast *forecast;
	int ranks;
	const mural_memory_plan *memory; /* the engine's own, on this machine; NULL: not asked */
	mural_forecast_step step; /* on `ranks` devices */
	size_t n_rows;
	mural_forecast_row rows[MURAL_FORECAST_ROWS];
	mural_forecast_answers answers;
} mural_forecast_plan;

/* JSON, written whole or not at all. */
MURAL_API mural_status mural_forecast_write_json(const mural_forecast_plan *plan, const char *path, mural_error *err);

/* Where speeds come from, for people: "measured for this model", "measured for other models", "as described", "known by its name, a
 * guess", "guessed from the processor's clock"; of rank 0's device. */
MURAL_API const char *mural_forecast_source(const mural_forecast *forecast);

/* Times of collectives worked out so far: what a forecast costs. */
MURAL_API uint64_t mural_forecast_collectives(const mural_forecast *forecast);

/* This machine as a cluster of one node: a device per core, guessed from the processor's name or clock. The caller frees with
 * mural_cluster_free. */
MURAL_API mural_status mural_cluster_here(mural_cluster **cluster, mural_error *err);

#ifdef __cplusplus
}
#endif
#endif
