/* Work that is the same at every step, captured once and replayed.
 *
 * What changes from step to step lies in device memory (kernels/ops.h), so the calls of a step are those of every step.
 * The first run of a piece of work is eager: libraries load what they need and may allocate. The second is captured, and
 * replayed from then on.
 *
 *     MU_TRY(mu_replay_run(&replay, &device, enabled, work, argument, err));
 *
 * SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_REPLAY_H
#define MU_ENGINE_REPLAY_H

#include "device/device.h"

/* Enqueues, does not wait, and does the same every time. */
typedef mural_status (*mu_replay_work)(void *argument, mural_error *err);

typedef struct mu_replay { /* zero-initialise */
	bool ran; /* eagerly, once */
	mu_graph *graph;
} mu_replay;

/* enabled: the device can capture, and this time may; otherwise the work is simply done. */
mural_status mu_replay_run(mu_replay *replay, const mu_device *device, bool enabled, mu_replay_work work,
                           void *argument, mural_error *err);
void mu_replay_release(mu_replay *replay, const mu_device *device);

#endif
