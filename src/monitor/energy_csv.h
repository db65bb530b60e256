/* energy.csv: what the training of each epoch used, all ranks together; evaluations and checkpoints are not in it. A number
 * that is not known is an empty field. SPDX-License-Identifier: MIT */
#ifndef MU_MONITOR_ENERGY_CSV_H
#define MU_MONITOR_ENERGY_CSV_H

#include <stdint.h>

#include "monitor/csv.h"

typedef struct mu_energy_row {
	uint64_t epoch; /* from 1 */
	uint64_t images;
	double seconds;
	double processor_joules, gpu_joules; /* NaN: not known */
	double joules; /* of all that took part; NaN unless everything is known */
} mu_energy_row;

#define MU_ENERGY_EPOCH 0 /* number of the column */

/* Columns: epoch, images, seconds, processor_joules, gpu_joules, watts, joules_per_image. */
mural_status mu_energy_csv_open(mu_csv *csv, const char *path, mural_error *err);
mural_status mu_energy_csv_write(mu_csv *csv, const mu_energy_row *row, mural_error *err);

#endif
