/* Figures of runs: loss and accuracy curves, the timeline of a step, memory by part. Points of a study are runs as
 * well, so each figure takes several, with a label each. SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "study/report_figures.h"

enum { FEW_STEPS = 20 /* below, a curve by step says nothing */, BUCKETS = 48 /* of a curve by step */ };
enum { MOST_LANES = 8 /* below each other; more are a wall */ };

/* ---- curves ---- */

typedef double epoch_value(const mu_report_epoch *epoch);

static double train_loss(const mu_report_epoch *e)
{
	return e->train_loss;
}

static double validation_loss(const mu_report_epoch *e)
{
	return e->validation_loss;
}

static double test_loss(const mu_report_epoch *e)
{
	return e->test_loss;
}

static double train_accuracy(const mu_report_epoch *e)
{
	return 100 * e->train_accuracy;
}

static double validation_accuracy(const mu_report_epoch *e)
{
	return 100 * e->validation_accuracy;
}

static double test_accuracy(const mu_report_epoch *e)
{
	return 100 * e->test_accuracy;
}

typedef struct curve {
	const char *images;
	epoch_value *loss, *accuracy;
} curve;

static const curve curves[] = {{"training", train_loss, train_accuracy},
                               {"validation", validation_loss, validation_accuracy},
                               {"test", test_loss, test_accuracy}};
#define CURVES (sizeof curves / sizeof *curves)

static void add_curve(mu_figure *figure, mu_series *series, const mu_report_run *run, epoch_value *value)
{
	for (size_t e = 0; e < run->n_epochs; e++)
		mu_series_add(figure, series, mu_spot_at(run->epochs[e].epoch, value(&run->epochs[e])));
}

/* One run: all three sets of images in one figure. */
static void curves_of_one(mu_figures *figures, const mu_report_run *run, bool loss)
{
	mu_figure *f = mu_figure_begin(figures, loss ? "loss" : "accuracy", MU_FIGURE_LINES);
	snprintf(f->title, sizeof f->title, "%s by epoch", loss ? "Loss" : "Accuracy");
	snprintf(f->x_label, sizeof f->x_label, "epoch");
	snprintf(f->y_label, sizeof f->y_label, "%s", loss ? "loss" : "accuracy, %");
	snprintf(f->unit, sizeof f->unit, "%s", loss ? "" : " %");
	f->loose = true;
	for (size_t c = 0; run->n_epochs > 1 && c < CURVES; c++)
		add_curve(f, mu_figure_series(f, "%s", curves[c].images), run,
		          loss ? curves[c].loss : curves[c].accuracy);
	mu_figure_end(figures);
}

/* Several runs: a figure per set of images. */
static void curves_of_many(mu_figures *figures, const mu_labelled *runs, size_t n, const curve *c, bool loss)
{
	char id[40];
	snprintf(id, sizeof id, "%s-%s", loss ? "loss" : "accuracy", c->images);
	mu_figure *f = mu_figure_begin(figures, id, MU_FIGURE_LINES);
	snprintf(f->title, sizeof f->title, "%s on the %s images by epoch", loss ? "Loss" : "Accuracy", c->images);
	snprintf(f->x_label, sizeof f->x_label, "epoch");
	snprintf(f->y_label, sizeof f->y_label, "%s", loss ? "loss" : "accuracy, %");
	snprintf(f->unit, sizeof f->unit, "%s", loss ? "" : " %");
	f->loose = true;
	for (size_t r = 0; r < n; r++)
		if (runs[r].run && runs[r].run->n_epochs > 1)
			add_curve(f, mu_figure_series(f, "%s", runs[r].label), runs[r].run,
			          loss ? c->loss : c->accuracy);
	mu_figure_end(figures);
}

void mu_figures_curves(mu_figures *figures, const mu_labelled *runs, size_t n)
{
	if (n == 1 && runs[0].run) {
		curves_of_one(figures, runs[0].run, false);
		curves_of_one(figures, runs[0].run, true);
		return;
	}
	for (size_t c = 0; c < CURVES; c++)
		curves_of_many(figures, runs, n, &curves[c], false);
	for (size_t c = 0; c < CURVES; c++)
		curves_of_many(figures, runs, n, &curves[c], true);
}

static size_t add_means(mu_figure *f, mu_series *series, const mu_report_run *run)
{
	size_t each = (run->n_steps + BUCKETS - 1) / BUCKETS;
	for (size_t first = 0; first < run->n_steps; first += each) {
		size_t n = run->n_steps - first < each ? run->n_steps - first : each;
		double sum = 0;
		for (size_t i = 0; i < n; i++)
			sum += run->loss[first + i];
		mu_series_add(f, series, mu_spot_at(run->step[first + n - 1], sum / (double)n));
	}
	return each;
}

void mu_figures_steps(mu_figures *figures, const mu_labelled *runs, size_t n)
{
	mu_figure *f = mu_figure_begin(figures, "loss-steps", MU_FIGURE_LINES);
	size_t each = 1;
	snprintf(f->title, sizeof f->title, "Training loss by step");
	snprintf(f->x_label, sizeof f->x_label, "step");
	snprintf(f->y_label, sizeof f->y_label, "loss");
	f->loose = true;
	for (size_t r = 0; r < n; r++) {
		if (!runs[r].run || runs[r].run->n_steps < FEW_STEPS)
			continue;
		size_t of = add_means(f, mu_figure_series(f, "%s", n == 1 ? "training" : runs[r].label), runs[r].run);
		each = of > each ? of : each;
	}
	if (each > 1)
		snprintf(f->caption, sizeof f->caption, "Each point is the mean of up to %zu steps.", each);
	for (size_t s = 0; s < f->n_series; s++)
		f->series[s].bare = true;
	mu_figure_end(figures);
}

