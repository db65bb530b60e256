/* A store where the host can work on it: for first weights, files and broadcasts, never within a step.
 *
 * Where the host shares the device's memory the mirror is the store itself; elsewhere it is a copy in host memory that lives as
 * long as it is open. One that is opened in given memory is always a copy: of one moment, while the original goes on.
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
	bool shared, borrowed; /* the spans are the original's; they lie in somebody's memory */
} mu_mirror;

/* The store as it is now (read), or with undefined contents. On failure nothing stays open. */
mural_status mu_mirror_open(mu_mirror *mirror, const mu_store *store, const mu_device *device, bool shared,
                            mu_mirror_part part, bool read, mural_error *err);
/* The whole store as it is now, in `memory` of mu_mirror_bytes(store) bytes, borrowed while it is open. */
size_t mu_mirror_bytes(const mu_store *store);
mural_status mu_mirror_open_in(mu_mirror *mirror, const mu_store *store, const mu_device *device, void *memory,
                               mural_error *err);
/* Back to the device. Narrow parameters do not follow their masters yet. */
mural_status mu_mirror_write(mu_mirror *mirror, mural_error *err);
void mu_mirror_close(mu_mirror *mirror);

#endif
