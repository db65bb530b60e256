/* Figures of a study: time per epoch, speed-up against ideal, waiting, accuracy against what was changed. SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "study/report_figures.h"

static bool by_ranks(const mu_report_study *s)
{
	return s->kind == MURAL_STUDY_STRONG || s->kind == MURAL_STUDY_WEAK;
}

/* What the study changes, as a category: "4 ranks", "64 images", "bf16". */
static void changed_text(const mu_report_study *s, const mu_report_point *p, char *text, size_t size)
{
	char ranks[MU_SHORT_SIZE];
	switch (s->kind) {
	case MURAL_STUDY_BATCH: snprintf(text, size, "%.0f images", p->batch); break;
	case MURAL_STUDY_ACCUMULATION:
		snprintf(text, size, "%.0f micro-batch%s", p->accumulation, p->accumulation == 1 ? "" : "es");
		break;
	case MURAL_STUDY_PRECISION: snprintf(text, size, "%s", p->precision); break;
	case MURAL_STUDY_OPTIMIZER: snprintf(text, size, "%s", p->optimizer[0] ? p->optimizer : "as configured"); break;
	default: snprintf(text, size, "%s", mu_report_ranks(p->ranks, ranks)); break;
	}
}

/* Which of a point's settings take more than one value in the study, besides what it changes. */
typedef struct varying {
	bool ranks, batch, accumulation, precision, optimizer, nodes;
} varying;

static varying find_varying(const mu_report_study *s)
{
	varying v = {0};
	const mu_report_point *first = &s->points[0];
	for (size_t i = 1; i < s->n_points; i++) {
		const mu_report_point *p = &s->points[i];
		v.ranks |= p->ranks != first->ranks;
		v.batch |= p->batch != first->batch;
		v.accumulation |= p->accumulation != first->accumulation;
		v.precision |= strcmp(p->precision, first->precision) != 0;
		v.optimizer |= strcmp(p->optimizer, first->optimizer) != 0;
		v.nodes |= p->many_nodes != first->many_nodes;
	}
	v.ranks &= !by_ranks(s) && s->kind != MURAL_STUDY_PLACEMENT;
	v.batch &= s->kind != MURAL_STUDY_BATCH;
	v.accumulation &= s->kind != MURAL_STUDY_ACCUMULATION;
	v.precision &= s->kind != MURAL_STUDY_PRECISION;
	v.optimizer &= s->kind != MURAL_STUDY_OPTIMIZER;
	return v;
}

static void append(char *text, size_t size, const char *part)
{
	size_t used = strlen(text);
	snprintf(text + used, size - used, "%s%s", used ? ", " : "", part);
}

/* What tells a point from others at the same category; "measured" when nothing does. */
static void others_text(const mu_report_study *s, const mu_report_point *p, char *text, size_t size)
{
	varying v = find_varying(s);
	char part[64], ranks[MU_SHORT_SIZE];
	text[0] = '\0';
	if (v.ranks)
		append(text, size, mu_report_ranks(p->ranks, ranks));
	snprintf(part, sizeof part, "%.0f images", p->batch);
	if (v.batch)
		append(text, size, part);
	snprintf(part, sizeof part, "x%.0f", p->accumulation);
	if (v.accumulation)
		append(text, size, part);
	if (v.precision)
		append(text, size, p->precision);
	if (v.optimizer)
		append(text, size, p->optimizer);
	if (v.nodes)
		append(text, size, p->many_nodes ? "many nodes" : "one node");
	if (!text[0])
		snprintf(text, size, "measured");
}

void mu_figures_point_text(const mu_report_study *s, const mu_report_point *p, char *text, size_t size)
{
	char others[96], changed[64];
	others_text(s, p, others, sizeof others);
	changed_text(s, p, changed, sizeof changed);
	if (strcmp(others, "measured") == 0)
		snprintf(text, size, "%s", changed);
	else if (by_ranks(s))
		snprintf(text, size, "%.24s, %.38s", changed, others);
	else
		snprintf(text, size, "%.38s, %.24s", others, changed);
}

static void add_bar(mu_figure *f, const mu_report_study *s, const mu_report_point *p, mu_measure y)
{
	char changed[64], others[96];
	if (!isfinite(y.value))
		return;
	changed_text(s, p, changed, sizeof changed);
	others_text(s, p, others, sizeof others);
	mu_spot spot = {(double)mu_figure_category(f, "%s", changed), y.value, 0, y.low, y.high};
	mu_series_add(f, mu_figure_series(f, "%s", others), spot);
}

