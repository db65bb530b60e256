/* The page: words first, then what is missing, then a section per study and run with its figures and their tables.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/version.h"
#include "study/report_inside.h"

enum { SHORT_TABLE = 12 /* rows that are shown at once; longer ones are folded */ };

static void put(FILE *out, const char *before, const char *text, const char *after)
{
	fputs(before, out);
	mu_escape(out, text);
	fputs(after, out);
}

/* Words with options in them, which stay on one line. */
static void put_words(FILE *out, const char *text)
{
	char option[64];
	for (const char *at; (at = strstr(text, "--")); text += strlen(option)) {
		size_t n = strcspn(at, " ,;:()");
		snprintf(option, sizeof option, "%.*s", (int)(n < sizeof option ? n : sizeof option - 1), at);
		while (text < at) {
			char piece[512];
			snprintf(piece, sizeof piece, "%.*s", (int)(at - text < 511 ? at - text : 511), text);
			mu_escape(out, piece);
			text += strlen(piece);
		}
		put(out, "<code>", option, "</code>");
	}
	mu_escape(out, text);
}

static const mu_spot *spot_at(const mu_series *series, double x)
{
	for (size_t i = 0; i < series->n; i++)
		if (series->spots[i].x == x)
			return &series->spots[i];
	return NULL;
}

static bool has_intervals(const mu_series *series)
{
	for (size_t i = 0; i < series->n; i++)
		if (isfinite(series->spots[i].low) && isfinite(series->spots[i].high))
			return true;
	return false;
}

static void print_name(FILE *out, const char *tag, const char *scope, const char *name, const char *unit)
{
	fprintf(out, "<%s scope=\"%s\">", tag, scope);
	mu_escape(out, name);
	if (unit[0])
		put(out, ",", unit, "");
	fprintf(out, "</%s>", tag);
}

/* A number, and its interval in a cell behind it where the series has some. */
static void print_cells(FILE *out, const mu_series *series, double x)
{
	char text[MU_SHORT_SIZE], low[MU_SHORT_SIZE], high[MU_SHORT_SIZE];
	const mu_spot *spot = spot_at(series, x);
	fprintf(out, "<td>%s</td>", spot ? mu_report_short(spot->y, text) : "");
	if (!has_intervals(series))
		return;
	if (spot && isfinite(spot->low) && isfinite(spot->high))
		fprintf(out, "<td>%s to %s</td>", mu_report_short(spot->low, low), mu_report_short(spot->high, high));
	else
		fputs("<td></td>", out);
}

/* A row per x, a column per series. */
static void print_upright(FILE *out, const mu_figure *f, const double *rows, size_t n)
{
	char text[96];
	fputs("<thead><tr>", out);
	print_name(out, "th", "col", f->n_categories ? "" : f->x_label, "");
	for (size_t s = 0; s < f->n_series; s++) {
		print_name(out, "th", "col", f->series[s].name, f->unit);
		if (has_intervals(&f->series[s]))
			fputs("<th scope=\"col\">95 % interval</th>", out);
	}
	fputs("</tr></thead>\n<tbody>\n", out);
	for (size_t r = 0; r < n; r++) {
		mu_figure_x_text(f, rows[r], text, sizeof text);
		fputs("<tr>", out);
		print_name(out, "th", "row", text, "");
		for (size_t s = 0; s < f->n_series; s++)
			print_cells(out, &f->series[s], rows[r]);
		fputs("</tr>\n", out);
	}
}

/* A row per series: phases and parts are many, what has them are few. */
static void print_turned(FILE *out, const mu_figure *f, const double *rows, size_t n)
{
	char text[96];
	fputs("<thead><tr><th></th>", out);
	for (size_t r = 0; r < n; r++) {
		mu_figure_x_text(f, rows[r], text, sizeof text);
		print_name(out, "th", "col", text, f->unit);
	}
	fputs("</tr></thead>\n<tbody>\n", out);
	for (size_t s = 0; s < f->n_series; s++) {
		fputs("<tr>", out);
		print_name(out, "th", "row", f->series[s].name, "");
		for (size_t r = 0; r < n; r++)
			print_cells(out, &f->series[s], rows[r]);
		fputs("</tr>\n", out);
	}
}

