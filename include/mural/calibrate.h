/* Measuring this machine for forecasts: a minute of short real trainings, fitted, written as a cluster file.
 *
 * Trainings predict trainings better than single operations do: threads, caches, loader, collectives and optimizer are as in the run
 * that is forecast. Some models that differ in width, tokens and batch are trained for a few steps with one rank and with as many as
 * asked for; from their steps come what an operation, a value, a parameter and a unit take (mural_cluster_rate), the optimizer's and
 * the loader's times, the link between ranks, and how much ranks wait for each other. A configuration that is given is measured,
 * too, and gets rates of its own. Load the machine with nothing else meanwhile.
 *
 *     mural_calibrate_settings settings = {.program = "/usr/bin/mural", .folder = "/tmp/calibration", .output = "here.json"};
 *     mural_calibration found;
 *     mural_calibrate(&settings, &found, &err);
 *     mural_cluster_read(&cluster, "here.json", &err);
 *
 * SPDX-License-Identifier: MIT */
#ifndef MURAL_CALIBRATE_H
#define MURAL_CALIBRATE_H

#include "mural/forecast.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mural_calibrate_settings {
	const char *program; /* path of `mural` */
	const char *folder; /* for the trainings' own folders; what lies there already is not measured again */
	const char *output; /* cluster file */
	/* A configuration as `mural train` takes it: its precision, optimizer and operations count for all; with a model and a batch of its
	 * own it is measured itself, at its micro-batch and at half of it. */
	const char *config_file; /* or NULL */
	int argc;
	const char *const *argv;
	uint32_t ranks; /* the most; 0: as many as there are cores */
	uint32_t rounds; /* of everything; 0: 1 */
	uint32_t steps; /* measured of each training; 0: 4 */
	FILE *progress; /* a line per training; NULL = silence */
	bool (*stop_asked)(void); /* may be NULL */
} mural_calibrate_settings;

typedef struct mural_calibration {
	size_t trainings;
	double seconds; /* that it took */
	double load_per_core; /* of the system before; above 0.3 figures are doubtful */
	/* How well the fitted rates give back the steps that they were fitted on. */
	double median_error, max_error;
	double link_bytes_per_second, link_latency; /* between ranks; 0 with one */
} mural_calibration;

/* MURAL_FAILED: a training failed, with its last words. MURAL_STOPPED: asked to. Nothing is written then. */
MURAL_API mural_status mural_calibrate(const mural_calibrate_settings *settings, mural_calibration *found,
                                       mural_error *err);

#ifdef __cplusplus
}
#endif
#endif
