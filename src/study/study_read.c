/* What a run measured, from its folder: result.json and steps.csv. SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/hjson.h"
#include "study/csv_table.h"
#include "study/median.h"
#include "study/training.h"

#define RESULT_BYTES ((size_t)64 << 20)

static double number_of(const mu_hjson_value *object, const char *key)
{
	const mu_hjson_value *value = mu_hjson_member(object, key);
	return value && value->kind == MU_HJSON_NUMBER ? value->number.value : NAN;
}

/* The slowest rank's computing beyond the mean over ranks, per step. */
static double imbalance_of(const mu_hjson_value *load)
{
	return number_of(load, "slowest_seconds") - number_of(load, "mean_seconds");
}

static double late_of(const mu_hjson_value *root)
{
	const mu_hjson_value *emulation = mu_hjson_member(root, "emulation");
	return (number_of(emulation, "late_step_seconds") + number_of(emulation, "late_collective_seconds")) /
	       number_of(root, "seconds");
}

static mural_status read_result(const char *folder, mu_run_facts *facts, mural_error *err)
{
	char path[1100], *text;
	size_t bytes;
	mu_hjson *tree;
	snprintf(path, sizeof path, "%s/result.json", folder);
	MU_TRY(mu_file_read(path, "result file", RESULT_BYTES, MURAL_DATA, &text, &bytes, err));
	const mu_hjson_source source = {.name = path, .text = text, .bytes = bytes, .strict = true, .kind = MURAL_DATA};
	mural_status status = mu_hjson_read(&tree, &source, err);
	free(text);
	if (status != MURAL_OK)
		return status;
	const mu_hjson_value *root = mu_hjson_root(tree);
	facts->train_loss = number_of(root, "train_loss");
	facts->train_accuracy = number_of(root, "train_accuracy");
	facts->test_accuracy = number_of(root, "test_accuracy");
	facts->peak_memory_bytes = number_of(root, "peak_memory_bytes");
	facts->images_per_epoch = number_of(root, "images_per_epoch");
	facts->late = late_of(root);
	facts->imbalance = imbalance_of(mu_hjson_member(root, "load"));
	mu_hjson_free(tree);
	return MURAL_OK;
}

/* The columns of steps.csv that are wanted, and where their median goes. */
typedef struct wanted {
	const char *column;
	size_t field; /* offset of a double in mu_run_facts */
} wanted;

#define PHASES 6
static const wanted phases[PHASES] = {
        {"data_seconds", offsetof(mu_run_facts, data)},
        {"forward_seconds", offsetof(mu_run_facts, forward)},
        {"backward_seconds", offsetof(mu_run_facts, backward)},
        {"communication_exposed_seconds", offsetof(mu_run_facts, exposed)},
        {"optimizer_seconds", offsetof(mu_run_facts, optimizer)},
        {"communication_hidden_seconds", offsetof(mu_run_facts, hidden)},
};
enum { ADDED_UP = 5 }; /* the hidden ones are part of the others' time */

static mural_status column_of(const mu_csv_table *table, const char *name, int *column, mural_error *err)
{
	*column = mu_csv_table_column(table, name);
	return *column >= 0 ? MURAL_OK : mu_fail(err, MURAL_DATA, table->path, "there is no column \"%s\"", name);
}

/* Standard error of the median of `steps`, from their median absolute deviation: 1.4826 of it is a normal distribution's standard
 * deviation, and the median's error is 1.2533 / sqrt n of that. room: of n. */
static double error_of(double median, const double *steps, double *room, size_t n)
{
	for (size_t r = 0; r < n; r++)
		room[r] = fabs(steps[r] - median);
	return n > 1 ? 1.4826 * 1.2533 * mu_median(room, n) / sqrt((double)n) : NAN;
}

/* Medians over the rows from `first` on. */
static mural_status medians(const mu_csv_table *table, size_t first, mu_run_facts *facts, mural_error *err)
{
	size_t n = table->n_rows - first;
	int images_at;
	MU_TRY(column_of(table, "images", &images_at, err));
	double *values = calloc(2 * n, sizeof *values);
	if (!values)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, table->path, "no memory for %zu steps", n);
	double *steps = values + n;
	mural_status status = MURAL_OK;
	for (size_t p = 0; p < PHASES; p++) {
		int at;
		MU_TRY_OUT(column_of(table, phases[p].column, &at, err));
		for (size_t r = 0; r < n; r++) {
			values[r] = strtod(table->rows[first + r].cells[at], NULL);
			steps[r] += p < ADDED_UP ? values[r] : 0;
		}
		double median = mu_median(values, n);
		memcpy((char *)facts + phases[p].field, &median, sizeof median);
	}
	facts->step = mu_median(steps, n);
	facts->step_error = error_of(facts->step, steps, values, n);
	for (size_t r = 0; r < n; r++)
		values[r] = strtod(table->rows[first + r].cells[images_at], NULL);
	facts->images_per_step = mu_median(values, n);
	facts->images_per_second = facts->images_per_step / facts->step;
	facts->steps = n;
out:
	free(values);
	return status;
}

mural_status mu_study_read_run(const char *folder, uint32_t warm_up, mu_run_facts *facts, mural_error *err)
{
	char path[1100];
	mu_csv_table table;
	MU_TRY(read_result(folder, facts, err));
	snprintf(path, sizeof path, "%s/steps.csv", folder);
	MU_TRY(mu_csv_table_read(&table, path, err));
	mural_status status;
	if (table.n_rows <= warm_up)
		status = mu_fail(err, MURAL_DATA, path, "the run made %zu steps, of which %u are warm-up", table.n_rows,
		                 warm_up);
	else
		status = medians(&table, warm_up, facts, err);
	mu_csv_table_release(&table);
	if (status != MURAL_OK)
		return status;
	facts->epoch = facts->images_per_epoch / facts->images_per_second;
	facts->done = true;
	return MURAL_OK;
}
