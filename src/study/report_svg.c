/* From gnuplot's picture to ours. Of what gnuplot wrote only its paths and polygons are taken, each with a colour of the palette as a
 * class, so that a page can be dark; names, legend and numbers on hover are laid over them. SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "study/report_inside.h"

enum { LINE = 18, MARGIN = 12 };

/* ---- text ---- */

/* Bytes of the well-formed character at `at`; 0: it is none. */
static size_t utf8_length(const unsigned char *at)
{
	size_t n = at[0] < 0x80                    ? 1
	           : at[0] >= 0xc2 && at[0] < 0xe0 ? 2
	           : (at[0] & 0xf0) == 0xe0        ? 3
	           : at[0] >= 0xf0 && at[0] < 0xf5 ? 4
	                                           : 0;
	for (size_t i = 1; i < n; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) || (at[0] == 0xf0 && at[1] < 0x90) ||
	    (at[0] == 0xf4 && at[1] > 0x8f) || (at[0] == 0xef && at[1] == 0xbf && at[2] >= 0xbe))
		return 0; /* too long, half of a pair, beyond the end, or U+FFFE and U+FFFF, which XML forbids */
	return n;
}

void mu_escape(FILE *out, const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	while (*at) {
		size_t n = utf8_length(at);
		if (n == 0 || (*at < 0x20 && *at != '\t' && *at != '\n') || *at == 0x7f)
			fputs("\xef\xbf\xbd", out);
		else if (*at == '&')
			fputs("&amp;", out);
		else if (*at == '<')
			fputs("&lt;", out);
		else if (*at == '>')
			fputs("&gt;", out);
		else if (*at == '"')
			fputs("&quot;", out);
		else if (*at == '\'')
			fputs("&#39;", out);
		else
			fwrite(at, 1, n, out);
		at += n ? n : 1;
	}
}

/* ---- what gnuplot drew ---- */

/* The value of an attribute inside a tag that ends at `end`; NULL: it has none. Both kinds of quotes, blanks around the sign. */
static const char *attribute(const char *tag, const char *end, const char *name, size_t *bytes)
{
	size_t length = strlen(name);
	for (const char *at = tag; at + length < end; at++) {
		if (at[-1] != ' ' || strncmp(at, name, length) != 0)
			continue;
		const char *value = at + length + strspn(at + length, " ");
		if (*value != '=')
			continue;
		value++;
		value += strspn(value, " ");
		const char *close =
		        *value == '"' || *value == '\'' ? memchr(value + 1, *value, (size_t)(end - value - 1)) : NULL;
		if (!close)
			return NULL;
		*bytes = (size_t)(close - value - 1);
		return value + 1;
	}
	return NULL;
}

/* Numbers and letters of paths, nothing that could end the attribute. */
static void copy_numbers(FILE *out, const char *text, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (strchr("0123456789.,-+eMLHVZmlhvz ", text[i]) && text[i])
			fputc(text[i], out);
		else if (text[i] == '\n' || text[i] == '\t')
			fputc(' ', out);
}

/* "rgb( 42, 111, 219)" as a class and as what a reader without style sheets sees. */
static void print_colour(FILE *out, const char *property, char class, const char *text)
{
	char hex[8];
	int r, g, b;
	if (!text || sscanf(text, "rgb(%d ,%d ,%d", &r, &g, &b) != 3)
		return;
	snprintf(hex, sizeof hex, "#%02x%02x%02x", (unsigned)r & 255, (unsigned)g & 255, (unsigned)b & 255);
	fprintf(out, " %s=\"%s\"", property, hex);
	for (int c = 0; c < MU_COLOURS; c++)
		if (strcmp(mu_palette[c].light, hex) == 0)
			fprintf(out, " class=\"%c%d\"", class, c);
	if (strcmp(mu_grid_colour.light, hex) == 0)
		fprintf(out, " class=\"grid\"");
	if (strcmp(mu_ink_colour.light, hex) == 0)
		fprintf(out, " class=\"mark\"");
}

