/* The pace of an emulated device: compute takes as long as the described device would take, with the real work inside that time.
 *
 * A micro-batch of c images lasts seconds_per_batch + c x seconds_per_image: a third of it forward, two thirds backward, divided
 * over the units by their operations. After each unit's real work the rank waits until the unit's time is up, so buckets of
 * gradients become ready when they would on the device, and communication overlaps as there. The optimizer's update runs at this
 * machine's own speed.
 *
 * A machine that is too slow for the window would emulate something else without a word: late steps are counted and told, and
 * MU_PACE_LATE of them in a row are an error.
 * SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_PACE_H
#define MU_ENGINE_PACE_H

#include "model/vit.h"
#include "mural/engine.h"

enum {
	MU_PACE_LATE = 3
}; /* steps beyond their window by more than 5 %, in a row; the first ones of a run do not count */

typedef struct mu_pace { /* all zero: a real device, everything below does nothing */
	bool on;
	char name[MURAL_CLUSTER_NAME];
	double seconds_per_image, seconds_per_batch;
	double *until; /* [2 x units]: share of the window that has passed after forward of unit u, and at units + u after its backward */
	size_t n_units;
	double begun, window; /* of the micro-batch under way */
	double due; /* share of it that the units so far take; frozen ones go without backward */
	double step_window, step_real; /* seconds of the step under way */
	unsigned late_in_a_row;
	mural_pace_facts facts;
} mu_pace;

/* device NULL, or one whose speed is not told: a real one. */
mural_status mu_pace_init(mu_pace *pace, const mural_cluster_device *device, const mu_vit *vit, mural_error *err);
void mu_pace_release(mu_pace *pace);

void mu_pace_begin(mu_pace *pace, size_t images);
void mu_pace_forward(mu_pace *pace, size_t unit);
void mu_pace_backward(mu_pace *pace, size_t unit);
void mu_pace_end(mu_pace *pace); /* of the micro-batch */
/* After the last micro-batch of a step, before it waits for the others. */
mural_status mu_pace_end_step(mu_pace *pace, mural_error *err);

#endif
