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

/* A name of a file as part of a link (RFC 3986). */
static void put_link(FILE *out, const char *name)
{
	for (const char *at = name; *at; at++) {
		unsigned char c = (unsigned char)*at;
		bool plain =
		        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("-._~", c);
		if (plain)
			fputc(c, out);
		else
			fprintf(out, "%%%02X", c);
	}
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

static void print_name(FILE *out, const char *scope, const char *name)
{
	fprintf(out, "<th scope=\"%s\">", scope);
	mu_escape(out, name);
	fputs("</th>", out);
}

/* What the first row or column is, and in which unit the numbers are. */
static void print_corner(FILE *out, const mu_figure *f)
{
	fprintf(out, "<thead><tr><td>%s%s%s</td>", f->n_categories ? "" : f->x_label, f->unit[0] ? " in" : "", f->unit);
}

/* A number, with its interval below it. */
static void print_cell(FILE *out, const mu_series *series, double x)
{
	char text[MU_SHORT_SIZE], low[MU_SHORT_SIZE], high[MU_SHORT_SIZE];
	const mu_spot *spot = spot_at(series, x);
	fprintf(out, "<td>%s", spot ? mu_report_short(spot->y, text) : "");
	if (spot && isfinite(spot->low) && isfinite(spot->high))
		fprintf(out, "<small>%s to %s</small>", mu_report_short(spot->low, low),
		        mu_report_short(spot->high, high));
	fputs("</td>", out);
}

/* A row per x, a column per series. */
static void print_upright(FILE *out, const mu_figure *f, const double *rows, size_t n)
{
	char text[96];
	for (size_t s = 0; s < f->n_series; s++)
		print_name(out, "col", f->series[s].name);
	fputs("</tr></thead>\n<tbody>\n", out);
	for (size_t r = 0; r < n; r++) {
		mu_figure_x_text(f, rows[r], text, sizeof text);
		fputs("<tr>", out);
		print_name(out, "row", text);
		for (size_t s = 0; s < f->n_series; s++)
			print_cell(out, &f->series[s], rows[r]);
		fputs("</tr>\n", out);
	}
}

/* A row per series, where these are more. */
static void print_turned(FILE *out, const mu_figure *f, const double *rows, size_t n)
{
	char text[96];
	for (size_t r = 0; r < n; r++) {
		mu_figure_x_text(f, rows[r], text, sizeof text);
		print_name(out, "col", text);
	}
	fputs("</tr></thead>\n<tbody>\n", out);
	for (size_t s = 0; s < f->n_series; s++) {
		fputs("<tr>", out);
		print_name(out, "row", f->series[s].name);
		for (size_t r = 0; r < n; r++)
			print_cell(out, &f->series[s], rows[r]);
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
	print_corner(out, f);
	if (!folded && n < f->n_series)
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
		fputs("<a href=\"", out);
		put_link(out, page->folder);
		put(out, "/", f->id, ".svg\">SVG file</a>");
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

static size_t count_words(const mu_figures *figures)
{
	size_t n = 0;
	for (size_t s = 0; s < figures->n_sections; s++)
		n += figures->sections[s].words != NULL;
	return n;
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
	if (section->words && count_words(page->figures) > 1) {
		fputs("<p>", out);
		put_words(out, section->words);
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
	fputs("<div class=\"notes\" role=\"note\"><b>What is missing or doubtful</b>\n<ul>\n", out);
	for (size_t i = 0; i < report->n_notes; i++)
		put(out, "<li>", report->notes[i], "</li>\n");
	fputs("</ul></div>\n", out);
}

/* Those that a limit has, with what to do about it: "Communication limits 2 of 3: a, b. Give each rank ...". */
static void print_limit(FILE *out, const mu_figures *figures, mu_limit limit, const char *words, size_t n)
{
	size_t count = 0;
	const mu_section *first = NULL;
	for (size_t s = figures->n_sections; s-- > 0;)
		if (figures->sections[s].words && figures->sections[s].limit == limit) {
			first = &figures->sections[s];
			count++;
		}
	if (!first)
		return;
	fprintf(out, "<p class=\"lead\"><b>%s limits %zu of %zu</b>: ", words, count, n);
	for (const mu_section *s = first; s < figures->sections + figures->n_sections; s++) {
		if (!s->words || s->limit != limit)
			continue;
		put(out, s == first ? "<a href=\"#" : ", <a href=\"#", s->id, "\">");
		put(out, "", s->name, "</a>");
	}
	fputs(". ", out);
	put_words(out, first->change);
	fputs("</p>\n", out);
}

/* One study or run: its paragraph. Several: what limits which of them; the paragraphs stand in their sections. */
static void print_words(FILE *out, const mu_figures *figures)
{
	size_t n = count_words(figures);
	static const struct {
		mu_limit limit;
		const char *words;
	} limits[] = {{MU_LIMIT_COMMUNICATION, "Communication"}, {MU_LIMIT_IMBALANCE, "A slow rank"},
	              {MU_LIMIT_DATA, "Waiting for images"},     {MU_LIMIT_OPTIMIZER, "The optimizer"},
	              {MU_LIMIT_COMPUTE, "Computing"},           {MU_LIMIT_UNKNOWN, "Something unknown"}};
	for (size_t l = 0; n > 1 && l < sizeof limits / sizeof *limits; l++)
		print_limit(out, figures, limits[l].limit, limits[l].words, n);
	for (size_t s = 0; n == 1 && s < figures->n_sections; s++)
		if (figures->sections[s].words) {
			fputs("<p class=\"lead\">", out);
			put_words(out, figures->sections[s].words);
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
