/* Figures across studies and runs: all speed-ups, one node against many, runs side by side. SPDX-License-Identifier: MIT */
#include <string.h>

#include "study/report_figures.h"

static bool alike(const mu_report_study *a, const mu_report_study *b)
{
	return a->kind == b->kind && strcmp(a->model, b->model) == 0 && strcmp(a->data, b->data) == 0 &&
	       strcmp(a->cluster, b->cluster) == 0 && strcmp(a->host, b->host) == 0;
}

/* The same training inside one node; NULL: it was not measured. */
static const mu_report_point *twin_of(const mu_report *report, const mu_report_study *study, const mu_report_point *p)
{
	for (size_t s = 0; s < report->n_studies; s++)
		for (size_t i = 0; alike(study, report->studies[s]) && i < report->studies[s]->n_points; i++) {
			const mu_report_point *q = &report->studies[s]->points[i];
			if (q->rounds > 0 && !q->many_nodes && q->ranks == p->ranks && q->batch == p->batch &&
			    q->accumulation == p->accumulation && q->fraction == p->fraction &&
			    strcmp(q->precision, p->precision) == 0 && strcmp(q->optimizer, p->optimizer) == 0)
				return q;
		}
	return NULL;
}

static void nodes_figure(mu_figures *figures, const mu_report *report, mural_study_kind kind)
{
	mu_figure *f = mu_figure_begin(figures, kind == MURAL_STUDY_STRONG ? "nodes" : "nodes-weak", MU_FIGURE_BARS);
	char ranks[MU_SHORT_SIZE];
	snprintf(f->title, sizeof f->title, "One node against many%s",
	         kind == MURAL_STUDY_WEAK ? ", weak scaling" : "");
	snprintf(f->y_label, sizeof f->y_label, "seconds per epoch");
	snprintf(f->unit, sizeof f->unit, " s");
	snprintf(f->caption, sizeof f->caption,
	         "The same ranks inside one node, and with one rank on each of as many nodes.");
	for (size_t s = 0; s < report->n_studies; s++)
		for (size_t i = 0; report->studies[s]->kind == kind && i < report->studies[s]->n_points; i++) {
			const mu_report_point *p = &report->studies[s]->points[i],
			                      *q = p->many_nodes && p->ranks > 1 && p->rounds > 0
			                                   ? twin_of(report, report->studies[s], p)
			                                   : NULL;
			if (!q)
				continue;
			double x = (double)mu_figure_category(f, "%s, %.0f images", mu_report_ranks(p->ranks, ranks),
			                                      p->batch);
			mu_series_add(f, mu_figure_series(f, "one node"), mu_spot_at(x, q->epoch));
			mu_series_add(f, mu_figure_series(f, "many nodes"), mu_spot_at(x, p->epoch));
		}
	mu_figure_end(figures);
}

/* Each study's largest point and each run: which of them to look at first. */
static size_t label_all(const mu_report *report, mu_labelled *list)
{
	size_t n = 0;
	for (size_t s = 0; s < report->n_studies && n < MU_CATEGORIES; s++) {
		const mu_report_point *p = mu_report_largest(report->studies[s]);
		char text[64];
		if (!p)
			continue;
		mu_figures_point_text(report->studies[s], p, text, sizeof text);
		snprintf(list[n].label, sizeof list[n].label, "%.30s: %.30s", report->studies[s]->name, text);
		list[n].run = p->run;
		list[n].times = p->times;
		list[n++].ranks = p->ranks;
	}
	for (size_t r = 0; r < report->n_runs && n < MU_CATEGORIES; r++) {
		const mu_report_run *run = report->runs[r];
		snprintf(list[n].label, sizeof list[n].label, "%.60s", run->name);
		list[n].run = run;
		list[n].times = run->times;
		list[n++].ranks = run->ranks;
	}
	return n;
}

void mu_figures_across(mu_figures *figures, const mu_report *report)
{
	mu_labelled list[MU_CATEGORIES] = {0};
	const mu_report_study *scaling[MU_REPORT_MOST];
	size_t n = label_all(report, list), n_scaling = 0;
	for (size_t s = 0; s < report->n_studies; s++)
		if (report->studies[s]->kind == MURAL_STUDY_STRONG || report->studies[s]->kind == MURAL_STUDY_WEAK)
			scaling[n_scaling++] = report->studies[s];
	if (n_scaling > 1)
		mu_figures_speed_up(figures, scaling, n_scaling);
	nodes_figure(figures, report, MURAL_STUDY_STRONG);
	nodes_figure(figures, report, MURAL_STUDY_WEAK);
	mu_figures_timeline(figures, list, n);
	const mu_labelled *runs = list + (n - (report->n_runs < n ? report->n_runs : n));
	if (report->n_runs > 1) {
		mu_figures_curves(figures, runs, n - (size_t)(runs - list));
		mu_figures_steps(figures, runs, n - (size_t)(runs - list));
		mu_figures_memory(figures, runs, n - (size_t)(runs - list));
	}
}
