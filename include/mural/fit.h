/* Predicting epochs from measured ones: what would 8 GPUs, another batch, another precision take?
 *
 * Files are CSV with the columns of the study's epoch-times.csv (docs/predicting.md): one row per (cluster, gpu, placement, dataset,
 * gpus, precision, batch_per_gpu, dataset_fraction) with the median seconds of an epoch. Rows of the first file are fitted,
 * rows of the second predicted; columns that are not named here are carried along.
 *
 *     mural_fit *fit;
 *     mural_fit_settings settings = {.parameters = 86567656};
 *     mural_fit_create(&fit, "measured.csv", &settings, &err);
 *     mural_fit_predict(fit, "wanted.csv", stdout, say_reason, NULL, &summary, &err);
 *     mural_fit_free(fit);
 * SPDX-License-Identifier: MIT */
#ifndef MURAL_FIT_H
#define MURAL_FIT_H

#include <stddef.h>
#include <stdint.h>

#include "mural/cluster.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mural_fit mural_fit;

typedef struct mural_fit_settings {
	double parameters; /* of the model that was trained, > 0: its gradients travel */
	double flops_per_image; /* forward and backward; needed with a cluster whose devices are described by speed, or known by name */
	const mural_cluster
	        *cluster; /* devices and links of the rows with its name; NULL: none; borrowed for the fit's life */
	mural_placement placement; /* in which order its devices join */
	uint64_t images; /* training images of data sets whose name is not known here; 0: such rows get a reason */
} mural_fit_settings;

typedef struct mural_fit_summary {
	size_t fitted; /* measured rows used */
	size_t empty; /* measured rows left out because they have no seconds */
	size_t wanted, predicted; /* rows of the second file */
	size_t compared; /* predicted rows that have measured seconds, too */
	double median_error, p90_error, max_error; /* |predicted / measured - 1| of those; 0 if there is none */
} mural_fit_summary;

/* Reads and fits. MURAL_DATA names path:line and what is wrong. The caller frees *fit. */
MURAL_API mural_status mural_fit_create(mural_fit **fit, const char *measured, const mural_fit_settings *settings,
                                        mural_error *err);
MURAL_API void mural_fit_free(mural_fit *fit);

/* Called for each wanted row that cannot be predicted, in the file's order. */
typedef void mural_fit_reason(void *user, unsigned line, const char *reason);

/* Writes the wanted file's rows to `out` with two columns appended: predicted_seconds and relative_error
 * (predicted / measured - 1; empty where there is no measured value). A row without a prediction gets two empty cells, and
 * `reason`, which may be NULL, is told why. */
MURAL_API mural_status mural_fit_predict(const mural_fit *fit, const char *wanted, FILE *out, mural_fit_reason *reason,
                                         void *user, mural_fit_summary *summary, mural_error *err);

/* The same into a file, written whole or not at all. */
MURAL_API mural_status mural_fit_predict_to(const mural_fit *fit, const char *wanted, const char *path,
                                            mural_fit_reason *reason, void *user, mural_fit_summary *summary,
                                            mural_error *err);

/* What was fitted, a line per cluster, GPU and hypothesis. */
MURAL_API void mural_fit_describe(const mural_fit *fit, FILE *out);

/* The summary as a JSON file, written whole or not at all. */
MURAL_API mural_status mural_fit_write_json(const char *path, const mural_fit_summary *summary, mural_error *err);

#ifdef __cplusplus
}
#endif
#endif
