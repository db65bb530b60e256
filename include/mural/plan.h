/* Plans: what a run will do, computed from its configuration without running it.
 *
 *     mural_schedule_plan plan;
 *     mural_plan_schedule(&plan, &config, images, &err);
 *     mural_plan_schedule_at(&plan, update, &lr);
 *     mural_plan_schedule_write_csv(&plan, "lr.csv", &err);
 *
 * SPDX-License-Identifier: MIT */
#ifndef MURAL_PLAN_H
#define MURAL_PLAN_H

#include <stddef.h>

#include "mural/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The learning rate over a run. */
typedef struct mural_schedule_plan {
	mural_schedule_config schedule; /* with the run's length filled in */
	mural_optimizer_config optimizer;
	uint64_t steps_per_epoch, steps; /* optimizer updates, of an epoch and of the run */
	double lowest, highest; /* learning rates in it */
	double first, last;
} mural_schedule_plan;

/* images: of the training set (mural_data_facts.images); decides how many updates an epoch has, so that the plan is the run's own.
 * MURAL_USAGE if an epoch has no update. */
MURAL_API mural_status mural_plan_schedule(mural_schedule_plan *plan, const mural_config *config, uint64_t images,
                                           mural_error *err);
/* Learning rate and beta1 of update n, from 1. beta1 may be NULL. */
MURAL_API double mural_plan_schedule_at(const mural_schedule_plan *plan, uint64_t n, double *beta1);

/* A plot of `columns` by `rows` characters with its axes, in plain ASCII. */
MURAL_API void mural_plan_schedule_plot(const mural_schedule_plan *plan, FILE *out, int columns, int rows);

/* A row per update: step, epoch, learning_rate, beta1. */
MURAL_API mural_status mural_plan_schedule_write_csv(const mural_schedule_plan *plan, const char *path,
                                                     mural_error *err);
/* The plan's numbers, and the learning rate of up to 500 evenly spread updates. */
MURAL_API mural_status mural_plan_schedule_write_json(const mural_schedule_plan *plan, const char *path,
                                                      mural_error *err);
/* A figure that any browser shows, complete in itself. */
MURAL_API mural_status mural_plan_schedule_write_svg(const mural_schedule_plan *plan, const char *path,
                                                     mural_error *err);

/* What fits. */
typedef struct mural_memory_fit {
	uint64_t bytes; /* a rank may have so many; 0: filled with what is free here, divided among the ranks */
	uint64_t largest_micro_batch; /* filled; 0 if not even one image fits */
} mural_memory_fit;

/* Bytes that the engine plans for rank 0 of so many on this machine, to the byte what mural_engine_create would plan: the same code
 * measures. Nothing is allocated, no rank is started. settings->comm is not read; its data sets count as far as given. fit may be
 * NULL. Fails as mural_engine_create does, but not because something does not fit. */
MURAL_API mural_status mural_plan_memory(mural_memory_plan *plan, const mural_engine_settings *settings, int ranks,
                                         mural_memory_fit *fit, mural_error *err);

#ifdef __cplusplus
}
#endif
#endif
