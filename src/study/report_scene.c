/* Where everything of a figure stands: axes, ticks, boxes. The plot's edges are fixed in pixels beforehand, so what gnuplot draws and
 * what is laid over it (names, legend, numbers on hover) meet exactly. SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "study/report_inside.h"

enum {
	WIDTH = 440, /* of a telephone's screen, so that texts keep their size there */
	PLOT = 210, /* height of the plot itself */
	LANE = 66, /* height of one category of LANES */
	LINE = 18, /* of text */
	MARGIN = 12,
	WIDEST = 72 /* bar */
};

#define FONT 13.0
#define PER_CHARACTER 0.62 /* of the font's size: DejaVu Sans, the widest of the usual ones, has 0.6 in the mean */

double mu_scene_text_width(const char *text)
{
	size_t n = 0;
	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80; /* characters, not bytes */
	return (double)n * FONT * PER_CHARACTER;
}

double mu_scene_x(const mu_scene *s, double x)
{
	return s->left + (x - s->x0) / (s->x1 - s->x0) * (s->right - s->left);
}

double mu_scene_y(const mu_scene *s, double y)
{
	return s->bottom - (y - s->y0) / (s->y1 - s->y0) * (s->bottom - s->top);
}

/* 1, 2 or 5 times a power of ten, so that `range` has about n of them. */
static double nice_step(double range, int n)
{
	double rough = range / n, power = pow(10, floor(log10(rough))), rest = rough / power;
	return power * (rest <= 1 ? 1 : rest <= 2 ? 2 : rest <= 5 ? 5 : 10);
}

/* An axis from `low` to at least `high`, ended at ticks. */
static size_t fill_axis(mu_tick *ticks, double *low, double *high, int n, bool whole)
{
	double size = fmax(fabs(*low), fabs(*high));
	if (!(*high - *low > fmax(1e-9 * size, 1e-100))) /* too close to be told apart */
		*high = *low + (size > 1e-90 ? size / 2 : 1);
	double step = nice_step(*high - *low, n);
	if (whole && step < 1)
		step = 1;
	int digits = step < 1 ? (int)ceil(-log10(step) - 1e-9) : 0;
	double from = floor(*low / step + 1e-9), to = ceil(*high / step - 1e-9);
	size_t kept = 0;
	for (double i = from; i <= to && kept < MU_TICKS; i++) {
		ticks[kept].at = i * step;
		snprintf(ticks[kept].text, sizeof ticks[kept].text, "%.*f", digits, fabs(i) < 0.5 ? 0 : i * step);
		if (digits > 5 || fabs(*high) >= 1e7)
			mu_report_short(fabs(i) < 0.5 ? 0 : i * step, ticks[kept].text);
		kept++;
	}
	*low = from * step;
	*high = to * step;
	return kept;
}

/* ---- boxes ---- */

static void add_box(mu_scene *s, mu_box box)
{
	s->boxes[s->n_boxes++] = box;
}

/* What is measured stands beside each other over its category, with a fifth left free. */
static void place_bars(mu_scene *s)
{
	const mu_figure *f = s->figure;
	double width = fmin(0.8 / (double)f->n_series, WIDEST * (double)f->n_categories / (s->right - s->left));
	for (size_t i = 0; i < f->n_series; i++)
		for (size_t k = 0; k < f->series[i].n; k++) {
			const mu_spot *spot = &f->series[i].spots[k];
			double x = spot->x + ((double)i - (double)f->n_series / 2) * width;
			add_box(s, (mu_box){x + 0.04 * width, x + 0.96 * width, fmin(0, spot->y), fmax(0, spot->y), i,
			                    spot});
		}
}

static void place_stack(mu_scene *s)
{
	const mu_figure *f = s->figure;
	double half = fmin(0.3, WIDEST * (double)f->n_categories / (s->right - s->left) / 2);
	for (size_t i = 0; i < f->n_series; i++)
		for (size_t k = 0; k < f->series[i].n; k++) {
			const mu_spot *spot = &f->series[i].spots[k];
			add_box(s, (mu_box){spot->x - half, spot->x + half, spot->from, spot->from + spot->y, i, spot});
		}
}

static void place_lanes(mu_scene *s)
{
	const mu_figure *f = s->figure;
	for (size_t i = 0; i < f->n_series; i++)
		for (size_t k = 0; k < f->series[i].n; k++) {
			const mu_spot *spot = &f->series[i].spots[k];
			double top = spot->x + (f->series[i].second ? 0.78 : 0.36);
			add_box(s, (mu_box){spot->from, spot->from + spot->y, top + (f->series[i].second ? 0.13 : 0.38),
			                    top, i, spot});
		}
}

