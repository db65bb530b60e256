/* A study's folder, read for a report: study.json has its points, study.csv which runs were made, points/ their folders. A study may
 * have been interrupted: points without a measurement are noted. SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "study/csv_table.h"
#include "study/report_inside.h"

#define MUCH_LATE 0.05 /* of a point's time */

enum { MOST_POINTS = 10000, MOST_READ = 48 /* points of which a run's folder is read as well */ };

void mu_report_study_free(mu_report_study *study)
{
	if (!study)
		return;
	for (size_t p = 0; p < study->n_points; p++)
		mu_report_run_free(study->points[p].run);
	free(study->points);
	free(study);
}

/* ---- study.json ---- */

static void read_phases(const mu_hjson_value *value, mu_step_times *times)
{
	times->step = mu_report_number_of(value, "step_seconds");
	for (int phase = 0; phase < MU_PHASE_COUNT; phase++) {
		char key[64];
		snprintf(key, sizeof key, "%s_seconds", mu_phase_text((mu_phase)phase));
		times->phase[phase] = mu_report_number_of(value, key);
	}
}

static mu_measure read_measure(const mu_hjson_value *value, const char *key)
{
	char name[64];
	mu_measure m = {.value = mu_report_number_of(value, key)};
	snprintf(name, sizeof name, "%s_low", key);
	m.low = mu_report_number_of(value, name);
	snprintf(name, sizeof name, "%s_high", key);
	m.high = mu_report_number_of(value, name);
	if (!(m.high > m.low)) /* that of the point others are compared with is no interval */
		m.low = m.high = NAN;
	return m;
}

static void read_point(const mu_hjson_value *value, mu_report_point *p)
{
	const mu_hjson_value *several = mu_hjson_member(value, "several_nodes");
	mu_report_text_of(value, "name", p->name, sizeof p->name);
	mu_report_text_of(value, "precision", p->precision, sizeof p->precision);
	mu_report_text_of(value, "optimizer", p->optimizer, sizeof p->optimizer);
	mu_report_text_of(value, "device", p->device, sizeof p->device);
	p->many_nodes = several && several->kind == MU_HJSON_BOOL && several->boolean;
	p->ranks = mu_report_number_of(value, "ranks");
	p->batch = mu_report_number_of(value, "batch_per_rank");
	p->accumulation = mu_report_number_of(value, "accumulation");
	p->fraction = mu_report_number_of(value, "dataset_fraction");
	p->rounds = mu_report_number_of(value, "rounds_measured");
	read_phases(value, &p->times);
	p->images_per_second = mu_report_number_of(value, "images_per_second");
	p->epoch = mu_report_number_of(value, "epoch_seconds");
	p->train_loss = mu_report_number_of(value, "train_loss");
	p->train_accuracy = mu_report_number_of(value, "train_accuracy");
	p->test_accuracy = mu_report_number_of(value, "test_accuracy");
	p->peak_memory = mu_report_number_of(value, "peak_memory_bytes");
	p->speed_up = read_measure(value, "speed_up");
	p->efficiency = read_measure(value, "efficiency");
	p->waiting = read_measure(value, "communication_fraction");
	p->serial = mu_report_number_of(value, "serial_fraction");
	p->imbalance = mu_report_number_of(value, "imbalance_seconds");
	p->late = mu_report_number_of(value, "emulation_late_fraction");
}

/* The configuration of the runs as one line. */
static void read_arguments(const mu_hjson_value *root, char *line, size_t size)
{
	const mu_hjson_value *list = mu_hjson_member(root, "arguments");
	size_t used = 0;
	line[0] = '\0';
	if (!list || list->kind != MU_HJSON_ARRAY)
		return;
	for (const mu_hjson_value *a = list->first; a; a = a->next) {
		if (a->kind != MU_HJSON_STRING)
			continue;
		bool plain = a->text[0] && !strpbrk(a->text, " \t\n\"'\\$`&|;<>()*?#~");
		int n = snprintf(line + used, size - used, plain ? "%s%s" : "%s'%s'", used ? " " : "", a->text);
		used = n > 0 && used + (size_t)n < size ? used + (size_t)n : size - 1;
	}
}

static mural_status read_kind(const mu_hjson_value *root, const char *path, mural_study_kind *kind, mural_error *err)
{
	char name[32];
	mu_report_text_of(root, "study", name, sizeof name);
	if (mural_study_find(kind, name, NULL) != MURAL_OK)
		return mu_fail(err, MURAL_DATA, path, "\"study\" is no kind of study: \"%.30s\"", name);
	return MURAL_OK;
}

static mural_status read_points(mu_report_study *s, const mu_hjson_value *root, const char *path, mural_error *err)
{
	const mu_hjson_value *list = mu_hjson_member(root, "points");
	if (!list || list->kind != MU_HJSON_ARRAY || list->count == 0 || list->count > MOST_POINTS)
		return mu_fail(err, MURAL_DATA, path, "\"points\" is not a list of 1 to %d points", MOST_POINTS);
	s->points = calloc(list->count, sizeof *s->points);
	if (!s->points)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, path, "no memory for %zu points", list->count);
	for (const mu_hjson_value *p = list->first; p; p = p->next)
		read_point(p, &s->points[s->n_points++]);
	return MURAL_OK;
}

