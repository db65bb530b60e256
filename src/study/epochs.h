/* Measured (or wanted) epochs: rows of a CSV file with the columns of the study's epoch-times.csv.
 *
 *     cluster,gpu,placement,dataset,gpus,precision,batch_per_gpu,dataset_fraction,epoch_seconds_median
 *
 * and, if there, epoch_seconds_mean and images_per_epoch (otherwise the data set's size times the fraction); other columns are
 * carried along unread. A step is what all GPUs do with one batch
 * each, so an epoch of N images on n GPUs has ceil(ceil(N / n) / batch) steps: ranks take equal shares, the last one is short.
 * SPDX-License-Identifier: MIT */
#ifndef MU_STUDY_EPOCHS_H
#define MU_STUDY_EPOCHS_H

#include <stdint.h>

#include "study/csv_table.h"

typedef enum mu_precision { MU_FP32, MU_TF32, MU_FP16, MU_PRECISION_BF16, MU_PRECISIONS } mu_precision;

/* What a row belongs to. Strings live as long as the table. */
typedef struct mu_epoch_row {
	const char *cluster, *gpu, *placement, *dataset;
	mu_precision precision;
	unsigned line;
	uint32_t gpus;
	uint32_t batch; /* images per GPU and step */
	uint64_t images; /* of one epoch: the data set's, times the fraction used */
	double steps; /* of one epoch */
	double seconds; /* of one epoch, median; NaN: not measured */
	double spread; /* |mean / median - 1|, 0 if there is no mean: how much single epochs differed */
	char why[160]; /* what is wrong with the row; "" if nothing is */
} mu_epoch_row;

typedef struct mu_epochs {
	mu_csv_table table;
	mu_epoch_row *rows; /* [table.n_rows] */
} mu_epochs;

/* images: of one epoch of data sets whose name is not known here, 0 if not given. A row that cannot be used keeps its reason in
 * `why`; a missing column or a file that is no CSV is MURAL_DATA. measured: seconds must be there as a column. */
mural_status mu_epochs_read(mu_epochs *epochs, const char *path, bool measured, uint64_t images, mural_error *err);
void mu_epochs_release(mu_epochs *epochs);

/* Bytes of one gradient element as it travels. */
static inline double mu_precision_bytes(mu_precision precision)
{
	return precision == MU_FP16 || precision == MU_PRECISION_BF16 ? 2 : 4;
}

/* "fp32", ... */
const char *mu_precision_text(mu_precision precision);

#endif
