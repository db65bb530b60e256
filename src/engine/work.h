/* What one step of a configuration computes, sends and keeps, unit by unit: for those who predict it. Nothing is allocated that
 * a training would need. SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_WORK_H
#define MU_ENGINE_WORK_H

#include "mural/config.h"

typedef struct mu_work_unit {
	double flops; /* forward, of one image */
	double elements; /* of its span, padding included */
} mu_work_unit;

typedef struct mu_work {
	size_t n_units;
	mu_work_unit *units;
	size_t first_trained; /* units before it have no backward and no gradients */
	double parameters; /* exact number */
	double elements; /* of all spans */
	double values_per_image; /* written by forward: mural_cluster_rate */
	double parameter_bytes, gradient_bytes, state_bytes; /* held per element, as the store holds them */
	double wire_bytes; /* of a gradient's element between ranks */
	double bucket_elements; /* most per bucket */
	double largest_unit; /* elements */
} mu_work;

/* ranks: gradients travel between so many. MURAL_USAGE for a configuration whose freezing names nothing. The caller releases. */
mural_status mu_work_init(mu_work *work, const mural_config *config, int ranks, mural_error *err);
void mu_work_release(mu_work *work);

#endif
