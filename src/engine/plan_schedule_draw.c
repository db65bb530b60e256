/* The learning rate as a picture: characters for a terminal, SVG for a page. Both put the run's updates into columns and draw what
 * each column spans, so a warm-up of one update or a sawtooth is seen however long the run is. SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "mural/plan.h"

enum { LEFT = 11, LABELS = 4, IN_COLUMN = 2000 };
enum { SVG_WIDTH = 720, SVG_HEIGHT = 320, SVG_LEFT = 70, SVG_TOP = 40, SVG_BOTTOM = 50, SVG_COLUMNS = 600 };

typedef struct span {
	double low, high;
} span;

/* First update of column c of n. */
static uint64_t update_at(const mural_schedule_plan *plan, uint64_t c, uint64_t n)
{
	return 1 + (uint64_t)((double)(plan->steps - 1) * (double)c / (double)(n > 1 ? n - 1 : 1));
}

/* What the learning rate spans between column c and the next. */
static span column(const mural_schedule_plan *plan, uint64_t c, uint64_t n)
{
	uint64_t from = update_at(plan, c, n), to = c + 1 < n ? update_at(plan, c + 1, n) : plan->steps + 1;
	uint64_t stride = (to - from) / IN_COLUMN + 1; /* of a very long run some are asked */
	span s = {INFINITY, -INFINITY};
	for (uint64_t i = from; i < to || i == from; i += stride) {
		double lr = mural_plan_schedule_at(plan, i, NULL);
		s.low = fmin(s.low, lr);
		s.high = fmax(s.high, lr);
	}
	return s;
}

/* From 0 to a little above the highest. */
static double top_of(const mural_schedule_plan *plan)
{
	return plan->highest > 0 ? plan->highest * 1.05 : 1;
}

static void draw_column(char *cells, int columns, int rows, int c, span s, double top)
{
	int low = (int)(s.low / top * rows), high = (int)(s.high / top * rows);
	for (int row = low < 0 ? 0 : low; row <= high && row < rows; row++)
		cells[(rows - 1 - row) * columns + c] = '*';
}

static void print_cells(const char *cells, FILE *out, int columns, int rows, double top)
{
	int every = rows / LABELS > 0 ? rows / LABELS : 1;
	for (int row = 0; row < rows; row++) {
		int last = columns;
		const char *line = cells + (size_t)row * (size_t)columns;
		while (last > 0 && line[last - 1] == ' ')
			last--;
		if ((rows - 1 - row) % every == 0)
			fprintf(out, "%*.3g |%.*s\n", LEFT - 2, top * (rows - 1 - row) / rows, last, line);
		else
			fprintf(out, "%*s|%.*s\n", LEFT - 1, "", last, line);
	}
}

void mural_plan_schedule_plot(const mural_schedule_plan *plan, FILE *out, int columns, int rows)
{
	columns = columns < 30 ? 20 : columns > 500 ? 489 : columns - LEFT;
	rows = rows < 4 ? 4 : rows > 100 ? 100 : rows;
	char *cells = malloc((size_t)columns * (size_t)rows);
	if (!cells)
		return; /* a picture less; the numbers are printed by the caller */
	memset(cells, ' ', (size_t)columns * (size_t)rows);
	for (int c = 0; c < columns; c++)
		draw_column(cells, columns, rows, c, column(plan, (uint64_t)c, (uint64_t)columns), top_of(plan));
	print_cells(cells, out, columns, rows, top_of(plan));
	free(cells);
	char last[32];
	int bytes = snprintf(last, sizeof last, "%llu", (unsigned long long)plan->steps);
	fprintf(out, "%*s+", LEFT - 1, "");
	for (int c = 0; c < columns; c++)
		fputc('-', out);
	fprintf(out, "\n%*s1%*s%s updates\n", LEFT, "", columns - bytes - 1 > 1 ? columns - bytes - 1 : 1, "", last);
}

static double x_of(uint64_t c)
{
	return SVG_LEFT + (double)c * (SVG_WIDTH - SVG_LEFT - 20) / (SVG_COLUMNS - 1);
}

static double y_of(double lr, double top)
{
	return SVG_HEIGHT - SVG_BOTTOM - lr / top * (SVG_HEIGHT - SVG_BOTTOM - SVG_TOP);
}

static void svg_axes(const mural_schedule_plan *plan, FILE *out)
{
	double top = top_of(plan);
	for (int i = 0; i <= LABELS; i++) {
		double lr = plan->highest * i / LABELS;
		fprintf(out, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" class=\"grid\"/>\n", SVG_LEFT,
		        SVG_WIDTH - 20, y_of(lr, top), y_of(lr, top));
		fprintf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.3g</text>\n", SVG_LEFT - 8,
		        y_of(lr, top) + 4, lr);
		uint64_t c = (uint64_t)(SVG_COLUMNS - 1) * (uint64_t)i / LABELS;
		fprintf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%llu</text>\n", x_of(c), SVG_HEIGHT - 30,
		        (unsigned long long)update_at(plan, c, SVG_COLUMNS));
	}
	fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">update (%llu per epoch)</text>\n",
	        (SVG_LEFT + SVG_WIDTH - 20) / 2, SVG_HEIGHT - 8, (unsigned long long)plan->steps_per_epoch);
}

static void svg_curve(const mural_schedule_plan *plan, FILE *out)
{
	double top = top_of(plan);
	fputs("<polyline points=\"", out);
	for (uint64_t c = 0; c < SVG_COLUMNS; c++) {
		span s = column(plan, c, SVG_COLUMNS);
		double first = mural_plan_schedule_at(plan, update_at(plan, c, SVG_COLUMNS), NULL);
		fprintf(out, "%.1f,%.2f ", x_of(c), y_of(first, top));
		if (s.high > s.low)
			fprintf(out, "%.1f,%.2f %.1f,%.2f ", x_of(c), y_of(s.low, top), x_of(c), y_of(s.high, top));
	}
	fputs("\"/>\n", out);
}

mural_status mural_plan_schedule_write_svg(const mural_schedule_plan *plan, const char *path, mural_error *err)
{
	mu_file file = {0};
	MU_TRY(mu_file_begin(&file, path, err));
	fprintf(file.out,
	        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
	        "font-size=\"12\">\n<style>.grid{stroke:#8884}polyline{fill:none;stroke:#2a6fdb;stroke-width:2}"
	        "text{fill:#333}@media(prefers-color-scheme:dark){text{fill:#ddd}polyline{stroke:#7ab0ff}}</style>\n"
	        "<title>learning rate</title>\n<text x=\"%d\" y=\"20\" font-size=\"14\">learning rate</text>\n",
	        SVG_WIDTH, SVG_HEIGHT, SVG_LEFT);
	svg_axes(plan, file.out);
	svg_curve(plan, file.out);
	fputs("</svg>\n", file.out);
	return mu_file_commit(&file, err);
}
