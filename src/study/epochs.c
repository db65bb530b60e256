/* Reading rows of epochs. SPDX-License-Identifier: MIT */
#include "study/epochs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/nearest.h"

#define MOST_GPUS 1000000
#define MOST_BATCH 1000000000

enum { CLUSTER, GPU, PLACEMENT, DATASET, GPUS, PRECISION, BATCH, FRACTION, MEDIAN, MEAN, IMAGES, COLUMNS };
static const char *const column_names[COLUMNS] = {"cluster",
                                                  "gpu",
                                                  "placement",
                                                  "dataset",
                                                  "gpus",
                                                  "precision",
                                                  "batch_per_gpu",
                                                  "dataset_fraction",
                                                  "epoch_seconds_median",
                                                  "epoch_seconds_mean",
                                                  "images_per_epoch"};

static const char *const precision_names[MU_PRECISIONS] = {"fp32", "tf32", "fp16", "bf16"};

const char *mu_precision_text(mu_precision precision)
{
	return precision_names[precision];
}

static uint64_t images_of(const char *dataset, uint64_t others)
{
	static const struct {
		const char *name;
		uint64_t images; /* of the training set */
	} known[] = {{"CIFAR-10", 50000},      {"CIFAR-100", 50000}, {"CIFAR10", 50000},       {"CIFAR100", 50000},
	             {"Fashion-MNIST", 60000}, {"MNIST", 60000},     {"ImageNet-1k", 1281167}, {"ImageNet", 1281167}};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (strcasecmp(dataset, known[i].name) == 0)
			return known[i].images;
	return others;
}

/* A finite number that takes the whole cell. */
static bool number_of(const char *cell, double *value)
{
	char *end;
	*value = strtod(cell, &end);
	return end != cell && *end == '\0' && isfinite(*value);
}

/* A whole number of [1, most]; false leaves the reason in the row. */
static bool whole_of(mu_epoch_row *row, const char *name, const char *cell, double most, uint32_t *value)
{
	double number;
	if (number_of(cell, &number) && number >= 1 && number <= most && number == floor(number)) {
		*value = (uint32_t)number;
		return true;
	}
	snprintf(row->why, sizeof row->why, "%s: expected a whole number from 1 to %.0f, found \"%.40s\"", name, most,
	         cell);
	return false;
}

static bool precision_of(mu_epoch_row *row, const char *cell)
{
	for (int p = 0; p < MU_PRECISIONS; p++)
		if (strcasecmp(cell, precision_names[p]) == 0) {
			row->precision = (mu_precision)p;
			return true;
		}
	snprintf(row->why, sizeof row->why, "precision: expected fp32, tf32, fp16 or bf16, found \"%.40s\"", cell);
	return false;
}

/* Positive seconds, or NaN for an empty cell. */
static bool seconds_of(mu_epoch_row *row, const char *name, const char *cell, double *seconds)
{
	*seconds = NAN;
	if (*cell == '\0' || (number_of(cell, seconds) && *seconds > 0))
		return true;
	snprintf(row->why, sizeof row->why, "%s: expected seconds above 0, found \"%.40s\"", name, cell);
	return false;
}

/* Images of one epoch: as the row says, or the data set's times the fraction. */
static bool count_images(mu_epoch_row *row, const char *cell, double fraction, uint64_t others)
{
	uint32_t told;
	if (*cell) {
		if (!whole_of(row, column_names[IMAGES], cell, UINT32_MAX, &told))
			return false;
		row->images = told;
		return true;
	}
	uint64_t images = images_of(row->dataset, others);
	row->images = (uint64_t)llround((double)images * fraction);
	if (row->images > 0)
		return true;
	if (images == 0)
		snprintf(row->why, sizeof row->why,
		         "the number of images of data set \"%.40s\" is not known: give it with --images",
		         row->dataset);
	else
		snprintf(row->why, sizeof row->why, "dataset_fraction %g leaves no image", fraction);
	return false;
}

static void fill_row(mu_epoch_row *row, char **cells, const int column[COLUMNS], uint64_t others)
{
	double fraction, mean = NAN;
	row->cluster = cells[column[CLUSTER]];
	row->gpu = cells[column[GPU]];
	row->placement = cells[column[PLACEMENT]];
	row->dataset = cells[column[DATASET]];
	row->seconds = NAN;
	if (!whole_of(row, "gpus", cells[column[GPUS]], MOST_GPUS, &row->gpus) ||
	    !whole_of(row, "batch_per_gpu", cells[column[BATCH]], MOST_BATCH, &row->batch) ||
	    !precision_of(row, cells[column[PRECISION]]))
		return;
	if (!number_of(cells[column[FRACTION]], &fraction) || fraction <= 0 || fraction > 1) {
		snprintf(row->why, sizeof row->why,
		         "dataset_fraction: expected a number above 0 and at most 1, found \"%.40s\"",
		         cells[column[FRACTION]]);
		return;
	}
	if (column[MEDIAN] >= 0 && !seconds_of(row, column_names[MEDIAN], cells[column[MEDIAN]], &row->seconds))
		return;
	if (column[MEAN] >= 0 && !seconds_of(row, column_names[MEAN], cells[column[MEAN]], &mean))
		return;
	if (!count_images(row, column[IMAGES] >= 0 ? cells[column[IMAGES]] : "", fraction, others))
		return;
	row->steps = ceil(ceil((double)row->images / row->gpus) / row->batch);
	row->spread = isnan(mean) || isnan(row->seconds) ? 0 : fabs(mean / row->seconds - 1);
}

static mural_status find_columns(const mu_csv_table *table, bool measured, int column[COLUMNS], mural_error *err)
{
	for (int c = 0; c < COLUMNS; c++) {
		column[c] = mu_csv_table_column(table, column_names[c]);
		if (column[c] >= 0 || c >= MEAN || (c == MEDIAN && !measured))
			continue;
		const char *near =
		        mu_nearest(column_names[c], (const char *const *)table->header.cells, table->n_columns);
		char where[512];
		snprintf(where, sizeof where, "%.480s:%u", table->path, table->header.line);
		return mu_fail(err, MURAL_DATA, where, "there is no column \"%s\"%s%.60s%s", column_names[c],
		               near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
	}
	return MURAL_OK;
}

mural_status mu_epochs_read(mu_epochs *epochs, const char *path, bool measured, uint64_t images, mural_error *err)
{
	int column[COLUMNS];
	*epochs = (mu_epochs){0};
	MU_TRY(mu_csv_table_read(&epochs->table, path, err));
	const mu_csv_table *table = &epochs->table;
	mural_status status = find_columns(table, measured, column, err);
	if (status == MURAL_OK && table->n_rows == 0)
		status = mu_fail(err, MURAL_DATA, path, "the file has a line of columns and no row");
	if (status == MURAL_OK && !(epochs->rows = calloc(table->n_rows, sizeof *epochs->rows)))
		status = mu_fail(err, MURAL_OUT_OF_MEMORY, path, "no memory for %zu rows", table->n_rows);
	if (status != MURAL_OK) {
		mu_epochs_release(epochs);
		return status;
	}
	for (size_t r = 0; r < table->n_rows; r++) {
		epochs->rows[r].line = table->rows[r].line;
		fill_row(&epochs->rows[r], table->rows[r].cells, column, images);
	}
	return MURAL_OK;
}

void mu_epochs_release(mu_epochs *epochs)
{
	mu_csv_table_release(&epochs->table);
	free(epochs->rows);
	*epochs = (mu_epochs){0};
}
