/* Inside a calibration: what is trained, what came out, what was fitted. SPDX-License-Identifier: MIT */
#ifndef MU_STUDY_CALIBRATE_INSIDE_H
#define MU_STUDY_CALIBRATE_INSIDE_H

#include "engine/work.h"
#include "mural/calibrate.h"
#include "study/training.h"

/* What a training is for. */
typedef enum mu_aim {
	MU_AIM_ANY, /* rates of any model */
	MU_AIM_MODEL, /* rates of the configuration's own */
	MU_AIM_LINK, /* almost only communication */
	MU_AIM_LOADER /* almost only loading */
} mu_aim;

typedef struct mu_probe {
	mu_aim aim;
	const char *model, *side; /* MODEL: NULL */
	uint32_t batch; /* images per rank */
	uint32_t ranks;
	mural_config config; /* as its training resolves it */
	/* of the model */
	double units, parameters, elements, flops, values; /* the last two of an image; flops forward and backward */
	mu_run_facts facts; /* medians over the rounds */
} mu_probe;

#define MU_PROBES 40

typedef struct mu_calibration {
	const mural_calibrate_settings *settings;
	mural_config config; /* the given one, or defaults */
	bool has_model;
	uint32_t ranks;
	size_t n;
	mu_probe probes[MU_PROBES];
} mu_calibration;

/* calibrate_probes.c: what will be trained. */
mural_status mu_calibration_plan(mu_calibration *c, mural_error *err);
/* Arguments of a probe's training, after the given configuration where it is the model's own. */
void mu_probe_arguments(const mu_calibration *c, const mu_probe *probe, mu_command *command);

/* calibrate_fit.c: rates, at most MURAL_CLUSTER_RATES; found's errors and link are filled. */
mural_status mu_calibration_fit(const mu_calibration *c, mural_cluster *cluster, mural_calibration *found,
                                mural_error *err);

/* calibrate_write.c */
mural_status mu_calibration_write(const mu_calibration *c, const mural_cluster *cluster, const mural_calibration *found,
                                  mural_error *err);

#endif
