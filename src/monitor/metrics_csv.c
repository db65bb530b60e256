/* metrics.csv. SPDX-License-Identifier: MIT */
#include "monitor/metrics_csv.h"

mural_status mu_metrics_open(mu_csv *csv, const char *path, mural_error *err)
{
	return mu_csv_open(csv, path, MU_METRICS_HEADER, err);
}

/* 0 bytes in total means that the device did not tell. */
static void memory(mu_csv *csv, const mu_device_sample *device, size_t bytes)
{
	if (device->total_bytes > 0)
		mu_csv_unsigned(csv, bytes >> 20);
	else
		mu_csv_text(csv, "");
}

mural_status mu_metrics_write(mu_csv *csv, const mu_metrics_row *row, mural_error *err)
{
	char text[64] = "";
	struct tm utc;
	if (gmtime_r(&row->timestamp, &utc))
		strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
	mu_csv_text(csv, text);
	mu_csv_unsigned(csv, (uint64_t)row->rank);
	mu_csv_unsigned(csv, row->epoch);
	mu_csv_fixed_or_empty(csv, row->seconds, 6);
	mu_csv_text(csv, row->device.id);
	mu_csv_text(csv, row->device.name);
	mu_csv_fixed_or_empty(csv, row->device.load, 1);
	memory(csv, &row->device, row->device.free_bytes);
	memory(csv, &row->device, row->device.used_bytes);
	memory(csv, &row->device, row->device.total_bytes);
	mu_csv_fixed_or_empty(csv, row->device.celsius, 1);
	return mu_csv_end_row(csv, err);
}
