/* Inside a forecast: a configuration as work, a cluster as places, a device as speeds. SPDX-License-Identifier: MIT */
#ifndef MU_STUDY_FORECAST_INSIDE_H
#define MU_STUDY_FORECAST_INSIDE_H

#include "engine/cluster_links.h"
#include "engine/work.h"
#include "mural/device.h"
#include "mural/forecast.h"
#include "study/cost.h"

/* A rank's device with the work at hand. Seconds; those of a micro-batch are forward and backward together. */
typedef struct mu_speed {
	double per_image, per_batch;
	double per_parameter, per_update; /* of the optimizer */
	double wait_share, load; /* see mural_cluster_rate; load: of one image */
} mu_speed;

typedef enum mu_speed_source {
	MU_SPEED_UNKNOWN,
	MU_SPEED_GUESSED, /* table of known devices, or a processor's clock */
	MU_SPEED_DESCRIBED, /* seconds_per_image, tflops */
	MU_SPEED_MEASURED, /* rates of any model */
	MU_SPEED_MEASURED_HERE /* rates of this model */
} mu_speed_source;

struct mural_forecast {
	mural_forecast_settings settings;
	mural_config config;
	mu_work work;
	const mural_device_profile
	        *known[MURAL_CLUSTER_DEVICES]; /* by the cluster's devices; NULL: not known by name */
	mu_cost_unit *units; /* [work.n_units] */
	double flops; /* of one image, forward and backward */
	mural_place *places; /* [all devices] */
	mu_link_node *nodes; /* [all nodes] */
	uint32_t *on_node; /* [all nodes]: ranks there, of the point at hand */
	mu_speed_source source; /* of rank 0's device */
	uint64_t collectives;
};

/* forecast_device.c: the speed of a device that shares its node with so many ranks in all. */
mu_speed mu_forecast_speed(const mural_forecast *forecast, uint32_t device, uint32_t ranks_on_node,
                           mu_speed_source *source);

/* forecast.c: a step whose micro-batches hold so many images on each rank. */
mural_status mu_forecast_step_of(mural_forecast *forecast, const mural_forecast_point *point, double images,
                                 mural_forecast_step *step, mural_error *err);

#endif
