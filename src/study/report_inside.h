/* Inside a report: what was collected, the figures made of it, and how they get onto the page.
 *
 *     folders ─► mu_report ─► mu_figures ─────────► mu_scene ────► gnuplot ─► SVG ─► page
 *                runs and     numbers with names    boxes, lines
 *                studies
 *     report_collect.c        report_figures*.c     report_scene.c report_gnuplot.c  report_page.c
 *     report_run.c            report_words*.c                      report_svg.c      report_style.c
 *     report_study.c
 *
 * A number that is not known is NaN everywhere and is shown nowhere. Texts that come from files are plain text until they are
 * written, and escaped then.
 * SPDX-License-Identifier: MIT */
#ifndef MU_STUDY_REPORT_INSIDE_H
#define MU_STUDY_REPORT_INSIDE_H

#include <limits.h>
#include <math.h>
#include <stdint.h>

#include "base/hjson.h"
#include "monitor/timers.h"
#include "mural/report.h"
#include "mural/study.h"

#define MU_REPORT_MOST 64 /* runs, and studies, of a report */

/* Parts of a run's memory. X(enum, key of result.json, words). */
#define MU_PART_LIST(X)                                      \
	X(MU_PART_PARAMETERS, "parameters", "parameters")    \
	X(MU_PART_GRADIENTS, "gradients", "gradients")       \
	X(MU_PART_OPTIMIZER, "optimizer", "optimizer")       \
	X(MU_PART_ACTIVATIONS, "activations", "activations") \
	X(MU_PART_SCRATCH, "scratch", "workspace")           \
	X(MU_PART_LOADER, "loader", "images waiting")        \
	X(MU_PART_CHECKPOINT, "checkpoint", "checkpoint copy")

typedef enum mu_part {
#define MU_X(name, key, words) name,
	MU_PART_LIST(MU_X)
#undef MU_X
	        MU_PARTS
} mu_part;

/* Seconds of a step by phase; all but the hidden ones add up to `step`. */
typedef struct mu_step_times {
	double step;
	double phase[MU_PHASE_COUNT];
} mu_step_times;

typedef struct mu_report_epoch {
	double epoch, train_loss, train_accuracy, validation_loss, validation_accuracy, test_loss, test_accuracy;
} mu_report_epoch;

typedef struct mu_report_run {
	char name[96];
	bool finished; /* has a result.json */
	char model[64];
	double ranks, threads, parameters, images, images_per_second, seconds;
	double images_per_step; /* of all ranks, median */
	double train_loss, test_accuracy, peak_memory;
	double planned[MU_PARTS], used[MU_PARTS]; /* bytes of a rank */
	double joules; /* measured */
	mu_step_times times; /* medians over its steps, the first left out */
	size_t n_steps;
	double *step, *loss; /* [n_steps] */
	size_t n_epochs;
	mu_report_epoch *epochs;
	double imbalance; /* seconds of a step that the slowest rank computed longer than the mean; NaN: not known */
	int slowest; /* rank */
	double stalls, stalled; /* how often a rank stalled, and seconds in all; NaN: never */
} mu_report_run;

/* A value with its 95 % interval, NaN where there is none. */
typedef struct mu_measure {
	double value, low, high;
} mu_measure;

typedef struct mu_report_point {
	char name[96];
	char precision[24], optimizer[40];
	double ranks, batch, accumulation, fraction, rounds;
	mu_step_times times;
	double images_per_second, epoch, train_loss, train_accuracy, test_accuracy, peak_memory;
	mu_measure speed_up, efficiency, waiting; /* waiting: fraction of a step */
	double serial, imbalance, late; /* late: fraction of its time by which an emulation could not keep up */
	char device[64];
	bool many_nodes;
	mu_report_run *run; /* one of its runs; NULL: none can be read */
} mu_report_point;

typedef struct mu_report_study {
	char name[96];
	mural_study_kind kind;
	char host[128], version[32], date[40];
	char model[64], data[256], cluster[64];
	char arguments[1024]; /* configuration of its runs, as one would type it */
	double cores, rounds;
	bool whole_epochs; /* its runs were whole trainings: their losses and accuracies mean something */
	size_t n_points;
	mu_report_point *points;
	size_t runs_wanted, runs_measured;
} mu_report_study;

typedef struct mu_report {
	const mural_report_settings *settings;
	size_t n_runs, n_studies;
	mu_report_run *runs[MU_REPORT_MOST];
	mu_report_study *studies[MU_REPORT_MOST];
	size_t n_notes;
	char **notes; /* what is missing, for people */
	bool no_memory;
	char damage[512]; /* the first thing that was damaged; "" */
} mu_report;

/* ---- collecting ---- */

/* Fills a zeroed report from settings->folders. What cannot be read becomes a note. */
mural_status mu_report_collect(mu_report *report, mural_error *err);
void mu_report_release(mu_report *report);

/* Adds to what the page has to leave out. damaged: the command shall fail with MURAL_DATA in the end. */
MU_PRINTF(3, 4) void mu_report_note(mu_report *report, bool damaged, const char *format, ...);