static mu_measure alone(double value)
{
	return (mu_measure){value, NAN, NAN};
}

static mu_measure percent(mu_measure m)
{
	return (mu_measure){100 * m.value, 100 * m.low, 100 * m.high};
}

static void time_figure(mu_figures *figures, const mu_report_study *s)
{
	mu_figure *f = mu_figure_begin(figures, "time", MU_FIGURE_BARS);
	snprintf(f->title, sizeof f->title, "Seconds per epoch");
	snprintf(f->y_label, sizeof f->y_label, "seconds per epoch");
	snprintf(f->unit, sizeof f->unit, " s");
	if (s->kind == MURAL_STUDY_STRONG)
		snprintf(f->caption, sizeof f->caption,
		         "All ranks share one data set: perfect would be half the time with twice the ranks.");
	if (s->kind == MURAL_STUDY_WEAK)
		snprintf(f->caption, sizeof f->caption,
		         "Each rank brings its own part of the data set: perfect would be bars of one height.");
	for (size_t i = 0; i < s->n_points; i++)
		add_bar(f, s, &s->points[i], alone(s->points[i].epoch));
	mu_figure_end(figures);
}

static void rate_figure(mu_figures *figures, const mu_report_study *s)
{
	mu_figure *f = mu_figure_begin(figures, "rate", MU_FIGURE_BARS);
	snprintf(f->title, sizeof f->title, "Images per second");
	snprintf(f->y_label, sizeof f->y_label, "images per second of all ranks");
	for (size_t i = 0; i < s->n_points; i++)
		add_bar(f, s, &s->points[i], alone(s->points[i].images_per_second));
	mu_figure_end(figures);
}

/* Of the points that differ in ranks only, the one with the fewest. */
static const mu_report_point *base_of(const mu_report_study *s, const mu_report_point *p)
{
	const mu_report_point *base = p;
	for (size_t i = 0; i < s->n_points; i++) {
		const mu_report_point *q = &s->points[i];
		if (q->rounds > 0 && q->ranks < base->ranks && q->batch == p->batch &&
		    q->accumulation == p->accumulation && q->many_nodes == p->many_nodes &&
		    strcmp(q->precision, p->precision) == 0 && strcmp(q->optimizer, p->optimizer) == 0)
			base = q;
	}
	return base;
}

static int by_x(const void *a, const void *b)
{
	double x = ((const mu_spot *)a)->x, y = ((const mu_spot *)b)->x;
	return (x > y) - (x < y);
}

void mu_figures_sort(mu_figure *f)
{
	for (size_t i = 0; i < f->n_series; i++)
		if (f->series[i].n > 1)
			qsort(f->series[i].spots, f->series[i].n, sizeof *f->series[i].spots, by_x);
}

/* The straight line that every speed-up is held against, at the ranks that were measured. */
static void add_ideal(mu_figure *f)
{
	double *ranks, least = INFINITY;
	size_t n = mu_figure_rows(f, &ranks);
	mu_series *ideal = mu_figure_series(f, "ideal");
	f->no_memory |= !ranks;
	if (ideal) {
		ideal->dashed = true;
		ideal->colour = MU_COLOUR_GREY;
	}
	for (size_t i = 0; ranks && i < n; i++) {
		least = fmin(least, ranks[i]);
		mu_series_add(f, ideal, mu_spot_at(ranks[i], ranks[i] / least));
	}
	free(ranks);
}

void mu_figures_speed_up(mu_figures *figures, const mu_report_study *const *studies, size_t n)
{
	mu_figure *f = mu_figure_begin(figures, "speed-up", MU_FIGURE_LINES);
	char name[96];
	snprintf(f->title, sizeof f->title, "Speed-up against ideal");
	snprintf(f->x_label, sizeof f->x_label, "ranks");
	snprintf(f->y_label, sizeof f->y_label, "times the images per second of the fewest ranks");
	snprintf(f->caption, sizeof f->caption,
	         "Lines across a point are its 95 %% interval, from the rounds in pairs.");
	for (size_t s = 0; s < n; s++)
		for (size_t i = 0; by_ranks(studies[s]) && i < studies[s]->n_points; i++) {
			const mu_report_point *p = &studies[s]->points[i];
			mu_spot spot = {p->ranks, p->speed_up.value, 0, p->speed_up.low, p->speed_up.high};
			others_text(studies[s], p, name, sizeof name);
			bool plain = strcmp(name, "measured") == 0;
			if (p->rounds > 0 && n > 1)
				mu_series_add(f,
				              mu_figure_series(f, "%.48s%s%.40s", studies[s]->name, plain ? "" : ": ",
				                               plain ? "" : name),
				              spot);
			else if (p->rounds > 0)
				mu_series_add(f, mu_figure_series(f, "%s", name), spot);
		}
	add_ideal(f);
	mu_figures_sort(f);
	mu_figure_end(figures);
}