static void copy_path(FILE *out, const char *tag, const char *end, double width)
{
	size_t bytes, colour_bytes;
	const char *d = attribute(tag, end, "d", &bytes), *colour = attribute(tag, end, "stroke", &colour_bytes);
	if (!d || !colour)
		return;
	fprintf(out, "<path fill=\"none\" stroke-width=\"%g\"", width > 0 ? width : 1);
	print_colour(out, "stroke", 's', colour);
	fprintf(out, " d=\"");
	copy_numbers(out, d, bytes);
	fputc('"', out);
	const char *dashes = attribute(tag, end, "stroke-dasharray", &bytes);
	if (dashes) {
		fprintf(out, " stroke-dasharray=\"");
		copy_numbers(out, dashes, bytes);
		fputc('"', out);
	}
	fprintf(out, "/>\n");
}

static void copy_polygon(FILE *out, const char *tag, const char *end)
{
	size_t bytes, colour_bytes;
	const char *points = attribute(tag, end, "points", &bytes),
	           *colour = attribute(tag, end, "fill", &colour_bytes);
	if (!points || !colour)
		return;
	fprintf(out, "<polygon");
	print_colour(out, "fill", 'f', colour);
	fprintf(out, " points=\"");
	copy_numbers(out, points, bytes);
	fprintf(out, "\"/>\n");
}

static void copy_drawn(FILE *out, const char *svg)
{
	double width = 1;
	const char *body = strstr(svg, "</defs>");
	for (const char *at = body ? body : svg; (at = strchr(at, '<')); at++) {
		const char *end = strchr(at, '>');
		size_t bytes;
		if (!end)
			return;
		if (strncmp(at, "<g ", 3) == 0) {
			const char *text = attribute(at + 3, end, "stroke-width", &bytes);
			width = text ? strtod(text, NULL) : width;
		} else if (strncmp(at, "<path ", 6) == 0) {
			copy_path(out, at + 6, end, width);
		} else if (strncmp(at, "<polygon ", 9) == 0) {
			copy_polygon(out, at + 9, end);
		}
	}
}

/* ---- what is laid over it ---- */

static void text_at(FILE *out, double x, double y, const char *anchor, const char *class, const char *text)
{
	fprintf(out, "<text x=\"%.1f\" y=\"%.1f\"", x, y);
	if (anchor)
		fprintf(out, " text-anchor=\"%s\"", anchor);
	if (class)
		fprintf(out, " class=\"%s\"", class);
	fputc('>', out);
	mu_escape(out, text);
	fprintf(out, "</text>\n");
}

static void print_swatch(FILE *out, const mu_scene *s, const mu_series *series, double x, double y)
{
	int c = series->colour % MU_COLOURS;
	if (s->figure->kind == MU_FIGURE_LINES)
		fprintf(out,
		        "<path class=\"s%d\" stroke=\"%s\" stroke-width=\"2\" fill=\"none\" d=\"M%.1f,%.1f h16\"%s/>\n",
		        c, mu_palette[c].light, x, y - 4.5, series->dashed ? " stroke-dasharray=\"5,3\"" : "");
	else
		fprintf(out, "<rect class=\"f%d\" fill=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"%d\"/>\n", c,
		        mu_palette[c].light, x + 2, series->second ? y - 6 : y - 10, series->second ? 5 : 11);
}

static void print_legend(FILE *out, const mu_scene *s)
{
	double x = MARGIN, y = LINE - 2;
	for (size_t i = 0; mu_scene_legend_rows(s) > 0 && i < s->figure->n_series; i++) {
		const mu_series *series = &s->figure->series[i];
		double width = mu_scene_legend_width(s, series);
		char name[112];
		mu_scene_fit(series->name, s->width - 2 * MARGIN - MU_LEGEND_ENTRY, name, sizeof name);
		if (x > MARGIN && x - MARGIN + width > s->width - 2 * MARGIN) {
			x = MARGIN;
			y += LINE;
		}
		print_swatch(out, s, series, x, y);
		text_at(out, x + 20, y, NULL, "name", name);
		x += width;
	}
}