/* A run's folder; the caller owns *run. MURAL_DATA: nothing in it can be shown. What else is missing is noted. */
mural_status mu_report_read_run(mu_report *report, const char *folder, mu_report_run **run, mural_error *err);
void mu_report_run_free(mu_report_run *run);

mural_status mu_report_read_study(mu_report *report, const char *folder, mu_report_study **study, mural_error *err);
void mu_report_study_free(mu_report_study *study);

/* Reads strict JSON; *tree is the caller's. */
mural_status mu_report_read_json(const char *path, mu_hjson **tree, mural_error *err);
double mu_report_number_of(const mu_hjson_value *object, const char *key); /* NaN: not there, or no number */
void mu_report_text_of(const mu_hjson_value *object, const char *key, char *text, size_t size); /* "": not there */
/* The name of a folder for people: its last part. */
void mu_report_name_of(const char *folder, char *name, size_t size);

/* ---- words ---- */

typedef enum mu_limit {
	MU_LIMIT_UNKNOWN,
	MU_LIMIT_COMPUTE,
	MU_LIMIT_COMMUNICATION,
	MU_LIMIT_DATA,
	MU_LIMIT_IMBALANCE,
	MU_LIMIT_OPTIMIZER
} mu_limit;

typedef struct mu_limit_facts {
	double ranks, batch; /* batch: images per rank and step; NaN: not known */
	mu_step_times times;
	double imbalance; /* as in mu_report_run */
	int slowest; /* -1: not known */
} mu_limit_facts;

mu_limit mu_report_limit(const mu_limit_facts *facts);
/* What limits, one sentence; then what to change. */
void mu_report_say_limit(FILE *out, const mu_limit_facts *facts);
void mu_report_say_change(FILE *out, const mu_limit_facts *facts);
void mu_report_say_run(FILE *out, const mu_report_run *run);
void mu_report_say_study(FILE *out, const mu_report_study *study);
mu_limit_facts mu_report_facts_of_run(const mu_report_run *run);
mu_limit_facts mu_report_facts_of_point(const mu_report_point *point);
/* The point with most ranks that was measured, of these the one with most images per step; NULL: none was. */
const mu_report_point *mu_report_largest(const mu_report_study *study);

/* "1.23", "0.0123", "12300", "1.2e-07": three or four digits; returns text. */
#define MU_SHORT_SIZE 32
const char *mu_report_short(double value, char text[MU_SHORT_SIZE]);
/* "1 rank", "2 ranks". */
const char *mu_report_ranks(double ranks, char text[MU_SHORT_SIZE]);

/* ---- figures ---- */

typedef enum mu_figure_kind {
	MU_FIGURE_BARS, /* series stand beside each other over each category */
	MU_FIGURE_STACK, /* series stand on each other */
	MU_FIGURE_LINES, /* x is a number */
	MU_FIGURE_LANES /* categories below each other, spans of time to the right */
} mu_figure_kind;

typedef struct mu_spot {
	double x; /* a number, or a category from 0 */
	double y; /* the value */
	double from; /* STACK, LANES: where it begins; else 0 */
	double low, high; /* interval; NaN: none */
} mu_spot;

typedef struct mu_series {
	char name[96];
	int colour; /* of mu_palette */
	bool dashed; /* LINES: an ideal, not a measurement */
	bool second; /* LANES: in the lower lane */
	bool bare; /* LINES: no mark on each spot */
	size_t n, room;
	mu_spot *spots;
} mu_series;

#define MU_SERIES 12 /* most of a figure; that there were more is said under it */
#define MU_CATEGORIES 24

typedef struct mu_figure {
	mu_figure_kind kind;
	char id[120]; /* file name and anchor: [a-z0-9-] */
	char title[160], caption[640];
	char x_label[64], y_label[64];
	char unit[16]; /* behind a number: " s", " %", "" */
	bool loose; /* LINES: y need not begin at 0 */
	size_t n_categories;
	char categories[MU_CATEGORIES][64];
	size_t n_series;
	mu_series series[MU_SERIES];
	bool cut; /* there was more than fits */
	bool no_memory;
} mu_figure;

typedef struct mu_section {
	char title[160], id[112];
	mu_limit limit;
	char name[96];
	/* Plain text, NULL in a section across studies and runs: what limits, one sentence; what to change; a paragraph with both. */
	char *sentence, *change, *words;
	char *facts; /* a line: what was run, where */
	size_t first, n; /* its figures */
} mu_section;

#define MU_SECTIONS (2 * MU_REPORT_MOST + 1)

typedef struct mu_figures {
	size_t n, room;
	mu_figure *all;
	size_t n_sections;
	mu_section sections[MU_SECTIONS];
	mu_figure now; /* the one being made */
	bool no_memory;
} mu_figures;

/* Makes all figures of a report. */
mural_status mu_figures_make(mu_figures *figures, const mu_report *report, mural_error *err);
void mu_figures_release(mu_figures *figures);
/* report_figures_study.c, report_figures_run.c, report_figures_all.c: the figures of a section that has begun. */
void mu_figures_of_study(mu_figures *figures, const mu_report_study *study, const mural_report_settings *settings);
void mu_figures_of_run(mu_figures *figures, const mu_report_run *run, const mural_report_settings *settings);
void mu_figures_across(mu_figures *figures, const mu_report *report);

