/* Figures as numbers with names: building blocks, and which sections a report has. SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "study/report_inside.h"

mu_figure *mu_figure_begin(mu_figures *figures, const char *id, mu_figure_kind kind)
{
	const mu_section *section = &figures->sections[figures->n_sections - 1];
	figures->now = (mu_figure){.kind = kind};
	snprintf(figures->now.id, sizeof figures->now.id, "%.80s-%.30s", section->id, id);
	return &figures->now;
}

static void release_figure(mu_figure *figure)
{
	for (size_t s = 0; s < figure->n_series; s++)
		free(figure->series[s].spots);
	*figure = (mu_figure){0};
}

static size_t count_spots(const mu_figure *figure)
{
	size_t n = 0;
	for (size_t s = 0; s < figure->n_series; s++)
		n += figure->series[s].dashed ? 0 : figure->series[s].n;
	return n;
}

void mu_figure_end(mu_figures *figures)
{
	figures->no_memory |= figures->now.no_memory;
	if (count_spots(&figures->now) == 0) {
		release_figure(&figures->now);
		return;
	}
	if (figures->n == figures->room) {
		size_t room = 2 * figures->room + 8;
		mu_figure *more = realloc(figures->all, room * sizeof *more);
		if (!more) {
			figures->no_memory = true;
			release_figure(&figures->now);
			return;
		}
		figures->all = more;
		figures->room = room;
	}
	figures->all[figures->n++] = figures->now;
	figures->sections[figures->n_sections - 1].n++;
	figures->now = (mu_figure){0};
}

size_t mu_figure_category(mu_figure *figure, const char *format, ...)
{
	char text[sizeof figure->categories[0]];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	for (size_t c = 0; c < figure->n_categories; c++)
		if (strcmp(figure->categories[c], text) == 0)
			return c;
	if (figure->n_categories == MU_CATEGORIES) {
		figure->cut = true;
		return MU_CATEGORIES;
	}
	memcpy(figure->categories[figure->n_categories], text, sizeof text);
	return figure->n_categories++;
}

mu_series *mu_figure_series(mu_figure *figure, const char *format, ...)
{
	char text[sizeof figure->series[0].name];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	for (size_t s = 0; s < figure->n_series; s++)
		if (strcmp(figure->series[s].name, text) == 0)
			return &figure->series[s];
	if (figure->n_series == MU_SERIES) {
		figure->cut = true;
		return NULL;
	}
	mu_series *series = &figure->series[figure->n_series];
	int n = (int)figure->n_series;
	*series = (mu_series){.colour = n < MU_COLOUR_GREY ? n : (n + 1) % MU_COLOURS}; /* grey is for ideals */
	memcpy(series->name, text, sizeof text);
	figure->n_series++;
	return series;
}

/* Beyond it, sums and the steps of axes would overflow; no measurement comes near. */
static bool usable(double value)
{
	return fabs(value) < 1e100;
}

void mu_series_add(mu_figure *figure, mu_series *series, mu_spot spot)
{
	if (!series || !usable(spot.x) || !usable(spot.y) || !usable(spot.from))
		return;
	if (!usable(spot.low) || !usable(spot.high))
		spot.low = spot.high = NAN;
	if (figure->n_categories > 0 && !(spot.x < (double)figure->n_categories))
		return; /* its category found no room */
	if (series->n == series->room) {
		size_t room = 2 * series->room + 8;
		mu_spot *more = realloc(series->spots, room * sizeof *more);
		if (!more) {
			figure->no_memory = true;
			return;
		}
		series->spots = more;
		series->room = room;
	}
	series->spots[series->n++] = spot;
}

void mu_figure_x_text(const mu_figure *figure, double x, char *text, size_t size)
{
	char number[MU_SHORT_SIZE];
	if (figure->n_categories > 0)
		snprintf(text, size, "%s",
		         figure->categories[x >= 0 && x < (double)figure->n_categories ? (size_t)x : 0]);
	else
		snprintf(text, size, "%s", mu_report_short(x, number));
}