static void efficiency_figure(mu_figures *figures, const mu_report_study *s)
{
	mu_figure *f = mu_figure_begin(figures, "efficiency", MU_FIGURE_BARS);
	snprintf(f->title, sizeof f->title, "Efficiency");
	snprintf(f->y_label, sizeof f->y_label, "%% of a perfect speed-up");
	snprintf(f->unit, sizeof f->unit, " %%");
	for (size_t i = 0; i < s->n_points; i++)
		if (base_of(s, &s->points[i]) != &s->points[i])
			add_bar(f, s, &s->points[i], percent(s->points[i].efficiency));
	mu_figure_end(figures);
}

static void waiting_figure(mu_figures *figures, const mu_report_study *s)
{
	mu_figure *f = mu_figure_begin(figures, "waiting", MU_FIGURE_BARS);
	snprintf(f->title, sizeof f->title,
	         s->kind == MURAL_STUDY_BATCH ? "Synchronisation by images per rank" : "Synchronisation");
	snprintf(f->y_label, sizeof f->y_label, "%% of a step that a rank only waits for others");
	snprintf(f->unit, sizeof f->unit, " %%");
	for (size_t i = 0; i < s->n_points; i++)
		if (s->points[i].ranks > 1)
			add_bar(f, s, &s->points[i], percent(s->points[i].waiting));
	mu_figure_end(figures);
}

static void accuracy_figure(mu_figures *figures, const mu_report_study *s, bool test)
{
	mu_figure *f = mu_figure_begin(figures, test ? "accuracy-reached-test" : "accuracy-reached", MU_FIGURE_LINES);
	char changed[64], others[96];
	snprintf(f->title, sizeof f->title, "Accuracy on the %s images%s", test ? "test" : "training",
	         s->kind == MURAL_STUDY_BATCH ? " against images per rank" : "");
	snprintf(f->y_label, sizeof f->y_label, "accuracy after the last epoch, %%");
	snprintf(f->unit, sizeof f->unit, " %%");
	f->loose = true;
	for (size_t i = 0; i < s->n_points; i++) {
		const mu_report_point *p = &s->points[i];
		double y = 100 * (test ? p->test_accuracy : p->train_accuracy);
		if (!isfinite(y))
			continue;
		changed_text(s, p, changed, sizeof changed);
		others_text(s, p, others, sizeof others);
		mu_series_add(f, mu_figure_series(f, "%s", others),
		              mu_spot_at((double)mu_figure_category(f, "%s", changed), y));
	}
	mu_figures_sort(f);
	mu_figure_end(figures);
}

static size_t label_points(const mu_report_study *s, mu_labelled *list)
{
	size_t n = 0;
	for (size_t i = 0; i < s->n_points && n < MU_CATEGORIES; i++) {
		const mu_report_point *p = &s->points[i];
		if (!(p->rounds > 0))
			continue;
		mu_figures_point_text(s, p, list[n].label, sizeof list[n].label);
		list[n].run = p->run;
		list[n].times = p->times;
		list[n].ranks = p->ranks;
		list[n].seconds = p->epoch;
		list[n].many_nodes = p->many_nodes;
		n++;
	}
	return n;
}

void mu_figures_of_study(mu_figures *figures, const mu_report_study *s, const mural_report_settings *settings)
{
	mu_labelled list[MU_CATEGORIES] = {0};
	size_t n = label_points(s, list);
	time_figure(figures, s);
	if (by_ranks(s)) {
		mu_figures_speed_up(figures, &s, 1);
		efficiency_figure(figures, s);
	} else {
		rate_figure(figures, s);
	}
	waiting_figure(figures, s);
	if (s->whole_epochs) {
		accuracy_figure(figures, s, false);
		accuracy_figure(figures, s, true);
	}
	mu_figures_timeline(figures, list, n);
	if (s->whole_epochs) {
		mu_figures_curves(figures, list, n);
		mu_figures_steps(figures, list, n);
	}
	mu_figures_memory(figures, list, n);
	mu_figures_energy(figures, list, n);
	if (settings->cluster && (!s->cluster[0] || strcmp(s->cluster, settings->cluster->name) == 0))
		mu_figures_price(figures, settings, list, n, "an epoch");
}
