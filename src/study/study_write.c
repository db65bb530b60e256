/* A study's tables: study.csv by run, metrics.csv of all runs, epochs.csv for predictions. SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/number.h"
#include "monitor/metrics_csv.h"
#include "study/csv_table.h"
#include "study/study_inside.h"

static mural_status begin(const mu_study *study, const char *name, mu_file *file, mural_error *err)
{
	char path[1100];
	snprintf(path, sizeof path, "%.1000s/%s", study->settings.folder, name);
	return mu_file_begin(file, path, err);
}

static void cell(FILE *out, double value)
{
	char text[MU_NUMBER_SIZE];
	fprintf(out, ",%s", isfinite(value) ? mu_number_text(value, text) : "");
}

/* In quotes, on one line. */
static void quoted(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', out);
		fputc(*text == '\n' ? ' ' : *text, out);
	}
	fputc('"', out);
}

/* With the comma behind it. */
static void text_cell(FILE *out, const char *text)
{
	if (strpbrk(text, ",\"\n\r"))
		quoted(out, text);
	else
		fputs(text, out);
	fputc(',', out);
}

static const char *word(const mu_point *p, mural_study_axis axis)
{
	return p->words[axis] ? p->words[axis] : "";
}

/* ---- study.csv. ---- */

/* Columns of numbers and where they stand in a run's facts; the columns of words before and behind them are written by hand. */
static const struct {
	const char *name;
	size_t field;
} columns[] = {
        {"step_seconds", offsetof(mu_run_facts, step)},
        {"data_seconds", offsetof(mu_run_facts, data)},
        {"forward_seconds", offsetof(mu_run_facts, forward)},
        {"backward_seconds", offsetof(mu_run_facts, backward)},
        {"communication_exposed_seconds", offsetof(mu_run_facts, exposed)},
        {"communication_hidden_seconds", offsetof(mu_run_facts, hidden)},
        {"optimizer_seconds", offsetof(mu_run_facts, optimizer)},
        {"imbalance_seconds", offsetof(mu_run_facts, imbalance)},
        {"emulation_late_fraction", offsetof(mu_run_facts, late)},
        {"images_per_second", offsetof(mu_run_facts, images_per_second)},
        {"epoch_seconds", offsetof(mu_run_facts, epoch)},
        {"train_loss", offsetof(mu_run_facts, train_loss)},
        {"train_accuracy", offsetof(mu_run_facts, train_accuracy)},
        {"test_accuracy", offsetof(mu_run_facts, test_accuracy)},
        {"peak_memory_bytes", offsetof(mu_run_facts, peak_memory_bytes)},
};
#define COLUMNS (sizeof columns / sizeof *columns)

static void write_run(const mu_point *p, uint32_t round, const mu_run_facts *f, FILE *out)
{
	fprintf(out, "%s,%u,%u,%u,%u", p->name, round + 1, p->ranks, p->batch, p->accumulation);
	for (mural_study_axis a = 0; a < MURAL_STUDY_AXES; a++)
		if (*mu_study_sets[a])
			fprintf(out, ",%s", word(p, a));
	fprintf(out, ",%.9g,%s,%zu", p->fraction, f->done ? "measured" : "failed", f->steps);
	for (size_t i = 0; i < COLUMNS; i++) {
		double value;
		memcpy(&value, (const char *)f + columns[i].field, sizeof value);
		cell(out, f->done ? value : NAN);
	}
	fputc(',', out);
	quoted(out, f->why);
	fputc('\n', out);
}

static mural_status write_runs(const mu_study *study, mural_error *err)
{
	mu_file file = {0};
	MU_TRY(begin(study, "study.csv", &file, err));
	fputs("point,round,ranks,batch_per_rank,accumulation", file.out);
	for (mural_study_axis a = 0; a < MURAL_STUDY_AXES; a++)
		if (*mu_study_sets[a])
			fprintf(file.out, ",%s", mu_study_sets[a] + strlen("--"));
	fputs(",dataset_fraction,status,steps", file.out);
	for (size_t i = 0; i < COLUMNS; i++)
		fprintf(file.out, ",%s", columns[i].name);
	fputs(",words\n", file.out);
	for (uint32_t r = 0; r < study->settings.rounds; r++)
		for (size_t p = 0; p < study->n_points; p++) {
			const mu_run_facts *facts = mu_study_facts(study, r, p);
			if (facts->done || *facts->why)
				write_run(&study->points[p], r, facts, file.out);
		}
	return mu_file_commit(&file, err);
}

/* ---- metrics.csv: rows of the runs. One whose table cannot be read has none. ---- */

static void copy_metrics(const mu_study *study, const mu_point *point, uint32_t round, FILE *out)
{
	char folder[1024], path[1100];
	mu_csv_table table;
	mu_study_run_folder(study, point, round, folder, sizeof folder);
	snprintf(path, sizeof path, "%s/metrics.csv", folder);
	if (mu_csv_table_read(&table, path, NULL) != MURAL_OK)
		return;
	for (size_t r = 0; r < table.n_rows; r++)
		fprintf(out, "%s,%u,%s\n", point->name, round + 1, table.rows[r].raw);
	mu_csv_table_release(&table);
}

static mural_status write_metrics(const mu_study *study, mural_error *err)
{
	mu_file file = {0};
	MU_TRY(begin(study, "metrics.csv", &file, err));
	fputs("point,round," MU_METRICS_HEADER "\n", file.out);
	for (uint32_t r = 0; r < study->settings.rounds; r++)
		for (size_t p = 0; p < study->n_points; p++)
			if (mu_study_facts(study, r, p)->done)
				copy_metrics(study, &study->points[p], r, file.out);
	return mu_file_commit(&file, err);
}

/* ---- epochs.csv: the columns of the paper's epoch-times.csv. ---- */

static mural_status write_epochs(const mu_study *study, mural_error *err)
{
	mu_file file = {0};
	MU_TRY(begin(study, "epochs.csv", &file, err));
	fprintf(file.out, "cluster,gpu,placement,dataset,gpus,precision,batch_per_gpu,dataset_fraction,"
	                  "epoch_seconds_median,images_per_epoch\n");
	mural_status status = MURAL_OK;
	for (size_t p = 0; status == MURAL_OK && p < study->n_points; p++) {
		const mu_point *point = &study->points[p];
		mu_comparison c = mu_study_compare(study, p);
		mu_study_seat seat;
		if (!c.median.done || point->accumulation > 1 || !(c.median.epoch > 0))
			continue;
		status = mu_study_seat_of(study, point, &seat, err);
		text_cell(file.out, seat.cluster);
		text_cell(file.out, seat.device);
		text_cell(file.out, seat.across ? "inter-node" : "intra-node");
		text_cell(file.out, study->where.data);
		fprintf(file.out, "%u,%s,%u,%.9g,%.6g,%.0f\n", point->ranks, word(point, MURAL_AXIS_PRECISION),
		        point->batch, point->fraction, c.median.epoch, c.median.images_per_epoch);
	}
	if (status == MURAL_OK)
		return mu_file_commit(&file, err);
	mu_file_abandon(&file);
	return status;
}

mural_status mu_study_write(const mu_study *study, mural_error *err)
{
	MU_TRY(write_runs(study, err));
	MU_TRY(write_metrics(study, err));
	MU_TRY(write_epochs(study, err));
	return mu_study_write_json(study, err);
}
