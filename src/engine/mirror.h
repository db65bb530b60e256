/* A store where the host can work on it: for first weights, files and broadcasts, never within a step.
 *
 * Where the host shares the device's memory the mirror is the store itself; elsewhere it is a copy in host memory that lives as
 * long as it is open.
 * SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_MIRROR_H
#define MU_ENGINE_MIRROR_H

#include "device/device.h"
#include "engine/store.h"

typedef enum mu_mirror_part {
	MU_MIRROR_WEIGHTS, /* fp32 weights: masters, or parameters that are their own */
	MU_MIRROR_ALL /* and moments and average */
} mu_mirror_part;

typedef struct mu_mirror {
	mu_store store; /* without the spans that are not mirrored; borrows the original's tables */
	const mu_store *original;
	const mu_device *device;
	bool shared; /* the spans are the original's */
} mu_mirror;

/* The store as it is now (read), or with undefined contents. On failure nothing stays open. */
mural_status mu_mirror_open(mu_mirror *mirror, const mu_store *store, const mu_device *device, bool shared,
                            mu_mirror_part part, bool read, mural_error *err);
/* Back to the device. Narrow parameters do not follow their masters yet. */
mural_status mu_mirror_write(mu_mirror *mirror, mural_error *err);
void mu_mirror_close(mu_mirror *mirror);

#endif