/* The name of a category below its place, broken to its room. */
static void print_category(FILE *out, const mu_scene *s, const mu_tick *tick)
{
	double x = mu_scene_x(s, tick->at), y = s->bottom + LINE + 3;
	double room = fmin(s->room, 2 * fmin(x, s->width - x) - 4); /* the first and the last shall not stick out */
	char line[64], fitted[72];
	for (const char *rest = tick->text; *rest; y += LINE) {
		size_t n = mu_scene_break(rest, s->room), shown = n;
		while (shown > 0 && rest[shown - 1] == ' ')
			shown--;
		snprintf(line, sizeof line, "%.*s", (int)shown, rest);
		mu_scene_fit(line, room, fitted, sizeof fitted);
		text_at(out, x, y, "middle", "name", fitted);
		rest += n;
	}
}

static void print_axes(FILE *out, const mu_scene *s)
{
	const mu_figure *f = s->figure;
	bool lanes = f->kind == MU_FIGURE_LANES;
	for (size_t i = 0; i < s->n_y; i++)
		text_at(out, s->left - 8, mu_scene_y(s, s->y_ticks[i].at) + 4.5, "end", NULL, s->y_ticks[i].text);
	for (size_t i = 0; i < s->n_x; i += s->stride)
		if (f->n_categories > 0 && !lanes)
			print_category(out, s, &s->x_ticks[i]);
		else
			text_at(out, mu_scene_x(s, s->x_ticks[i].at), s->bottom + LINE, "middle", NULL,
			        s->x_ticks[i].text);
	for (size_t c = 0; lanes && c < f->n_categories; c++) {
		char name[72];
		mu_scene_fit(f->categories[c], s->right - s->left, name, sizeof name);
		text_at(out, s->left, mu_scene_y(s, (double)c + 0.28), NULL, "name", name);
	}
	if (f->y_label[0])
		text_at(out, MARGIN, s->top - 12, NULL, NULL, f->y_label);
	if (f->x_label[0])
		text_at(out, (s->left + s->right) / 2.0, s->height - 8, "middle", NULL, f->x_label);
}

/* "measured, 2 ranks: 1.93 (1.9 to 1.96)". */
static void print_hover(FILE *out, const mu_figure *f, const mu_series *series, const mu_spot *spot)
{
	char x[96], y[64], low[MU_SHORT_SIZE], high[MU_SHORT_SIZE];
	mu_figure_x_text(f, spot->x, x, sizeof x);
	mu_figure_y_text(f, spot->y, y, sizeof y);
	fprintf(out, "<title>");
	mu_escape(out, series->name);
	fprintf(out, ", ");
	if (f->n_categories == 0 && f->x_label[0])
		fprintf(out, "%s ", f->x_label);
	mu_escape(out, x);
	fprintf(out, ": %s", y);
	if (isfinite(spot->low) && isfinite(spot->high))
		fprintf(out, " (%s to %s)", mu_report_short(spot->low, low), mu_report_short(spot->high, high));
	fprintf(out, "</title>");
}

static void print_box(FILE *out, const mu_scene *s, const mu_box *box)
{
	double xa = mu_scene_x(s, box->x0), xb = mu_scene_x(s, box->x1), ya = mu_scene_y(s, box->y0),
	       yb = mu_scene_y(s, box->y1);
	double x0 = fmin(xa, xb), x1 = fmax(xa, xb), y0 = fmin(ya, yb), y1 = fmax(ya, yb);
	bool lanes = s->figure->kind == MU_FIGURE_LANES;
	double more = fmax(0, 4 - (lanes ? x1 - x0 : y1 - y0)) / 2; /* thin ones can still be met */
	fprintf(out,
	        "<rect class=\"hit\" fill=\"#000\" fill-opacity=\"0\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
	        "height=\"%.1f\">",
	        x0 - (lanes ? more : 0), y0 - (lanes ? 0 : more), x1 - x0 + (lanes ? 2 * more : 0),
	        y1 - y0 + (lanes ? 0 : 2 * more));
	print_hover(out, s->figure, &s->figure->series[box->series], box->spot);
	fprintf(out, "</rect>\n");
}

