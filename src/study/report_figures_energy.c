/* Figures of joules and money: measured, and by what a cluster file says of its devices. SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "study/report_figures.h"

void mu_figures_energy(mu_figures *figures, const mu_labelled *runs, size_t n)
{
	mu_figure *f = mu_figure_begin(figures, "energy", MU_FIGURE_BARS);
	snprintf(f->title, sizeof f->title, "Energy of an image");
	snprintf(f->y_label, sizeof f->y_label, "joules per image");
	snprintf(f->unit, sizeof f->unit, " J");
	snprintf(f->caption, sizeof f->caption, "As the meters of processors and cards told (energy.csv).");
	for (size_t r = 0; r < n; r++)
		if (runs[r].run && runs[r].run->joules > 0)
			mu_series_add(f, mu_figure_series(f, "measured"),
			              mu_spot_at((double)mu_figure_category(f, "%s", runs[r].label),
			                         runs[r].run->joules / runs[r].run->images));
	mu_figure_end(figures);
}

/* What the devices of a run take together, per hour and in watts; 0 where one of them does not tell. */
static bool add_up(const mural_report_settings *settings, const mu_labelled *run, double *price, double *watts)
{
	const mural_cluster *c = settings->cluster;
	if (!c || !(run->ranks >= 1 && run->ranks <= MURAL_CLUSTER_MOST))
		return false;
	mural_place *places = calloc((size_t)run->ranks, sizeof *places);
	bool fits = places && mural_cluster_place(c, run->many_nodes ? MURAL_PLACE_SPREAD : settings->placement,
	                                          (int)run->ranks, places, NULL) == MURAL_OK;
	bool priced = fits, powered = fits;
	*price = *watts = 0;
	for (int r = 0; fits && r < (int)run->ranks; r++) {
		const mural_cluster_device *device = &c->devices[places[r].device];
		priced = priced && device->price_per_hour > 0;
		powered = powered && device->watts > 0;
		*price += device->price_per_hour;
		*watts += device->watts;
	}
	free(places);
	*price = priced ? *price : 0;
	*watts = powered ? *watts : 0;
	return fits;
}

static void price_figure(mu_figures *figures, const mural_report_settings *settings, const mu_labelled *runs, size_t n,
                         const char *what, bool money)
{
	const char *currency =
	        settings->cluster && settings->cluster->currency[0] ? settings->cluster->currency : "money";
	mu_figure *f = mu_figure_begin(figures, money ? "price" : "joules", MU_FIGURE_BARS);
	snprintf(f->title, sizeof f->title, "%s of %s", money ? "Price" : "Energy", what);
	snprintf(f->y_label, sizeof f->y_label, "%s for %s", money ? currency : "kilojoules", what);
	snprintf(f->unit, sizeof f->unit, " %.8s", money ? currency : "kJ");
	snprintf(f->caption, sizeof f->caption, "By the %s that the cluster file gives for the devices in use.",
	         money ? "prices" : "watts");
	for (size_t r = 0; r < n; r++) {
		double price, watts;
		if (!add_up(settings, &runs[r], &price, &watts))
			continue;
		double amount = money ? price * runs[r].seconds / 3600 : watts * runs[r].seconds / 1000;
		if (amount > 0)
			mu_series_add(f, mu_figure_series(f, "by the cluster file"),
			              mu_spot_at((double)mu_figure_category(f, "%s", runs[r].label), amount));
	}
	mu_figure_end(figures);
}

void mu_figures_price(mu_figures *figures, const mural_report_settings *settings, const mu_labelled *runs, size_t n,
                      const char *what)
{
	price_figure(figures, settings, runs, n, what, true);
	price_figure(figures, settings, runs, n, what, false);
}
