/* How long a rank computes for n images, learned while it does: seconds = a x micro-batches + b x images.
 *
 * A Kalman filter over (a, b). What changes with time is the speed of the whole device, so the process noise lies along (a, b)
 * itself: a rank that is seen with one share only keeps its belief of how a and b divide, however long that lasts, and nothing
 * wanders where nothing is measured. A row that differs from what is expected by more than the noise explains is set aside once (a
 * busy moment); if the next one agrees with it, the device has changed, and both a and b follow at once.
 *
 * Invariants: a >= 0, b > 0 once something is known; the same rows give the same bits.
 * SPDX-License-Identifier: MIT */
#ifndef MU_ENGINE_BALANCE_MODEL_H
#define MU_ENGINE_BALANCE_MODEL_H

#include <stdbool.h>

typedef struct mu_balance_model { /* zero-initialise; then mu_balance_model_begin where something is known beforehand */
	double a, b; /* seconds per micro-batch and per image; b 0: nothing is known */
	double aa, ab, bb; /* their covariance */
	double noise; /* relative, of one row */
	double suspect; /* measured / expected of the row before, if that was set aside; else 0 */
	double drift; /* the factor by which the last row changed the device's speed, 0: it did not */
	bool told; /* a and b are from a description, nothing was measured yet */
} mu_balance_model;

void mu_balance_model_begin(mu_balance_model *model, double seconds_per_micro, double seconds_per_image);

/* One row: so many images in so many micro-batches took so long. All > 0. */
void mu_balance_model_see(mu_balance_model *model, double images, double micro_batches, double seconds);

/* n images in micro-batches of at most `micro`. */
double mu_balance_micro_batches(int images, int micro);

/* Expected seconds; 0 for no images. micro: images of a micro-batch. */
double mu_balance_model_seconds(const mu_balance_model *model, int images, int micro);
/* The standard error of that, as a fraction of it. */
double mu_balance_model_error(const mu_balance_model *model, int images, int micro);

#endif
