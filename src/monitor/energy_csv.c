/* energy.csv. SPDX-License-Identifier: MIT */
#include "monitor/energy_csv.h"

static const char header[] = "epoch,images,seconds,processor_joules,gpu_joules,watts,joules_per_image";

mural_status mu_energy_csv_open(mu_csv *csv, const char *path, mural_error *err)
{
	return mu_csv_open(csv, path, header, err);
}

mural_status mu_energy_csv_write(mu_csv *csv, const mu_energy_row *row, mural_error *err)
{
	mu_csv_unsigned(csv, row->epoch);
	mu_csv_unsigned(csv, row->images);
	mu_csv_fixed_or_empty(csv, row->seconds, 6);
	mu_csv_fixed_or_empty(csv, row->processor_joules, 3);
	mu_csv_fixed_or_empty(csv, row->gpu_joules, 3);
	mu_csv_fixed_or_empty(csv, row->joules / row->seconds, 3);
	mu_csv_fixed_or_empty(csv, row->joules / (double)row->images, 6);
	return mu_csv_end_row(csv, err);
}
