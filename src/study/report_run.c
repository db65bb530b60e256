/* A run's folder, read for a report: result.json, steps.csv, validation.csv. A run may be under way, killed or damaged: what
 * can be read is shown, the rest is noted. SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "study/csv_table.h"
#include "study/median.h"
#include "study/report_inside.h"

static const char *const part_keys[MU_PARTS] = {
#define MU_X(name, key, words) key,
        MU_PART_LIST(MU_X)
#undef MU_X
};

void mu_report_run_free(mu_report_run *run)
{
	if (!run)
		return;
	free(run->step);
	free(run->loss);
	free(run->epochs);
	free(run);
}

/* NaN for an empty cell; false for what is no number. */
static bool number_cell(const char *cell, double *value)
{
	char *end = NULL;
	*value = NAN;
	if (*cell == '\0')
		return true;
	*value = strtod(cell, &end);
	return end != cell && *end == '\0';
}

/* ---- result.json ---- */

static void read_parts(const mu_hjson_value *root, const char *key, double parts[MU_PARTS])
{
	const mu_hjson_value *memory = mu_hjson_member(root, key);
	for (int p = 0; p < MU_PARTS; p++)
		parts[p] = mu_report_number_of(memory, part_keys[p]);
}

static mural_status read_epochs(mu_report_run *run, const mu_hjson_value *root, mural_error *err)
{
	const mu_hjson_value *list = mu_hjson_member(root, "epochs");
	if (!list || list->kind != MU_HJSON_ARRAY || list->count == 0)
		return MURAL_OK;
	run->epochs = calloc(list->count, sizeof *run->epochs);
	if (!run->epochs)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for %zu epochs", list->count);
	for (const mu_hjson_value *e = list->first; e; e = e->next)
		run->epochs[run->n_epochs++] = (mu_report_epoch){
		        .epoch = mu_report_number_of(e, "epoch"),
		        .train_loss = mu_report_number_of(e, "train_loss"),
		        .train_accuracy = mu_report_number_of(e, "train_accuracy"),
		        .validation_loss = mu_report_number_of(e, "validation_loss"),
		        .validation_accuracy = mu_report_number_of(e, "validation_accuracy"),
		        .test_loss = mu_report_number_of(e, "test_loss"),
		        .test_accuracy = mu_report_number_of(e, "test_accuracy"),
		};
	return MURAL_OK;
}

static void read_numbers(mu_report_run *run, const mu_hjson_value *root)
{
	run->finished = true;
	mu_report_text_of(root, "model", run->model, sizeof run->model);
	run->ranks = mu_report_number_of(root, "ranks");
	run->threads = mu_report_number_of(root, "threads_per_rank");
	run->parameters = mu_report_number_of(root, "parameters");
	run->images = mu_report_number_of(root, "images");
	run->images_per_second = mu_report_number_of(root, "images_per_second");
	run->seconds = mu_report_number_of(root, "seconds");
	run->train_loss = mu_report_number_of(root, "train_loss");
	run->test_accuracy = mu_report_number_of(root, "test_accuracy");
	run->peak_memory = mu_report_number_of(root, "peak_memory_bytes");
	run->joules = mu_report_number_of(mu_hjson_member(root, "energy"), "joules");
	const mu_hjson_value *load = mu_hjson_member(root, "load");
	double slowest = mu_report_number_of(load, "slowest_rank");
	run->slowest = slowest >= 0 && slowest < 1 << 20 ? (int)slowest : -1;
	run->imbalance = mu_report_number_of(load, "slowest_seconds") - mu_report_number_of(load, "mean_seconds");
	const mu_hjson_value *stalls = mu_hjson_member(root, "stalls");
	run->stalls = mu_report_number_of(stalls, "count");
	run->stalled = mu_report_number_of(stalls, "seconds");
	read_parts(root, "memory_planned_bytes", run->planned);
	read_parts(root, "memory_used_bytes", run->used);
}

