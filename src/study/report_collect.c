/* What a report is about: finds runs and studies in the folders that were named. SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files.h"
#include "study/report_inside.h"

#define JSON_BYTES ((size_t)64 << 20)

void mu_report_note(mu_report *report, bool damaged, const char *format, ...)
{
	char text[512];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	if (damaged && !report->damage[0])
		snprintf(report->damage, sizeof report->damage, "%s", text);
	for (size_t i = 0; i < report->n_notes; i++)
		if (strcmp(report->notes[i], text) == 0)
			return;
	char **more = realloc(report->notes, (report->n_notes + 1) * sizeof *more);
	char *copy = strdup(text);
	report->no_memory |= !more || !copy;
	report->notes = more ? more : report->notes;
	if (!more || !copy) {
		free(copy);
		return;
	}
	report->notes[report->n_notes++] = copy;
	if (report->settings && report->settings->note)
		report->settings->note(report->settings->user, text);
}

mural_status mu_report_read_json(const char *path, mu_hjson **tree, mural_error *err)
{
	char *text;
	size_t bytes;
	*tree = NULL;
	MU_TRY(mu_file_read(path, "JSON file", JSON_BYTES, MURAL_DATA, &text, &bytes, err));
	const mu_hjson_source source = {.name = path, .text = text, .bytes = bytes, .strict = true, .kind = MURAL_DATA};
	mural_status status = mu_hjson_read(tree, &source, err);
	free(text);
	return status;
}

double mu_report_number_of(const mu_hjson_value *object, const char *key)
{
	const mu_hjson_value *value = mu_hjson_member(object, key);
	return value && value->kind == MU_HJSON_NUMBER ? value->number.value : NAN;
}

void mu_report_text_of(const mu_hjson_value *object, const char *key, char *text, size_t size)
{
	const mu_hjson_value *value = mu_hjson_member(object, key);
	snprintf(text, size, "%s", value && value->kind == MU_HJSON_STRING ? value->text : "");
}

void mu_report_name_of(const char *folder, char *name, size_t size)
{
	size_t end = strlen(folder);
	while (end > 1 && folder[end - 1] == '/')
		end--;
	size_t from = end;
	while (from > 0 && folder[from - 1] != '/')
		from--;
	if (from == end) /* "/" */
		from = 0;
	snprintf(name, size, "%.*s", (int)(end - from < 90 ? end - from : 90), folder + from);
}

static bool has(const char *folder, const char *name)
{
	char path[PATH_MAX];
	struct stat facts;
	return snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path && stat(path, &facts) == 0;
}

static bool is_study(const char *folder)
{
	return has(folder, "study.json") || has(folder, "points");
}

static bool is_run(const char *folder)
{
	return has(folder, "steps.csv") || has(folder, "result.json");
}

/* An error becomes a note; lack of memory stays an error. */
static mural_status noted(mu_report *report, const char *folder, const mural_error *why, mural_error *err)
{
	if (why->status == MURAL_OUT_OF_MEMORY)
		return mu_fail(err, why->status, folder, "%s", why->message);
	mu_report_note(report, true, "%.200s: %.300s", why->where[0] ? why->where : folder, why->message);
	return MURAL_OK;
}

static mural_status take_run(mu_report *report, const char *folder, mural_error *err)
{
	mural_error why = {0};
	if (report->n_runs == MU_REPORT_MOST) {
		mu_report_note(report, false, "%.200s is left out: a report has room for %d runs", folder,
		               MU_REPORT_MOST);
		return MURAL_OK;
	}
	if (mu_report_read_run(report, folder, &report->runs[report->n_runs], &why) != MURAL_OK)
		return noted(report, folder, &why, err);
	report->n_runs++;
	return MURAL_OK;
}

/* The runs below a folder, by name; or those and the studies. Returns in *taken how many there were. */
static mural_status take_inside(mu_report *report, const char *folder, bool studies, size_t *taken, mural_error *err);

static mural_status take_study(mu_report *report, const char *folder, mural_error *err)
{
	mural_error why = {0};
	char points[PATH_MAX];
	if (report->n_studies == MU_REPORT_MOST) {
		mu_report_note(report, false, "%.200s is left out: a report has room for %d studies", folder,
		               MU_REPORT_MOST);
		return MURAL_OK;
	}
	mural_status status = mu_report_read_study(report, folder, &report->studies[report->n_studies], &why);
	if (status == MURAL_OK) {
		report->n_studies++;
		return MURAL_OK;
	}
	bool damaged = has(folder, "study.json");
	if (damaged)
		MU_TRY(noted(report, folder, &why, err));
	size_t taken = 0;
	snprintf(points, sizeof points, "%.4000s/points", folder);
	if (has(folder, "points"))
		MU_TRY(take_inside(report, points, false, &taken, err));
	if (!damaged || taken > 0)
		mu_report_note(report, taken == 0,
		               "%.200s: there is no comparison of its points (study.json)%s; the command that "
		               "started the study goes on with it",
		               folder, taken > 0 ? ", so its runs are shown one by one" : " and no run to show");
	return MURAL_OK;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static mural_status take_inside(mu_report *report, const char *folder, bool studies, size_t *taken, mural_error *err)
{
	struct dirent **entries;
	char path[PATH_MAX];
	mural_status status = MURAL_OK;
	int n = scandir(folder, &entries, visible, by_name);
	*taken = 0;
	if (n < 0)
		return MURAL_OK;
	for (int i = 0; i < n; i++) {
		bool fits = snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name) < (int)sizeof path;
		bool study = fits && studies && is_study(path), run = fits && !study && is_run(path);
		if (status == MURAL_OK && (study || run))
			status = study ? take_study(report, path, err) : take_run(report, path, err);
		*taken += study || run;
		free(entries[i]);
	}
	free(entries);
	return status;
}

static mural_status take(mu_report *report, const char *folder, mural_error *err)
{
	size_t taken = 0;
	struct stat facts;
	if (stat(folder, &facts) != 0 || !S_ISDIR(facts.st_mode)) {
		mu_report_note(report, true, "%.200s: there is no such folder", folder);
		return MURAL_OK;
	}
	if (is_study(folder))
		return take_study(report, folder, err);
	if (is_run(folder))
		return take_run(report, folder, err);
	MU_TRY(take_inside(report, folder, true, &taken, err));
	if (taken == 0)
		mu_report_note(report, true,
		               "%.200s: neither a run (steps.csv) nor a study (study.json) is in this folder or in one "
		               "of its folders",
		               folder);
	return MURAL_OK;
}

mural_status mu_report_collect(mu_report *report, mural_error *err)
{
	for (size_t i = 0; i < report->settings->n_folders; i++)
		MU_TRY(take(report, report->settings->folders[i], err));
	if (report->no_memory)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for a report");
	return MURAL_OK;
}

void mu_report_release(mu_report *report)
{
	for (size_t i = 0; i < report->n_runs; i++)
		mu_report_run_free(report->runs[i]);
	for (size_t i = 0; i < report->n_studies; i++)
		mu_report_study_free(report->studies[i]);
	for (size_t i = 0; i < report->n_notes; i++)
		free(report->notes[i]);
	free(report->notes);
	*report = (mu_report){0};
}
