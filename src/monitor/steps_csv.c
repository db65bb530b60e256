/* steps.csv. SPDX-License-Identifier: MIT */
#include "monitor/steps_csv.h"

#define MU_X(name, text) "," text "_seconds"
static const char header[] = "step,epoch,loss,learning_rate,gradient_norm,images" MU_PHASE_LIST(
        MU_X) ",loss_scale,applied_steps,skipped_steps";
#undef MU_X

mural_status mu_steps_open(mu_csv *csv, const char *path, mural_error *err)
{
	return mu_csv_open(csv, path, header, err);
}

mural_status mu_steps_write(mu_csv *csv, const mu_steps_row *row, mural_error *err)
{
	mu_csv_unsigned(csv, row->step);
	mu_csv_unsigned(csv, row->epoch);
	mu_csv_number(csv, row->loss);
	mu_csv_number(csv, row->learning_rate);
	mu_csv_number_or_empty(csv, row->gradient_norm);
	mu_csv_unsigned(csv, row->images);
	for (int phase = 0; phase < MU_PHASE_COUNT; phase++)
		mu_csv_fixed_or_empty(csv, row->seconds[phase], 6);
	mu_csv_number(csv, row->loss_scale);
	mu_csv_unsigned(csv, row->applied);
	mu_csv_unsigned(csv, row->skipped);
	return mu_csv_end_row(csv, err);
}
