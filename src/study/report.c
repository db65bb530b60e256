/* A report from its folders to its page: collects, makes figures, has them drawn, writes. Nothing is replaced before its successor is
 * whole. SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/files.h"
#include "base/json.h"
#include "study/report_inside.h"

/* Where things go. */
typedef struct places {
	char page[PATH_MAX];
	char folder[PATH_MAX]; /* of the figures */
	char link[NAME_MAX + 16]; /* the same, as the page sees it */
} places;

static mural_status choose(places *p, const mural_report_settings *s, mural_error *err)
{
	int n = s->output ? snprintf(p->page, sizeof p->page, "%s", s->output)
	                  : snprintf(p->page, sizeof p->page, "%s/report.html", s->folders[0]);
	size_t length = strlen(p->page);
	if (n >= (int)sizeof p->page - 64)
		return mu_fail(err, MURAL_USAGE, NULL, "the path of the page is longer than %d bytes",
		               (int)sizeof p->page - 64);
	if (length == 0 || p->page[length - 1] == '/')
		return mu_fail(err, MURAL_USAGE, p->page, "the page needs a name, such as report.html");
	const char *slash = strrchr(p->page, '/'), *name = slash ? slash + 1 : p->page, *dot = strrchr(name, '.');
	int stem = (int)(dot && dot > name ? dot - p->page : (long)length);
	snprintf(p->folder, sizeof p->folder, "%.*s-figures", stem, p->page);
	snprintf(p->link, sizeof p->link, "%.*s-figures", stem - (int)(name - p->page), name);
	return MURAL_OK;
}

static mural_status draw_figure(const mu_scene *scene, const char *program, const char *folder, char **inside,
                                mural_error *err)
{
	char *drawn = NULL, path[PATH_MAX];
	size_t bytes = 0;
	mu_file file = {0};
	MU_TRY(mu_gnuplot_draw(scene, program, &drawn, err));
	mural_status status = MURAL_OK;
	FILE *text = open_memstream(inside, &bytes);
	if (text)
		mu_svg_write(scene, drawn, false, text);
	if (!text || fclose(text) != 0)
		MU_TRY_OUT(mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for a figure"));
	if (snprintf(path, sizeof path, "%s/%s.svg", folder, scene->figure->id) >= (int)sizeof path)
		MU_TRY_OUT(mu_fail(err, MURAL_USAGE, folder, "the path of a figure is too long"));
	MU_TRY_OUT(mu_file_begin(&file, path, err));
	mu_svg_write(scene, drawn, true, file.out);
	status = mu_file_commit(&file, err);
out:
	free(drawn);
	return status;
}

/* What gnuplot cannot do is noted once and does not stop the report; a full disk does. */
static mural_status draw_all(mu_report *report, const mu_figures *figures, const char *folder, char **drawn,
                             size_t *n_drawn, mural_error *err)
{
	const char *program = report->settings->gnuplot ? report->settings->gnuplot : "gnuplot";
	bool works = true;
	for (size_t f = 0; works && f < figures->n; f++) {
		mu_scene scene;
		mural_error why = {0};
		mural_status status = mu_scene_make(&scene, &figures->all[f], err);
		if (status != MURAL_OK)
			return status;
		status = draw_figure(&scene, program, folder, &drawn[f], &why);
		mu_scene_release(&scene);
		*n_drawn += status == MURAL_OK;
		works = status == MURAL_OK;
		if (status == MURAL_FAILED && strcmp(why.where, program) == 0)
			mu_report_note(report, false,
			               "%.300s: the figures are not drawn, their tables have the numbers", why.message);
		else if (status != MURAL_OK)
			return mu_fail(err, status, why.where[0] ? why.where : NULL, "%s", why.message);
	}
	return MURAL_OK;
}

static mural_status write_page(const mu_page *page, const char *path, mural_error *err)
{
	mu_file file = {0};
	MU_TRY(mu_file_begin(&file, path, err));
	mu_page_write(page, file.out);
	return mu_file_commit(&file, err);
}

static void name_date(char date[32])
{
	time_t now = time(NULL);
	struct tm utc;
	date[0] = '\0';
	if (gmtime_r(&now, &utc))
		strftime(date, 32, "%Y-%m-%d %H:%M UTC", &utc);
}

static mural_status make(mu_report *report, const places *where, mural_report_summary *summary, mural_error *err)
{
	mu_figures figures;
	char date[32];
	MU_TRY(mu_figures_make(&figures, report, err));
	char **drawn = calloc(figures.n ? figures.n : 1, sizeof *drawn);
	mural_status status = drawn ? draw_all(report, &figures, where->folder, drawn, &summary->drawn, err)
	                            : mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for pictures");
	summary->figures = figures.n;
	for (size_t s = figures.n_sections; s-- > 0;)
		if (figures.sections[s].sentence)
			snprintf(summary->limit, sizeof summary->limit, "%s", figures.sections[s].sentence);
	name_date(date);
	const mu_page page = {
	        .report = report, .figures = &figures, .drawn = drawn, .folder = where->link, .date = date};
	if (status == MURAL_OK)
		status = write_page(&page, where->page, err);
	for (size_t f = 0; drawn && f < figures.n; f++)
		free(drawn[f]);
	free(drawn);
	mu_figures_release(&figures);
	return status;
}

mural_status mural_report_write(const mural_report_settings *settings, mural_report_summary *summary, mural_error *err)
{
	mu_report report = {.settings = settings};
	places where;
	*summary = (mural_report_summary){0};
	if (settings->n_folders == 0)
		return mu_fail(err, MURAL_USAGE, NULL, "a report needs the folder of a run or of a study");
	MU_TRY(choose(&where, settings, err));
	mural_status status = mu_report_collect(&report, err);
	if (status == MURAL_OK && report.n_runs + report.n_studies > 0) {
		status = make(&report, &where, summary, err);
		if (status == MURAL_OK)
			snprintf(summary->page, sizeof summary->page, "%.4095s", where.page);
	}
	summary->runs = report.n_runs;
	summary->studies = report.n_studies;
	summary->notes = report.n_notes;
	if (status == MURAL_OK && report.damage[0])
		status = mu_fail(err, MURAL_DATA, NULL, "%s", report.damage);
	if (status == MURAL_DATA && summary->page[0])
		mu_context(err, "the report shows what could be read: %s", summary->page);
	mu_report_release(&report);
	return status;
}

mural_status mural_report_write_json(const char *path, const mural_report_summary *summary, mural_error *err)
{
	mu_file file = {0};
	mu_json json;
	MU_TRY(mu_file_begin(&file, path, err));
	mu_json_init(&json, file.out, MU_JSON_PRETTY);
	mu_json_object_begin(&json, NULL);
	mu_json_string(&json, "page", summary->page);
	mu_json_string(&json, "limit", summary->limit);
	mu_json_unsigned(&json, "runs", summary->runs);
	mu_json_unsigned(&json, "studies", summary->studies);
	mu_json_unsigned(&json, "figures", summary->figures);
	mu_json_unsigned(&json, "drawn", summary->drawn);
	mu_json_unsigned(&json, "notes", summary->notes);
	mu_json_object_end(&json);
	return mu_file_commit(&file, err);
}