static mural_status place_boxes(mu_scene *s, mural_error *err)
{
	size_t n = 0;
	for (size_t i = 0; i < s->figure->n_series; i++)
		n += s->figure->series[i].n;
	if (s->figure->kind == MU_FIGURE_LINES)
		return MURAL_OK;
	s->boxes = calloc(n ? n : 1, sizeof *s->boxes);
	if (!s->boxes)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, s->figure->id, "no memory for a figure of %zu boxes", n);
	if (s->figure->kind == MU_FIGURE_BARS)
		place_bars(s);
	else if (s->figure->kind == MU_FIGURE_STACK)
		place_stack(s);
	else
		place_lanes(s);
	return MURAL_OK;
}

/* ---- axes ---- */

static void find_range(const mu_scene *s, double *x0, double *x1, double *y0, double *y1)
{
	const mu_figure *f = s->figure;
	*x0 = *y0 = INFINITY;
	*x1 = *y1 = -INFINITY;
	for (size_t i = 0; i < f->n_series; i++)
		for (size_t k = 0; k < f->series[i].n; k++) {
			const mu_spot *spot = &f->series[i].spots[k];
			*x0 = fmin(*x0, spot->x);
			*x1 = fmax(*x1, spot->x);
			*y0 = fmin(*y0, spot->from + spot->y);
			*y1 = fmax(*y1, spot->from + spot->y);
		}
	/* Intervals are shown as far as they leave the values readable. */
	double low = *y0 - (*y1 - *y0) / 4, high = *y1 + (*y1 - *y0) / 4;
	for (size_t i = 0; i < f->n_series; i++)
		for (size_t k = 0; k < f->series[i].n; k++) {
			*y0 = fmax(low, fmin(*y0, f->series[i].spots[k].low));
			*y1 = fmin(high, fmax(*y1, f->series[i].spots[k].high));
		}
	if (!f->loose)
		*y0 = fmin(0, *y0);
	if (f->kind == MU_FIGURE_BARS)
		*y1 *= 1.08; /* numbers stand on the bars */
}

static void category_axis(mu_scene *s)
{
	s->n_x = s->figure->n_categories;
	for (size_t c = 0; c < s->n_x; c++) {
		s->x_ticks[c].at = (double)c;
		memcpy(s->x_ticks[c].text, s->figure->categories[c], sizeof s->x_ticks[c].text);
	}
	s->x0 = -0.5;
	s->x1 = (double)s->n_x - 0.5;
}

/* x of few different numbers (ranks) has its ticks there, other ones where they are round. */
static mural_status number_axis(mu_scene *s, double x0, double x1, mural_error *err)
{
	double *rows;
	size_t n = mu_figure_rows(s->figure, &rows);
	if (!rows)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, s->figure->id, "no memory for an axis");
	if (n > 0 && n <= 9) {
		for (size_t i = 0; i < n; i++) {
			s->x_ticks[i].at = rows[i];
			mu_report_short(rows[i], s->x_ticks[i].text);
		}
		s->n_x = n;
	} else {
		double low = fmin(0, x0), high = x1;
		s->n_x = fill_axis(s->x_ticks, &low, &high, 6, true);
		while (s->n_x > 1 && s->x_ticks[s->n_x - 1].at > x1)
			s->n_x--;
	}
	double room = x1 > x0 ? 0.03 * (x1 - x0) : 0.5;
	s->x0 = x0 - room;
	s->x1 = x1 + room;
	if (n > 9 && x0 > 0 && x0 < 0.05 * x1)
		s->x0 = 0;
	free(rows);
	return MURAL_OK;
}

/* Ticks whose texts would touch are thinned out: the table has all. */
static void thin_ticks(mu_scene *s)
{
	double end = -1e9;
	size_t kept = 0;
	if (s->figure->n_categories > 0)
		return;
	for (size_t i = 0; i < s->n_x; i++) {
		double at = mu_scene_x(s, s->x_ticks[i].at), half = mu_scene_text_width(s->x_ticks[i].text) / 2;
		if (at - half < end + 6)
			continue;
		end = at + half;
		s->x_ticks[kept++] = s->x_ticks[i];
	}
	s->n_x = kept;
}

static mural_status make_axes(mu_scene *s, mural_error *err)
{
	double x0, x1;
	find_range(s, &x0, &x1, &s->y0, &s->y1);
	if (s->figure->kind == MU_FIGURE_LANES) {
		s->x0 = 0;
		s->x1 = s->y1;
		s->n_x = fill_axis(s->x_ticks, &s->x0, &s->x1, 6, false);
		s->y0 = (double)s->figure->n_categories;
		s->y1 = 0;
		return MURAL_OK;
	}
	s->n_y = fill_axis(s->y_ticks, &s->y0, &s->y1, 5, false);
	if (s->figure->n_categories == 0)
		return number_axis(s, x0, x1, err);
	category_axis(s);
	return MURAL_OK;
}