/* Numbers stand on the bars when all of them find room there. */
static void print_values(FILE *out, const mu_scene *s)
{
	char text[MU_SHORT_SIZE];
	for (size_t b = 0; b < s->n_boxes; b++)
		if (mu_scene_text_width(mu_report_short(s->boxes[b].spot->y, text)) >
		    mu_scene_x(s, s->boxes[b].x1) - mu_scene_x(s, s->boxes[b].x0))
			return;
	for (size_t b = 0; b < s->n_boxes; b++) {
		const mu_box *box = &s->boxes[b];
		double high = isfinite(box->spot->high) ? fmin(s->y1, box->spot->high) : box->y1,
		       top = mu_scene_y(s, fmax(box->y1, high));
		text_at(out, (mu_scene_x(s, box->x0) + mu_scene_x(s, box->x1)) / 2, fmax(top - 5, s->top + 12),
		        "middle", NULL, mu_report_short(box->spot->y, text));
	}
}

static void print_marks(FILE *out, const mu_scene *s, const mu_series *series)
{
	int c = series->colour % MU_COLOURS;
	for (size_t i = 0; i < series->n; i++) {
		const mu_spot *spot = &series->spots[i];
		fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\"", mu_scene_x(s, spot->x), mu_scene_y(s, spot->y));
		if (series->bare || series->dashed)
			fprintf(out, " r=\"6\" class=\"hit\" fill=\"#000\" fill-opacity=\"0\">");
		else
			fprintf(out, " r=\"4\" class=\"f%d\" fill=\"%s\">", c, mu_palette[c].light);
		print_hover(out, s->figure, series, spot);
		fprintf(out, "</circle>\n");
	}
}

/* Bytes of the title, which is larger than other texts, that go on one line. */
static size_t title_break(const mu_scene *s, const char *rest)
{
	return mu_scene_break(rest, (s->width - 2 * MARGIN) * 13.0 / 15);
}

static int title_height(const mu_scene *s)
{
	int lines = 0;
	for (const char *rest = s->figure->title; *rest; lines++)
		rest += title_break(s, rest);
	return 20 * lines + 8;
}

static void print_title(FILE *out, const mu_scene *s)
{
	char line[160];
	int y = 20 - title_height(s);
	for (const char *rest = s->figure->title; *rest; y += 20) {
		size_t n = title_break(s, rest);
		snprintf(line, sizeof line, "%.*s", (int)n, rest);
		fprintf(out, "<text x=\"%d\" y=\"%d\" font-size=\"15\" font-weight=\"600\" class=\"name\">", MARGIN, y);
		mu_escape(out, line);
		fprintf(out, "</text>\n");
		rest += n;
	}
}

void mu_svg_write(const mu_scene *s, const char *drawn, bool alone, FILE *out)
{
	const mu_figure *f = s->figure;
	int above = alone ? title_height(s) : 0, height = s->height + above;
	if (alone)
		fprintf(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
	fprintf(out,
	        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"figure\" viewBox=\"0 %d %d %d\" width=\"%d\" "
	        "height=\"%d\" "
	        "font-family=\"sans-serif\" font-size=\"13\" role=\"img\" aria-label=\"",
	        -above, s->width, height, s->width, height);
	mu_escape(out, f->title);
	fprintf(out, "\">\n");
	if (alone) {
		fprintf(out, "<style>\n");
		mu_report_style_figures(out);
		fprintf(out,
		        "</style>\n<rect x=\"0\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#fff\" "
		        "style=\"fill:var(--card)\"/>\n",
		        -above, s->width, height);
		print_title(out, s);
	}
	copy_drawn(out, drawn);
	print_legend(out, s);
	print_axes(out, s);
	if (f->kind == MU_FIGURE_BARS)
		print_values(out, s);
	for (size_t b = 0; b < s->n_boxes; b++)
		print_box(out, s, &s->boxes[b]);
	for (size_t i = 0; f->kind == MU_FIGURE_LINES && i < f->n_series; i++)
		print_marks(out, s, &f->series[i]);
	fprintf(out, "</svg>\n");
}
