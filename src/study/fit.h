/* Fits measured epochs and predicts others: what one step of n GPUs costs, from rows of a few n, batches and precisions.
 *
 * Rows of one cluster and GPU make a pool. In a pool a step takes
 *
 *     t(n, batch, precision, placement) = A + B batch  +  [n > 1] K  +  R 2 (n - 1) / n gigabytes
 *
 *     A, B   per precision: seconds per step whatever the batch (launching), and per image
 *     K, R   per placement: what working together costs whatever n (synchronising), and seconds per gigabyte of gradients
 *            that a ring all-reduce sends and receives per GPU (Patarasuk and Yuan 2009)
 *
 * Measured epochs are noisy and few, so three hypotheses (K alone, R alone, both) are fitted, each robustly (ridge.h) with
 * every row weighted by how well its own epochs agree, and averaged by how well they explain the rows against how many
 * coefficients they need (Schwarz 1978). What is common to a group (placement, data set, batch, precision) beyond the model is
 * carried over in part: by m / (m + 3) for m rows. A placement with few rows is tied to the pool's best-known one.
 *
 * Data sets share A, B, K and R: a step does not know what its images show.
 *
 *     mu_fit *fit;
 *     MU_TRY(mu_fit_create(&fit, &settings, &epochs, err));
 *     if (mu_fit_predict(fit, &row, &seconds, why, sizeof why)) ... else say why not
 *     mu_fit_free(fit);
 * SPDX-License-Identifier: MIT */
#ifndef MU_STUDY_FIT_H
#define MU_STUDY_FIT_H

#include <stdbool.h>

#include "mural/cluster.h"
#include "study/epochs.h"

typedef struct mu_fit mu_fit;

/* With a described cluster, rows of that name also know their devices and links: compute takes as long as on the slowest device
 * among the first n (A and B are those of the first device), and R becomes a factor on the time that the slowest link in use
 * needs, expected to be 1. So a slow card and a slow link that no row has seen yet are told apart and predicted. */
typedef struct mu_fit_settings {
	double parameters; /* of the model, > 0: its gradients are what travels */
	double flops_per_image; /* forward and backward; used for devices that are described by their speed */
	const mural_cluster *cluster; /* NULL: none is described; borrowed, and outlives the fit */
	mural_placement placement; /* in which order its devices join */
} mu_fit_settings;

/* Uses the rows that have seconds; copies nothing, so epochs must outlive the fit. MURAL_DATA if a measured row cannot be used
 * (path:line and the reason) or none has seconds. The caller frees *fit. */
mural_status mu_fit_create(mu_fit **fit, const mu_fit_settings *settings, const mu_epochs *epochs, mural_error *err);
void mu_fit_free(mu_fit *fit);

/* Seconds per epoch; false and a reason if the measured rows cannot tell. */
bool mu_fit_predict(const mu_fit *fit, const mu_epoch_row *row, double *seconds, char *why, size_t why_bytes);

/* The rows used, and those left out because they have no seconds. */
size_t mu_fit_rows_used(const mu_fit *fit);
size_t mu_fit_rows_empty(const mu_fit *fit);

/* One line per pool and hypothesis: weight and coefficients in words. */
void mu_fit_describe(const mu_fit *fit, FILE *out);

#endif