/* ---- the picture's parts ---- */

double mu_scene_legend_width(const mu_scene *s, const mu_series *series)
{
	return fmin(MU_LEGEND_ENTRY + mu_scene_text_width(series->name), s->width - 2 * MARGIN);
}

int mu_scene_legend_rows(const mu_scene *s)
{
	double x = 0;
	int rows = 1;
	if (s->figure->n_series < 2 && s->figure->kind != MU_FIGURE_LANES && s->figure->kind != MU_FIGURE_STACK)
		return 0;
	for (size_t i = 0; i < s->figure->n_series; i++) {
		double width = mu_scene_legend_width(s, &s->figure->series[i]);
		if (x > 0 && x + width > s->width - 2 * MARGIN) {
			rows++;
			x = 0;
		}
		x += width;
	}
	return rows;
}

void mu_scene_fit(const char *text, double room, char *fitted, size_t size)
{
	size_t most = room > 0 ? (size_t)(room / (FONT * PER_CHARACTER)) : 0, n = 0, bytes = 0, shorter = 0;
	while (text[bytes] && n <= most && bytes + 4 < size) {
		if (n + 1 == most)
			shorter = bytes; /* room for the dots */
		do
			bytes++;
		while (((unsigned char)text[bytes] & 0xc0) == 0x80 && bytes + 4 < size);
		n++;
	}
	if (!text[bytes] && n <= most)
		snprintf(fitted, size, "%s", text);
	else
		snprintf(fitted, size, "%.*s\xe2\x80\xa6", (int)shorter, text);
}

/* Every category is named, or, where a word is wider than its room, every second, third, ... */
static void find_room(mu_scene *s)
{
	double room = (double)(s->right - s->left) / (double)(s->n_x ? s->n_x : 1), widest = 1;
	for (size_t c = 0; c < s->n_x; c++)
		for (const char *word = s->x_ticks[c].text; *word; word += strspn(word, " ")) {
			size_t n = strcspn(word, " ");
			widest = fmax(widest, (double)n * FONT * PER_CHARACTER);
			word += n;
		}
	s->stride = (size_t)ceil(widest / room);
	s->room = fmin(room * (double)s->stride, s->right - s->left);
}

/* Lines that the longest category takes when it is broken to its room. */
static int category_lines(const mu_scene *s)
{
	int most = 1;
	for (size_t c = 0; c < s->n_x; c += s->stride) {
		int lines = 0;
		for (const char *rest = s->x_ticks[c].text; *rest; lines++)
			rest += mu_scene_break(rest, s->room);
		most = lines > most ? lines : most;
	}
	return most;
}

size_t mu_scene_break(const char *text, double room)
{
	size_t fits = 0;
	for (size_t i = 0; text[i]; i++)
		if (text[i + 1] == ' ' || text[i + 1] == '\0') {
			double width = (double)(i + 1) * FONT * PER_CHARACTER;
			if (fits > 0 && width > room)
				return fits;
			fits = i + 1 + (text[i + 1] == ' ');
		}
	return fits ? fits : strlen(text);
}

mural_status mu_scene_make(mu_scene *s, const mu_figure *figure, mural_error *err)
{
	*s = (mu_scene){.figure = figure, .width = WIDTH};
	MU_TRY(make_axes(s, err));
	double widest = 0;
	for (size_t i = 0; i < s->n_y; i++)
		widest = fmax(widest, mu_scene_text_width(s->y_ticks[i].text));
	bool lanes = figure->kind == MU_FIGURE_LANES;
	s->left = lanes ? 2 * MARGIN : (int)widest + MARGIN + 8; /* half a number stands left of 0 */
	s->right = WIDTH - MARGIN - (lanes ? 16 : 4);
	s->top = 6 + LINE * mu_scene_legend_rows(s) + (figure->y_label[0] ? LINE + 10 : 4);
	s->bottom = s->top + (lanes ? LANE * (int)figure->n_categories : PLOT);
	bool named = figure->n_categories > 0 && !lanes;
	s->stride = 1;
	if (named)
		find_room(s);
	s->height = s->bottom + 9 + LINE * (named ? category_lines(s) : 1) + (figure->x_label[0] ? LINE + 4 : 0) + 6;
	thin_ticks(s);
	return place_boxes(s, err);
}

void mu_scene_release(mu_scene *s)
{
	free(s->boxes);
	*s = (mu_scene){0};
}