static mural_status read_result(mu_report *report, const char *folder, mu_report_run *run, mural_error *err)
{
	char path[PATH_MAX];
	mu_hjson *tree;
	mural_error why = {0};
	snprintf(path, sizeof path, "%.4000s/result.json", folder);
	if (access(path, F_OK) != 0 && errno == ENOENT) {
		mu_report_note(report, false, "%.200s: the run has no result.json yet; it is under way or was stopped",
		               folder);
		return MURAL_OK;
	}
	mural_status status = mu_report_read_json(path, &tree, &why);
	if (status == MURAL_OUT_OF_MEMORY)
		return mu_fail(err, status, path, "%s", why.message);
	if (status != MURAL_OK) {
		mu_report_note(report, true, "%.250s: %.250s", why.where[0] ? why.where : path, why.message);
		return MURAL_OK;
	}
	read_numbers(run, mu_hjson_root(tree));
	status = read_epochs(run, mu_hjson_root(tree), err);
	mu_hjson_free(tree);
	return status;
}

/* ---- tables ---- */

/* Opens FOLDER/NAME; false: it is not there, or not even its beginning can be read. The caller releases the table in every case. */
static bool open_table(mu_report *report, char path[PATH_MAX], const char *folder, const char *name,
                       mu_csv_table *table)
{
	mural_error why = {0};
	*table = (mu_csv_table){0};
	snprintf(path, PATH_MAX, "%.4000s/%s", folder, name);
	if (access(path, F_OK) != 0 && errno == ENOENT)
		return false;
	mural_status status = mu_csv_table_read_begin(table, path, &why);
	report->no_memory |= status == MURAL_OUT_OF_MEMORY;
	if (status != MURAL_OK && table->torn)
		mu_report_note(report, false, "%.200s: the last line is not whole; the %zu rows before it are shown",
		               path, table->n_rows);
	else if (status != MURAL_OK)
		mu_report_note(report, true, "%.250s: %.150s%s", why.where[0] ? why.where : path, why.message,
		               table->n_rows > 0 ? "; the rows before it are shown" : "");
	return table->n_rows > 0;
}

/* A column as numbers, *values is the caller's. NULL: there is no such column, or a cell is no number, which is noted. */
static double *column_of(mu_report *report, const mu_csv_table *table, const char *name)
{
	int at = mu_csv_table_column(table, name);
	if (at < 0) {
		mu_report_note(report, true, "%.200s: there is no column \"%s\"", table->path, name);
		return NULL;
	}
	double *values = malloc(table->n_rows * sizeof *values);
	report->no_memory |= !values;
	for (size_t r = 0; values && r < table->n_rows; r++)
		if (!number_cell(table->rows[r].cells[at], &values[r]))
			mu_report_note(report, true, "%.200s:%u: %s: expected a number, found \"%.40s\"", table->path,
			               table->rows[r].line, name, table->rows[r].cells[at]);
	return values;
}

/* The median of those that are numbers, the first step left out when there are others; sorts `values`. */
static double median_of(double *values, size_t n)
{
	size_t kept = 0;
	for (size_t i = n > 1 ? 1 : 0; i < n; i++)
		if (isfinite(values[i]))
			values[kept++] = values[i];
	return kept > 0 ? mu_median(values, kept) : NAN;
}

static void read_times(mu_report *report, const mu_csv_table *table, mu_report_run *run)
{
	double *sums = calloc(table->n_rows, sizeof *sums);
	report->no_memory |= !sums;
	for (int phase = 0; sums && phase < MU_PHASE_COUNT; phase++) {
		char name[64];
		snprintf(name, sizeof name, "%s_seconds", mu_phase_text((mu_phase)phase));
		double *values = column_of(report, table, name);
		for (size_t r = 0; phase != MU_PHASE_HIDDEN && r < table->n_rows; r++)
			sums[r] += values ? values[r] : NAN;
		run->times.phase[phase] = values ? median_of(values, table->n_rows) : NAN;
		free(values);
	}
	run->times.step = sums ? median_of(sums, table->n_rows) : NAN;
	free(sums);
}

