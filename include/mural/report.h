/* Reports: one page of HTML that shows what a run or a study found, in words, figures and tables.
 *
 * The page is complete in itself: figures are SVG inside it, there is no script and nothing is loaded from anywhere. It follows the
 * reader's choice of a light or a dark screen and can be printed. Every figure is also a file of its own beside the page:
 *
 *     report.html
 *     report-figures/strong-time.svg
 *
 * Figures are drawn by gnuplot, which is looked for in PATH. Without it the page has the words and the tables.
 *
 *     const char *folders[] = {"runs/strong", "runs/weak"};
 *     mural_report_settings settings = {.n_folders = 2, .folders = folders, .output = "report.html"};
 *     mural_report_write(&settings, &summary, &err);
 * SPDX-License-Identifier: MIT */
#ifndef MURAL_REPORT_H
#define MURAL_REPORT_H

#include <stddef.h>

#include "mural/cluster.h"
#include "mural/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mural_report_settings {
	size_t n_folders;
	/* Each is a run's folder (steps.csv), a study's (study.json), or one that holds such folders. Borrowed. */
	const char *const *folders;
	const char *output; /* the page; default "report.html" in the first folder */
	const char *title; /* NULL: made from what there is */
	const char *gnuplot; /* program; NULL: "gnuplot", looked for in PATH */
	const mural_cluster *cluster; /* prices and watts of its devices give money and joules; NULL: none. Borrowed */
	mural_placement placement; /* in which order ranks take its devices */
	/* Called for each thing that the page had to leave out, while it is made; may be NULL. */
	void (*note)(void *user, const char *words);
	void *user;
} mural_report_settings;

typedef struct mural_report_summary {
	size_t runs, studies; /* shown; the runs of a study count as its own */
	size_t figures, drawn; /* with their tables; of these drawn as pictures */
	size_t notes; /* things left out, each told on the page */
	char page[4096]; /* where it was written */
	char limit[512]; /* what limits the first run or study, one sentence */
} mural_report_summary;

/* MURAL_DATA: something was damaged or no run at all. The page is written all the same when there was anything to show, and
 * summary->page is "" when there was not. MURAL_FAILED: the disk did not take it; an older page stays as it was. */
MURAL_API mural_status mural_report_write(const mural_report_settings *settings, mural_report_summary *summary,
                                          mural_error *err);

/* The summary as a JSON file, written whole or not at all. */
MURAL_API mural_status mural_report_write_json(const char *path, const mural_report_summary *summary, mural_error *err);

#ifdef __cplusplus
}
#endif
#endif
