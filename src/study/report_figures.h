/* Figures of several runs at once, shared by report_figures_*.c. SPDX-License-Identifier: MIT */
#ifndef MU_STUDY_REPORT_FIGURES_H
#define MU_STUDY_REPORT_FIGURES_H

#include "study/report_inside.h"

/* A run, or a point of a study, under the name that it has in a figure. */
typedef struct mu_labelled {
	char label[64];
	const mu_report_run *run; /* NULL: its folder could not be read */
	mu_step_times times;
	double ranks, seconds; /* seconds: of the whole run, or of an epoch */
	bool many_nodes;
} mu_labelled;

void mu_figures_timeline(mu_figures *figures, const mu_labelled *runs, size_t n);
void mu_figures_curves(mu_figures *figures, const mu_labelled *runs, size_t n);
void mu_figures_steps(mu_figures *figures, const mu_labelled *runs, size_t n);
void mu_figures_memory(mu_figures *figures, const mu_labelled *runs, size_t n);
void mu_figures_energy(mu_figures *figures, const mu_labelled *runs, size_t n);
/* Money and joules by the described devices that `seconds` take; what: "an epoch", "the run". */
void mu_figures_price(mu_figures *figures, const mural_report_settings *settings, const mu_labelled *runs, size_t n,
                      const char *what);

/* Of studies that change the ranks; several are told apart by name. */
void mu_figures_speed_up(mu_figures *figures, const mu_report_study *const *studies, size_t n);
/* "4 ranks", "2 ranks, 16 images": a point among those of its study. */
void mu_figures_point_text(const mu_report_study *study, const mu_report_point *point, char *text, size_t size);
/* Lines go from left to right. */
void mu_figures_sort(mu_figure *figure);

#endif
