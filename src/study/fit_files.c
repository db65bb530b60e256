/* Fitting and predicting files. SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/json.h"
#include "base/number.h"
#include "mural/fit.h"
#include "study/fit.h"
#include "study/median.h"

struct mural_fit {
	char path[1024];
	uint64_t images;
	mu_epochs measured;
	mu_fit *fit;
};

mural_status mural_fit_create(mural_fit **fit, const char *measured, const mural_fit_settings *settings,
                              mural_error *err)
{
	*fit = NULL;
	if (!(settings->parameters > 0 && isfinite(settings->parameters)))
		return mu_fail(err, MURAL_USAGE, NULL, "the model's number of parameters must be above 0, not %g",
		               settings->parameters);
	mural_fit *made = calloc(1, sizeof *made);
	if (!made)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory to fit %s", measured);
	mural_status status = MURAL_OK;
	made->images = settings->images;
	if (snprintf(made->path, sizeof made->path, "%s", measured) >= (int)sizeof made->path)
		MU_TRY_OUT(mu_fail(err, MURAL_USAGE, NULL, "the path is too long: %.200s...", measured));
	MU_TRY_OUT(mu_epochs_read(&made->measured, made->path, true, settings->images, err));
	mu_fit_settings inner = {.parameters = settings->parameters,
	                         .flops_per_image = settings->flops_per_image,
	                         .cluster = settings->cluster,
	                         .placement = settings->placement};
	MU_TRY_OUT(mu_fit_create(&made->fit, &inner, &made->measured, err));
	*fit = made;
	return MURAL_OK;
out:
	mural_fit_free(made);
	return status;
}

void mural_fit_free(mural_fit *fit)
{
	if (!fit)
		return;
	mu_fit_free(fit->fit);
	mu_epochs_release(&fit->measured);
	free(fit);
}

void mural_fit_describe(const mural_fit *fit, FILE *out)
{
	mu_fit_describe(fit->fit, out);
}

static void sum_up(double *errors, mural_fit_summary *summary)
{
	if (summary->compared == 0)
		return;
	summary->median_error = mu_median(errors, summary->compared);
	summary->p90_error = mu_quantile(errors, summary->compared, 0.9);
	summary->max_error = mu_quantile(errors, summary->compared, 1);
}

static void write_row(const mu_csv_row *csv, const mu_epoch_row *row, double predicted, FILE *out)
{
	char seconds[MU_NUMBER_SIZE], error[MU_NUMBER_SIZE] = "";
	if (!isnan(row->seconds))
		mu_number_fixed(predicted / row->seconds - 1, 6, error);
	fprintf(out, "%s,%s,%s\n", csv->raw, mu_number_fixed(predicted, 3, seconds), error);
}

static mural_status refuse_columns(const mu_csv_table *table, mural_error *err)
{
	static const char *const ours[] = {"predicted_seconds", "relative_error"};
	for (int i = 0; i < 2; i++)
		if (mu_csv_table_column(table, ours[i]) >= 0)
			return mu_fail(err, MURAL_DATA, table->path,
			               "the file already has a column \"%s\": it would be there twice", ours[i]);
	return MURAL_OK;
}

static mural_status predict_rows(const mural_fit *fit, const mu_epochs *epochs, FILE *out, mural_fit_reason *reason,
                                 void *user, mural_fit_summary *summary, mural_error *err)
{
	double *errors = calloc(epochs->table.n_rows, sizeof *errors);
	if (!errors)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, epochs->table.path, "no memory for %zu rows",
		               epochs->table.n_rows);
	fprintf(out, "%s,predicted_seconds,relative_error\n", epochs->table.header.raw);
	for (size_t r = 0; r < epochs->table.n_rows; r++) {
		const mu_epoch_row *row = &epochs->rows[r];
		double seconds;
		char why[256];
		if (!mu_fit_predict(fit->fit, row, &seconds, why, sizeof why)) {
			fprintf(out, "%s,,\n", epochs->table.rows[r].raw);
			if (reason)
				reason(user, row->line, why);
			continue;
		}
		write_row(&epochs->table.rows[r], row, seconds, out);
		summary->predicted++;
		if (!isnan(row->seconds))
			errors[summary->compared++] = fabs(seconds / row->seconds - 1);
	}
	sum_up(errors, summary);
	free(errors);
	if (fflush(out) != 0 || ferror(out))
		return mu_fail(err, MURAL_FAILED, NULL, "cannot write the predictions: %s", strerror(errno));
	return MURAL_OK;
}

mural_status mural_fit_predict(const mural_fit *fit, const char *wanted, FILE *out, mural_fit_reason *reason,
                               void *user, mural_fit_summary *summary, mural_error *err)
{
	mu_epochs epochs;
	*summary = (mural_fit_summary){.fitted = mu_fit_rows_used(fit->fit), .empty = mu_fit_rows_empty(fit->fit)};
	MU_TRY(mu_epochs_read(&epochs, wanted, false, fit->images, err));
	summary->wanted = epochs.table.n_rows;
	mural_status status = refuse_columns(&epochs.table, err);
	if (status == MURAL_OK)
		status = predict_rows(fit, &epochs, out, reason, user, summary, err);
	mu_epochs_release(&epochs);
	return status;
}

mural_status mural_fit_predict_to(const mural_fit *fit, const char *wanted, const char *path, mural_fit_reason *reason,
                                  void *user, mural_fit_summary *summary, mural_error *err)
{
	mu_file file = {0};
	MU_TRY(mu_file_begin(&file, path, err));
	mural_status status = mural_fit_predict(fit, wanted, file.out, reason, user, summary, err);
	if (status == MURAL_OK)
		return mu_file_commit(&file, err);
	mu_file_abandon(&file);
	return status;
}

mural_status mural_fit_write_json(const char *path, const mural_fit_summary *summary, mural_error *err)
{
	mu_file file = {0};
	mu_json json;
	MU_TRY(mu_file_begin(&file, path, err));
	mu_json_init(&json, file.out, MU_JSON_PRETTY);
	mu_json_object_begin(&json, NULL);
	mu_json_unsigned(&json, "fitted_rows", summary->fitted);
	mu_json_unsigned(&json, "unmeasured_rows", summary->empty);
	mu_json_unsigned(&json, "wanted_rows", summary->wanted);
	mu_json_unsigned(&json, "predicted_rows", summary->predicted);
	mu_json_unsigned(&json, "compared_rows", summary->compared);
	if (summary->compared > 0) {
		mu_json_number(&json, "median_error", summary->median_error);
		mu_json_number(&json, "p90_error", summary->p90_error);
		mu_json_number(&json, "max_error", summary->max_error);
	}
	mu_json_object_end(&json);
	return mu_file_commit(&file, err);
}
