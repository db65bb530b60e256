/* validation.csv. SPDX-License-Identifier: MIT */
#include "monitor/validation_csv.h"

mural_status mu_validation_open(mu_csv *csv, const char *path, mural_error *err)
{
	return mu_csv_open(csv, path, "step,epoch,loss,accuracy,top5,best,seconds", err);
}

mural_status mu_validation_write(mu_csv *csv, const mu_validation_row *row, mural_error *err)
{
	mu_csv_unsigned(csv, row->step);
	mu_csv_unsigned(csv, row->epoch);
	mu_csv_number(csv, row->loss);
	mu_csv_number(csv, row->accuracy);
	mu_csv_number(csv, row->top5);
	mu_csv_unsigned(csv, row->best);
	mu_csv_fixed_or_empty(csv, row->seconds, 6);
	return mu_csv_end_row(csv, err);
}