/* Building blocks. They remember that memory ran out, and mu_figures_make tells it. A figure without a spot is not kept. */
mu_figure *mu_figure_begin(mu_figures *figures, const char *id, mu_figure_kind kind);
void mu_figure_end(mu_figures *figures);
MU_PRINTF(2, 3)
size_t mu_figure_category(mu_figure *figure, const char *format, ...); /* a text that is there keeps its index */
/* The series of this name, a new one if there is none; NULL: no more fit. */
MU_PRINTF(2, 3) mu_series *mu_figure_series(mu_figure *figure, const char *format, ...);
/* A y that is not finite is left out; so is everything for a series that is NULL. */
void mu_series_add(mu_figure *figure, mu_series *series, mu_spot spot);

static inline mu_spot mu_spot_at(double x, double y)
{
	return (mu_spot){.x = x, .y = y, .low = NAN, .high = NAN};
}

/* What a number of the figure is called, for titles and tables: "2 ranks", "16", "epoch 3". */
void mu_figure_x_text(const mu_figure *figure, double x, char *text, size_t size);
void mu_figure_y_text(const mu_figure *figure, double y, char *text, size_t size);
/* x of its table's rows, each once, in order; returns how many, 0 when memory ran out. The caller frees *rows. */
size_t mu_figure_rows(const mu_figure *figure, double **rows);

/* ---- pictures ---- */

#define MU_COLOURS 12
/* "#2a6fdb" and what it becomes on a dark page. */
typedef struct mu_colour {
	const char *light, *dark;
} mu_colour;
extern const mu_colour mu_palette[MU_COLOURS], mu_grid_colour, mu_ink_colour;
enum { MU_COLOUR_GREY = 7 };
/* CSS that every picture needs, and the page's own. */
void mu_report_style_figures(FILE *out);
void mu_report_style_page(FILE *out);

typedef struct mu_box {
	double x0, x1, y0, y1; /* in the figure's own numbers */
	size_t series;
	const mu_spot *spot;
} mu_box;

typedef struct mu_tick {
	double at;
	char text[64];
} mu_tick;

#define MU_TICKS 48

/* Where everything stands: the figure's own numbers, and pixels. */
typedef struct mu_scene {
	const mu_figure *figure;
	int width, height; /* pixels of the picture */
	int left, right, top, bottom; /* edges of the plot, from the picture's top left corner */
	double x0, x1, y0, y1; /* the axes' ends */
	size_t n_x, n_y;
	mu_tick x_ticks[MU_TICKS], y_ticks[MU_TICKS];
	size_t stride; /* every so manieth tick of x is named */
	double room; /* pixels for the name of a category */
	size_t n_boxes;
	mu_box *boxes; /* BARS, STACK, LANES */
} mu_scene;

mural_status mu_scene_make(mu_scene *scene, const mu_figure *figure, mural_error *err);
void mu_scene_release(mu_scene *scene);
double mu_scene_x(const mu_scene *scene, double x); /* pixels */
double mu_scene_y(const mu_scene *scene, double y);
/* Pixels that a text takes at most in the pictures' font. */
double mu_scene_text_width(const char *text);
/* Bytes of `text` that go on one line of so many pixels, cut at a space; at least one word. */
size_t mu_scene_break(const char *text, double room);
enum { MU_LEGEND_ENTRY = 34 /* pixels of a legend's entry besides its text */ };
double mu_scene_legend_width(const mu_scene *scene, const mu_series *series);
/* As much of a text as goes into so many pixels, with dots behind it if that is not all. */
void mu_scene_fit(const char *text, double room, char *fitted, size_t size);
/* Rows of the legend; 0: it needs none. */
int mu_scene_legend_rows(const mu_scene *scene);

/* report_gnuplot.c: draws axes, boxes and lines. *svg, the caller's to free, is what gnuplot wrote. MURAL_FAILED: there is no gnuplot,
 * or it did not work; err says which. Only numbers and texts of ours get into the script. */
mural_status mu_gnuplot_draw(const mu_scene *scene, const char *program, char **svg, mural_error *err);

/* report_svg.c: gnuplot's picture with colours that follow the reader's, names, a legend and numbers on hover. alone: a file of its
 * own. */
void mu_svg_write(const mu_scene *scene, const char *drawn, bool alone, FILE *out);
/* Text as content or attribute of HTML and SVG; bytes that are no UTF-8 and control characters become U+FFFD. */
void mu_escape(FILE *out, const char *text);

/* report_page.c. drawn: [figures->n], the SVG of each or NULL. date: when it was made. */
typedef struct mu_page {
	const mu_report *report;
	const mu_figures *figures;
	char *const *drawn;
	const char *folder; /* of the figures' files, as a link */
	const char *date;
} mu_page;

void mu_page_write(const mu_page *page, FILE *out);

#endif
