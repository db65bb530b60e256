/* metrics.csv: one row per rank and epoch, with exactly the header line of the study that Mural grew out of, so that
 * its analysis scripts read our files too. On a CPU the device columns describe the host; what is not known is empty.
 * SPDX-License-Identifier: MIT */
#ifndef MU_MONITOR_METRICS_CSV_H
#define MU_MONITOR_METRICS_CSV_H

#include <stdint.h>
#include <time.h>

#include "monitor/csv.h"
#include "monitor/host_stats.h"

#define MU_METRICS_HEADER                                                                                           \
	"Timestamp,Rank,Epoch,Computation_Time,GPU_ID,GPU_Name,GPU_Load,GPU_Free_Mem_MB,GPU_Used_Mem_MB,GPU_Total_" \
	"Mem_MB,"                                                                                                   \
	"GPU_Temp_C"

#define MU_METRICS_EPOCH 2 /* number of the column, from 0 */

typedef struct mu_metrics_row {
	time_t timestamp; /* written as UTC, 2026-01-31T12:34:56Z */
	int rank;
	uint64_t epoch; /* from 1, as people count */
	double seconds; /* wall time of the epoch's training part on this rank */
	mu_device_sample device;
} mu_metrics_row;

/* Opened by rank 0 only, which writes every rank's rows. Memory is written in MiB, as nvidia-smi counts. */
mural_status mu_metrics_open(mu_csv *csv, const char *path, mural_error *err);
mural_status mu_metrics_write(mu_csv *csv, const mu_metrics_row *row, mural_error *err);

#endif