static void note_infinite(mu_report *report, const char *path, const mu_report_run *run)
{
	size_t bad = 0, first = 0;
	for (size_t i = 0; i < run->n_steps; i++)
		if (!isfinite(run->loss[i]) && bad++ == 0)
			first = i;
	if (bad > 0)
		mu_report_note(report, false,
		               "%.200s: the loss of %zu of %zu steps is not a finite number, from step %.0f on", path,
		               bad, run->n_steps, run->step[first]);
}

static void read_steps(mu_report *report, const char *folder, mu_report_run *run)
{
	char path[PATH_MAX];
	mu_csv_table table;
	if (open_table(report, path, folder, "steps.csv", &table)) {
		run->step = column_of(report, &table, "step");
		run->loss = column_of(report, &table, "loss");
		run->n_steps = run->step && run->loss ? table.n_rows : 0;
		double *images = column_of(report, &table, "images");
		run->images_per_step = images ? median_of(images, table.n_rows) : NAN;
		free(images);
		read_times(report, &table, run);
		note_infinite(report, path, run);
	}
	mu_csv_table_release(&table);
}

/* Evaluations while the run is under way, when result.json does not yet have its epochs. */
static void read_validation(mu_report *report, const char *folder, mu_report_run *run)
{
	char path[PATH_MAX];
	mu_csv_table table = {0};
	if (run->n_epochs == 0 && open_table(report, path, folder, "validation.csv", &table)) {
		double *epoch = column_of(report, &table, "epoch"), *loss = column_of(report, &table, "loss"),
		       *accuracy = column_of(report, &table, "accuracy");
		run->epochs = calloc(table.n_rows, sizeof *run->epochs);
		report->no_memory |= !run->epochs;
		for (size_t r = 0; run->epochs && epoch && loss && accuracy && r < table.n_rows; r++)
			run->epochs[run->n_epochs++] = (mu_report_epoch){.epoch = epoch[r],
			                                                 .train_loss = NAN,
			                                                 .train_accuracy = NAN,
			                                                 .validation_loss = loss[r],
			                                                 .validation_accuracy = accuracy[r],
			                                                 .test_loss = NAN,
			                                                 .test_accuracy = NAN};
		free(epoch);
		free(loss);
		free(accuracy);
	}
	mu_csv_table_release(&table);
}

static void forget(mu_report_run *run)
{
	run->slowest = -1;
	double *const numbers[] = {&run->ranks,     &run->threads,           &run->parameters,
	                           &run->images,    &run->images_per_second, &run->seconds,
	                           &run->joules,    &run->images_per_step,   &run->train_loss,
	                           &run->imbalance, &run->test_accuracy,     &run->peak_memory,
	                           &run->stalls,    &run->stalled,           &run->times.step};
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		*numbers[i] = NAN;
	for (int p = 0; p < MU_PARTS; p++)
		run->planned[p] = run->used[p] = NAN;
	for (int p = 0; p < MU_PHASE_COUNT; p++)
		run->times.phase[p] = NAN;
}

mural_status mu_report_read_run(mu_report *report, const char *folder, mu_report_run **run, mural_error *err)
{
	mu_report_run *r = *run = calloc(1, sizeof *r);
	if (!r)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, folder, "no memory for a run");
	forget(r);
	mu_report_name_of(folder, r->name, sizeof r->name);
	mural_status status = read_result(report, folder, r, err);
	if (status == MURAL_OK) {
		read_steps(report, folder, r);
		read_validation(report, folder, r);
		if (!r->finished && r->n_steps == 0)
			status = mu_fail(err, MURAL_DATA, folder, "the run has no step and no result that can be read");
	}
	if (status != MURAL_OK) {
		mu_report_run_free(r);
		*run = NULL;
	}
	return status;
}