void mu_figure_y_text(const mu_figure *figure, double y, char *text, size_t size)
{
	char number[MU_SHORT_SIZE];
	snprintf(text, size, "%s%s", mu_report_short(y, number), figure->unit);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

size_t mu_figure_rows(const mu_figure *figure, double **rows)
{
	size_t n = 0, kept = 0;
	for (size_t s = 0; s < figure->n_series; s++)
		n += figure->series[s].n;
	double *all = *rows = calloc(n ? n : 1, sizeof *all);
	if (!all)
		return 0;
	n = 0;
	for (size_t s = 0; s < figure->n_series; s++)
		for (size_t i = 0; i < figure->series[s].n; i++)
			all[n++] = figure->series[s].spots[i].x;
	qsort(all, n, sizeof *all, by_value);
	for (size_t i = 0; i < n; i++)
		if (kept == 0 || all[i] != all[kept - 1])
			all[kept++] = all[i];
	return kept;
}

/* ---- sections ---- */

/* [a-z0-9-], begins with a letter, and no other section's. */
static void name_section(mu_figures *figures, mu_section *section, const char *name)
{
	size_t n = 0, same = 0;
	char id[80];
	for (const char *at = name; *at && n < sizeof id - 1; at++) {
		char c = *at >= 'A' && *at <= 'Z' ? (char)(*at - 'A' + 'a') : *at;
		bool good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
		if (good || (n > 0 && id[n - 1] != '-'))
			id[n++] = good ? c : '-';
	}
	while (n > 0 && id[n - 1] == '-')
		n--;
	id[n] = '\0';
	snprintf(section->id, sizeof section->id, "%s%s", n > 0 && (id[0] < '0' || id[0] > '9') ? "" : "run-", id);
	size_t length = strlen(section->id);
	for (bool taken = true; taken;) {
		taken = false;
		for (size_t s = 0; s < figures->n_sections; s++)
			taken |= strcmp(figures->sections[s].id, section->id) == 0;
		if (taken)
			snprintf(section->id + length, sizeof section->id - length, "-%zu", ++same + 1);
	}
}

static mu_section *begin_section(mu_figures *figures, const char *name, const char *title)
{
	mu_section section = {.first = figures->n};
	name_section(figures, &section, name);
	snprintf(section.title, sizeof section.title, "%s", title);
	snprintf(section.name, sizeof section.name, "%.95s", name);
	figures->sections[figures->n_sections] = section;
	return &figures->sections[figures->n_sections++];
}

/* Text made by printing into it; *text is NULL when memory ran out. */
typedef struct words {
	FILE *out;
	char *text;
	size_t bytes;
} words;

static FILE *open_words(words *w)
{
	*w = (words){0};
	w->out = open_memstream(&w->text, &w->bytes);
	return w->out;
}

static char *close_words(words *w, bool *no_memory)
{
	if (!w->out || fclose(w->out) != 0) {
		free(w->text);
		w->text = NULL;
	}
	*no_memory |= !w->text;
	return w->text;
}

static void say_limit_of(mu_figures *figures, mu_section *section, const mu_limit_facts *facts)
{
	words w;
	section->limit = mu_report_limit(facts);
	if (open_words(&w))
		mu_report_say_limit(w.out, facts);
	section->sentence = close_words(&w, &figures->no_memory);
	if (open_words(&w))
		mu_report_say_change(w.out, facts);
	section->change = close_words(&w, &figures->no_memory);
}

static void add_study(mu_figures *figures, const mu_report_study *study, const mural_report_settings *settings)
{
	static const char *const titles[MURAL_STUDY_KINDS] = {
	        [MURAL_STUDY_STRONG] = "Strong scaling",      [MURAL_STUDY_WEAK] = "Weak scaling",
	        [MURAL_STUDY_BATCH] = "Images per rank",      [MURAL_STUDY_ACCUMULATION] = "Accumulation",
	        [MURAL_STUDY_PLACEMENT] = "One node or many", [MURAL_STUDY_PRECISION] = "Types of numbers",
	        [MURAL_STUDY_OPTIMIZER] = "Optimizers"};
	char title[160];
	words w;
	const char *kind = titles[study->kind] ? titles[study->kind] : "Study";
	snprintf(title, sizeof title, "%s: %.90s", kind, study->name);
	mu_section *section = begin_section(figures, study->name, title);
	const mu_report_point *largest = mu_report_largest(study);
	mu_limit_facts facts = {.times.step = NAN};
	if (largest)
		facts = mu_report_facts_of_point(largest);
	say_limit_of(figures, section, &facts);
	if (open_words(&w))
		mu_report_say_study(w.out, study);
	section->words = close_words(&w, &figures->no_memory);
	if (open_words(&w)) {
		fprintf(w.out, "%zu points, %zu of %zu runs measured", study->n_points, study->runs_measured,
		        study->runs_wanted);
		if (study->host[0])
			fprintf(w.out, " on %s", study->host);
		if (isfinite(study->cores))
			fprintf(w.out, " (%.0f cores)", study->cores);
		if (study->date[0])
			fprintf(w.out, ", %s", study->date);
		if (study->model[0])
			fprintf(w.out, ", %s", study->model);
		if (study->data[0])
			fprintf(w.out, " on %s", study->data);
		if (study->cluster[0])
			fprintf(w.out, ", as slow as the cluster %s", study->cluster);
		if (study->arguments[0])
			fprintf(w.out, ", with %s", study->arguments);
	}
	section->facts = close_words(&w, &figures->no_memory);
	mu_figures_of_study(figures, study, settings);
}

static void say_facts_of_run(FILE *out, const mu_report_run *run)
{
	char a[MU_SHORT_SIZE];
	fprintf(out, "%s", run->model[0] ? run->model : "a model");
	if (isfinite(run->parameters))
		fprintf(out, " with %.0f parameters", run->parameters);
	if (isfinite(run->ranks))
		fprintf(out, ", %s", mu_report_ranks(run->ranks, a));
	if (isfinite(run->threads))
		fprintf(out, " of %.0f thread%s", run->threads, run->threads == 1 ? "" : "s");
	fprintf(out, ", %zu steps", run->n_steps);
	if (isfinite(run->seconds))
		fprintf(out, " in %s s", mu_report_short(run->seconds, a));
	if (isfinite(run->peak_memory))
		fprintf(out, ", %s MiB in the largest process", mu_report_short(run->peak_memory / 1048576, a));
	if (isfinite(run->joules))
		fprintf(out, ", %s J", mu_report_short(run->joules, a));
}

static void add_run(mu_figures *figures, const mu_report *report, const mu_report_run *run)
{
	char title[160];
	words w;
	snprintf(title, sizeof title, "Run: %.90s", run->name);
	mu_section *section = begin_section(figures, run->name, title);
	mu_limit_facts facts = mu_report_facts_of_run(run);
	say_limit_of(figures, section, &facts);
	if (open_words(&w))
		mu_report_say_run(w.out, run);
	section->words = close_words(&w, &figures->no_memory);
	if (open_words(&w))
		say_facts_of_run(w.out, run);
	section->facts = close_words(&w, &figures->no_memory);
	mu_figures_of_run(figures, run, report->settings);
}

mural_status mu_figures_make(mu_figures *figures, const mu_report *report, mural_error *err)
{
	*figures = (mu_figures){0};
	if (report->n_studies + report->n_runs > 1) {
		begin_section(figures, "compared", "Compared");
		mu_figures_across(figures, report);
	}
	for (size_t s = 0; s < report->n_studies; s++)
		add_study(figures, report->studies[s], report->settings);
	for (size_t r = 0; r < report->n_runs; r++)
		add_run(figures, report, report->runs[r]);
	if (figures->no_memory) {
		mu_figures_release(figures);
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for the figures of a report");
	}
	return MURAL_OK;
}

void mu_figures_release(mu_figures *figures)
{
	for (size_t f = 0; f < figures->n; f++)
		release_figure(&figures->all[f]);
	for (size_t s = 0; s < figures->n_sections; s++) {
		free(figures->sections[s].sentence);
		free(figures->sections[s].change);
		free(figures->sections[s].words);
		free(figures->sections[s].facts);
	}
	free(figures->all);
	*figures = (mu_figures){0};
}