/* ---- the timeline of a step ---- */

typedef struct lane {
	mu_phase phase;
	const char *words;
	int colour;
} lane;

/* In the order in which a step goes through them. */
static const lane lanes[] = {{MU_PHASE_DATA, "waiting for images", 4}, {MU_PHASE_FORWARD, "forward", 0},
                             {MU_PHASE_BACKWARD, "backward", 5},       {MU_PHASE_EXPOSED, "waiting for ranks", 1},
                             {MU_PHASE_OPTIMIZER, "optimizer", 2},     {MU_PHASE_HIDDEN, "hidden messages", 6}};
#define LANES (sizeof lanes / sizeof *lanes)

static void add_step(mu_figure *f, size_t category, const mu_step_times *times, double scale)
{
	double at = 0, backward_ends = 0;
	for (size_t l = 0; l < LANES; l++) {
		double seconds = times->phase[lanes[l].phase] * scale;
		bool hidden = lanes[l].phase == MU_PHASE_HIDDEN;
		mu_series *series = mu_figure_series(f, "%s", lanes[l].words);
		if (!series || !isfinite(seconds))
			continue;
		series->colour = lanes[l].colour;
		series->second = hidden;
		/* Messages that backward hides go out while it runs, and the last ones are waited for behind it. */
		mu_spot spot = mu_spot_at((double)category, seconds);
		spot.from = hidden ? fmax(0, backward_ends - seconds) : at;
		mu_series_add(f, series, spot);
		at += hidden ? 0 : seconds;
		backward_ends = lanes[l].phase == MU_PHASE_BACKWARD ? at : backward_ends;
	}
}

void mu_figures_timeline(mu_figures *figures, const mu_labelled *runs, size_t n)
{
	double longest = 0;
	size_t known = 0, taken = 0, shown;
	for (size_t r = 0; r < n; r++) {
		longest = runs[r].times.step > longest ? runs[r].times.step : longest;
		known += runs[r].times.step > 0;
	}
	shown = known < MOST_LANES ? known : MOST_LANES;
	bool milli = longest < 10;
	mu_figure *f = mu_figure_begin(figures, "timeline", MU_FIGURE_LANES);
	snprintf(f->title, sizeof f->title, "Timeline of a step");
	snprintf(f->x_label, sizeof f->x_label, "%s of rank 0, medians over the steps",
	         milli ? "milliseconds" : "seconds");
	snprintf(f->unit, sizeof f->unit, "%s", milli ? " ms" : " s");
	snprintf(f->caption, sizeof f->caption,
	         "One phase behind the other. The thin bars are messages under way while the rank computed, drawn to "
	         "the end of backward; they add nothing to the step.");
	if (shown < known)
		snprintf(f->caption + strlen(f->caption), sizeof f->caption - strlen(f->caption),
		         " Shown are %zu of %zu.", shown, known);
	for (size_t r = 0, i = 0; r < n; r++) {
		if (!(runs[r].times.step > 0))
			continue;
		/* Of many, some from the first to the last. */
		if (i++ == (shown > 1 ? taken * (known - 1) / (shown - 1) : 0) && ++taken)
			add_step(f, mu_figure_category(f, "%s", runs[r].label), &runs[r].times, milli ? 1000 : 1);
	}
	mu_figure_end(figures);
}

/* ---- memory ---- */

static const char *const part_words[MU_PARTS] = {
#define MU_X(name, key, words) words,
        MU_PART_LIST(MU_X)
#undef MU_X
};

static const int part_colours[MU_PARTS] = {5, 1, 2, 0, 4, 6, 7};

static void add_memory(mu_figure *f, size_t category, const double parts[MU_PARTS])
{
	double at = 0;
	for (int p = 0; p < MU_PARTS; p++) {
		if (!(parts[p] > 0))
			continue;
		double mebibytes = parts[p] / 1048576;
		mu_series *series = mu_figure_series(f, "%s", part_words[p]);
		mu_spot spot = mu_spot_at((double)category, mebibytes);
		if (series)
			series->colour = part_colours[p];
		spot.from = at;
		mu_series_add(f, series, spot);
		at += mebibytes;
	}
}

void mu_figures_memory(mu_figures *figures, const mu_labelled *runs, size_t n)
{
	mu_figure *f = mu_figure_begin(figures, "memory", MU_FIGURE_STACK);
	snprintf(f->title, sizeof f->title, "Memory by part");
	snprintf(f->y_label, sizeof f->y_label, "MiB of a rank");
	snprintf(f->unit, sizeof f->unit, " MiB");
	snprintf(f->caption, sizeof f->caption,
	         "What rank 0 took of its device. The program itself and its libraries come on top.");
	if (n == 1 && runs[0].run) {
		add_memory(f, mu_figure_category(f, "planned"), runs[0].run->planned);
		add_memory(f, mu_figure_category(f, "used"), runs[0].run->used);
	}
	for (size_t r = 0; n > 1 && r < n; r++)
		if (runs[r].run && (runs[r].run->used[MU_PART_PARAMETERS] > 0))
			add_memory(f, mu_figure_category(f, "%s", runs[r].label), runs[r].run->used);
	mu_figure_end(figures);
}

void mu_figures_of_run(mu_figures *figures, const mu_report_run *run, const mural_report_settings *settings)
{
	const mu_labelled one = {
	        .label = "this run", .run = run, .times = run->times, .ranks = run->ranks, .seconds = run->seconds};
	mu_figures_timeline(figures, &one, 1);
	mu_figures_curves(figures, &one, 1);
	mu_figures_steps(figures, &one, 1);
	mu_figures_memory(figures, &one, 1);
	mu_figures_energy(figures, &one, 1);
	mu_figures_price(figures, settings, &one, 1, "the run");
}