static mural_status read_comparison(const char *folder, mu_report_study *s, mural_error *err)
{
	char path[PATH_MAX];
	mu_hjson *tree;
	snprintf(path, sizeof path, "%.4000s/study.json", folder);
	MU_TRY(mu_report_read_json(path, &tree, err));
	const mu_hjson_value *root = mu_hjson_root(tree), *environment = mu_hjson_member(root, "environment");
	mural_status status;
	MU_TRY_OUT(read_kind(root, path, &s->kind, err));
	mu_report_text_of(environment, "host", s->host, sizeof s->host);
	mu_report_text_of(environment, "date", s->date, sizeof s->date);
	mu_report_text_of(environment, "mural_version", s->version, sizeof s->version);
	mu_report_text_of(root, "model", s->model, sizeof s->model);
	mu_report_text_of(root, "data", s->data, sizeof s->data);
	mu_report_text_of(root, "cluster", s->cluster, sizeof s->cluster);
	read_arguments(root, s->arguments, sizeof s->arguments);
	s->cores = mu_report_number_of(environment, "cores");
	s->whole_epochs = mu_report_number_of(root, "steps") == 0;
	double rounds = mu_report_number_of(root, "rounds");
	s->rounds = rounds >= 1 && rounds <= 1000 ? rounds : 0;
	MU_TRY_OUT(read_points(s, root, path, err));
out:
	mu_hjson_free(tree);
	return status;
}

/* ---- what is missing ---- */

/* study.csv tells which runs failed, and their last words. */
static void note_failures(mu_report *report, const char *folder)
{
	char path[PATH_MAX];
	mu_csv_table table = {0};
	mural_error why = {0};
	snprintf(path, sizeof path, "%.4000s/study.csv", folder);
	if (access(path, F_OK) != 0 && errno == ENOENT) {
		mu_report_note(report, false, "%.200s: there is no study.csv, so nothing is known of runs that failed",
		               folder);
		return;
	}
	mural_status status = mu_csv_table_read_begin(&table, path, &why);
	if (status != MURAL_OK)
		mu_report_note(report, status == MURAL_DATA && !table.torn, "%.250s: %.200s",
		               why.where[0] ? why.where : path, why.message);
	int name = mu_csv_table_column(&table, "point"), round = mu_csv_table_column(&table, "round"),
	    state = mu_csv_table_column(&table, "status"), words = mu_csv_table_column(&table, "words");
	size_t failed = 0, first = 0;
	for (size_t r = 0; name >= 0 && round >= 0 && state >= 0 && words >= 0 && r < table.n_rows; r++)
		if (strcmp(table.rows[r].cells[state], "failed") == 0 && failed++ == 0)
			first = r;
	if (failed > 0)
		mu_report_note(report, false, "%.120s: %zu run%s failed, the first of them %.90s.%.10s: %.250s", folder,
		               failed, failed == 1 ? "" : "s", table.rows[first].cells[name],
		               table.rows[first].cells[round], table.rows[first].cells[words]);
	mu_csv_table_release(&table);
}

static void note_missing(mu_report *report, const char *folder, mu_report_study *s)
{
	size_t empty = 0, late = 0, latest = 0;
	for (size_t p = 0; p < s->n_points; p++) {
		late += s->points[p].late > MUCH_LATE;
		latest = s->points[p].late > s->points[latest].late || isnan(s->points[latest].late) ? p : latest;
		double measured = s->points[p].rounds;
		s->runs_wanted += s->rounds > 0 ? (size_t)s->rounds : 0;
		s->runs_measured += measured > 0 && measured <= 1000 ? (size_t)measured : 0;
		empty += !(measured > 0);
	}
	if (late > 0)
		mu_report_note(report, false,
		               "%.200s: this machine could not keep up with the emulated cluster in %zu of %zu points; "
		               "in %.90s "
		               "%.0f %% of the time is this machine's own",
		               folder, late, s->n_points, s->points[latest].name, 100 * s->points[latest].late);
	if (s->runs_measured < s->runs_wanted)
		mu_report_note(report, false,
		               "%.200s: %zu of %zu runs were measured%s; the same `mural study` command makes the rest",
		               folder, s->runs_measured, s->runs_wanted,
		               empty > 0 ? ", and some points have no run at all" : "");
}

/* One run of a point, for its curves and its memory: the first round that is there. */
static mural_status read_run_of(mu_report *report, const char *folder, double rounds, mu_report_point *p,
                                mural_error *err)
{
	if (strchr(p->name, '/') || p->name[0] == '\0' || p->name[0] == '.')
		return MURAL_OK;
	for (int round = 1; round <= 1000 && round <= rounds; round++) {
		char path[PATH_MAX], result[PATH_MAX];
		mural_error why = {0};
		snprintf(path, sizeof path, "%.3900s/points/%s.%d", folder, p->name, round);
		snprintf(result, sizeof result, "%.4000s/result.json", path);
		if (access(result, F_OK) != 0)
			continue;
		mural_status status = mu_report_read_run(report, path, &p->run, &why);
		if (status == MURAL_OUT_OF_MEMORY)
			return mu_fail(err, status, path, "%s", why.message);
		return MURAL_OK; /* what is wrong with it was noted */
	}
	return MURAL_OK;
}

mural_status mu_report_read_study(mu_report *report, const char *folder, mu_report_study **study, mural_error *err)
{
	mu_report_study *s = *study = calloc(1, sizeof *s);
	if (!s)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, folder, "no memory for a study");
	mu_report_name_of(folder, s->name, sizeof s->name);
	mural_status status = read_comparison(folder, s, err);
	if (status == MURAL_OK) {
		note_missing(report, folder, s);
		note_failures(report, folder);
	}
	for (size_t p = 0; status == MURAL_OK && p < s->n_points && p < MOST_READ; p++)
		status = read_run_of(report, folder, s->rounds, &s->points[p], err);
	if (status != MURAL_OK) {
		mu_report_study_free(s);
		*study = NULL;
	}
	return status;
}
