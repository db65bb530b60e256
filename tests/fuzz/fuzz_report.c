/* A report of any files: a study's folder with one run, and what a gnuplot might have drawn. The input's parts, with form feeds between
 * them, are study.json, study.csv, result.json, steps.csv, validation.csv and the picture. Whatever they hold, there is a page or a message
 * that says why not, every number on it is finite, and nothing of the input gets onto it as markup.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "study/report_inside.h"
#include "support/data_files.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t n);

static const char *const names[] = {"study.json", "study.csv", "points/p.1/result.json", "points/p.1/steps.csv",
                                    "points/p.1/validation.csv"};
#define NAMES (sizeof names / sizeof *names)

static char *folder;

static void remove_folder(void)
{
	test_folder_remove(folder);
}

/* The next part, *part .. *part + bytes; false: there is none. */
static bool next_part(const uint8_t **at, size_t *left, const uint8_t **part, size_t *bytes)
{
	if (!*at)
		return false;
	const uint8_t *end = *left ? memchr(*at, '\f', *left) : NULL;
	*part = *at;
	*bytes = end ? (size_t)(end - *at) : *left;
	*left -= *bytes + (end != NULL);
	*at = end ? end + 1 : NULL;
	return true;
}

static void write_files(const uint8_t **at, size_t *left)
{
	const uint8_t *part;
	size_t bytes;
	char path[1200];
	for (size_t i = 0; i < NAMES; i++) {
		snprintf(path, sizeof path, "%s/%s", folder, names[i]);
		unlink(path);
		if (next_part(at, left, &part, &bytes) && bytes > 0)
			test_file_write(folder, names[i], part, bytes);
	}
}

static void check(const char *text)
{
	if (strstr(text, "<script") || strstr(text, "=\"nan") || strstr(text, "=\"-nan") || strstr(text, "=\"inf") ||
	    strstr(text, "=\"-inf"))
		abort();
}

/* Every figure as a picture, then the page. */
static void show(const mu_report *report, const char *drawn)
{
	mu_figures figures;
	mural_error err = {0};
	char *text = NULL;
	size_t bytes = 0;
	if (mu_figures_make(&figures, report, &err) != MURAL_OK)
		abort();
	char **pictures = calloc(figures.n + 1, sizeof *pictures);
	FILE *out = open_memstream(&text, &bytes);
	if (!pictures || !out)
		abort();
	for (size_t f = 0; f < figures.n; f++) {
		mu_scene scene;
		if (mu_scene_make(&scene, &figures.all[f], &err) != MURAL_OK)
			abort();
		mu_svg_write(&scene, drawn, f % 2, out);
		mu_scene_release(&scene);
	}
	const mu_page page = {.report = report, .figures = &figures, .drawn = pictures, .folder = "x", .date = "today"};
	mu_page_write(&page, out);
	fclose(out);
	check(text);
	free(text);
	free(pictures);
	mu_figures_release(&figures);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t n)
{
	char path[1100];
	mural_error err = {0};
	if (!folder) {
		folder = test_folder_create();
		snprintf(path, sizeof path, "%s/points/p.1", folder);
		if (mu_make_folders(path, &err) != MURAL_OK)
			abort();
		atexit(remove_folder);
	}
	const uint8_t *at = input, *part = NULL;
	size_t left = n, bytes = 0;
	write_files(&at, &left);
	if (!next_part(&at, &left, &part, &bytes))
		bytes = 0;
	char *drawn = calloc(bytes + 1, 1);
	const char *const folders[] = {folder};
	const mural_report_settings settings = {.n_folders = 1, .folders = folders};
	mu_report report = {.settings = &settings};
	if (!drawn || mu_report_collect(&report, &err) != MURAL_OK)
		abort();
	if (bytes > 0)
		memcpy(drawn, part, bytes);
	if (report.n_runs + report.n_studies > 0)
		show(&report, drawn);
	else if (report.n_notes == 0)
		abort(); /* nothing was shown, and nobody told why */
	mu_report_release(&report);
	free(drawn);
	return 0;
}
