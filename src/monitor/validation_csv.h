/* validation.csv: one row per evaluation on the validation images. SPDX-License-Identifier: MIT */
#ifndef MU_MONITOR_VALIDATION_CSV_H
#define MU_MONITOR_VALIDATION_CSV_H

#include <stdint.h>

#include "monitor/csv.h"

typedef struct mu_validation_row {
	uint64_t step, epoch; /* from 1 */
	double loss, accuracy, top5; /* means over all images, all ranks */
	bool best; /* better than all before: a checkpoint of these weights was written */
	double seconds;
} mu_validation_row;

#define MU_VALIDATION_STEP 0 /* number of the column */

/* Columns: step, epoch, loss, accuracy, top5, best (1 or 0), seconds. */
mural_status mu_validation_open(mu_csv *csv, const char *path, mural_error *err);
mural_status mu_validation_write(mu_csv *csv, const mu_validation_row *row, mural_error *err);

#endif