static void print_table(FILE *out, const mu_figure *f)
{
	double *rows;
	size_t n = mu_figure_rows(f, &rows);
	bool folded = n > SHORT_TABLE;
	if (folded)
		fprintf(out, "<details><summary>Table of %zu rows</summary>\n", n);
	fputs("<div class=\"table\" tabindex=\"0\"><table>\n", out);
	if (f->kind == MU_FIGURE_LANES || f->kind == MU_FIGURE_STACK)
		print_turned(out, f, rows, n);
	else
		print_upright(out, f, rows, n);
	fputs("</tbody></table></div>\n", out);
	if (folded)
		fputs("</details>\n", out);
	free(rows);
}

static void print_figure(FILE *out, const mu_page *page, size_t index)
{
	const mu_figure *f = &page->figures->all[index];
	put(out, "<figure id=\"", f->id, "\">\n");
	put(out, "<figcaption><h3>", f->title, "</h3>");
	if (page->drawn[index]) {
		put(out, "<a href=\"", page->folder, "/");
		put(out, "", f->id, ".svg\">SVG file</a>");
	}
	fputs("</figcaption>\n", out);
	if (page->drawn[index])
		fputs(page->drawn[index], out);
	if (f->caption[0])
		put(out, "<p>", f->caption, "</p>\n");
	if (f->cut)
		fputs("<p>There are more than fit into one figure; these are the first.</p>\n", out);
	print_table(out, f);
	fputs("</figure>\n", out);
}

static void print_section(FILE *out, const mu_page *page, const mu_section *section)
{
	if (section->n == 0 && !section->facts)
		return;
	put(out, "<section>\n<h2 id=\"", section->id, "\">");
	put(out, "", section->title, "</h2>\n");
	if (section->facts) {
		fputs("<p class=\"soft\">", out);
		put_words(out, section->facts);
		fputs("</p>\n", out);
	}
	fputs("<div class=\"figures\">\n", out);
	for (size_t f = 0; f < section->n; f++)
		print_figure(out, page, section->first + f);
	fputs("</div>\n</section>\n", out);
}

static void print_notes(FILE *out, const mu_report *report)
{
	if (report->n_notes == 0)
		return;
	fputs("<div class=\"notes\" role=\"note\"><b>What is missing</b>\n<ul>\n", out);
	for (size_t i = 0; i < report->n_notes; i++)
		put(out, "<li>", report->notes[i], "</li>\n");
	fputs("</ul></div>\n", out);
}

/* A paragraph for each study and run; a name in front of it when there are several. */
static void print_words(FILE *out, const mu_figures *figures)
{
	size_t n = 0;
	for (size_t s = 0; s < figures->n_sections; s++)
		n += figures->sections[s].words != NULL;
	for (size_t s = 0; s < figures->n_sections; s++) {
		const mu_section *section = &figures->sections[s];
		if (!section->words)
			continue;
		fputs("<p class=\"lead\">", out);
		if (n > 1) {
			put(out, "<b><a href=\"#", section->id, "\">");
			put(out, "", section->title, "</a>.</b> ");
		}
		put_words(out, section->words);
		fputs("</p>\n", out);
	}
}

static void title_of(const mu_report *report, char *title, size_t size)
{
	size_t n = report->n_studies + report->n_runs;
	if (report->settings->title)
		snprintf(title, size, "%s", report->settings->title);
	else if (n > 1)
		snprintf(title, size, "%zu %s", n,
		         report->n_runs == 0      ? "studies"
		         : report->n_studies == 0 ? "runs"
		                                  : "studies and runs");
	else
		snprintf(title, size, "%s", report->n_studies ? report->studies[0]->name : report->runs[0]->name);
}

void mu_page_write(const mu_page *page, FILE *out)
{
	char title[256];
	title_of(page->report, title, sizeof title);
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	      "<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"generator\" "
	      "content=\"Mural " MU_VERSION "\">\n"
	      "<link rel=\"icon\" href=\"data:,\">\n",
	      out);
	put(out, "<title>", title, "</title>\n<style>\n");
	mu_report_style_figures(out);
	mu_report_style_page(out);
	fputs("</style>\n</head>\n<body>\n<header>\n", out);
	put(out, "<h1>", title, "</h1>\n");
	put(out, "<p class=\"soft\">Report of Mural " MU_VERSION ", ", page->date, "</p>\n");
	print_words(out, page->figures);
	print_notes(out, page->report);
	fputs("</header>\n<main>\n", out);
	for (size_t s = 0; s < page->figures->n_sections; s++)
		print_section(out, page, &page->figures->sections[s]);
	fputs("</main>\n<footer>Numbers appear when the pointer rests on a bar or a point; each figure has its table "
	      "below.</footer>\n"
	      "</body>\n</html>\n",
	      out);
}
