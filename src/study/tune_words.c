/* A search's choice in words. SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>

#include "base/fail.h"
#include "study/tune_search.h"

MU_PRINTF(2, 3)
static void say(mural_tune_result *r, const char *format, ...)
{
	for (size_t i = 0; i < MURAL_TUNE_WHY; i++)
		if (!r->why[i][0]) {
			va_list args;
			va_start(args, format);
			vsnprintf(r->why[i], sizeof r->why[i], format, args);
			va_end(args);
			return;
		}
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

const char *mural_tune_point_text(const mural_tune_point *p, char text[MURAL_TUNE_TEXT])
{
	snprintf(text, MURAL_TUNE_TEXT, "%u rank%s x %u thread%s, micro-batch %" PRIu64 " x %" PRIu64, p->ranks,
	         plural(p->ranks), p->threads, plural(p->threads), p->micro_batch, p->accumulation);
	return text;
}

static bool same_arm(const mural_tune_point *a, const mural_tune_point *b)
{
	return a->ranks == b->ranks && a->threads == b->threads;
}

/* The next smaller or larger micro-batch beside the chosen one, all else alike; n_points when there is none. */
static size_t neighbour(const mural_tune_result *r, bool larger)
{
	const mural_tune_point *c = &r->points[r->chosen];
	size_t found = r->n_points;
	for (size_t i = 0; i < r->n_points; i++) {
		const mural_tune_point *p = &r->points[i];
		if (!same_arm(p, c) || p->train_batch != c->train_batch || p->micro_batch == c->micro_batch ||
		    (p->micro_batch > c->micro_batch) != larger)
			continue;
		if (found == r->n_points || (p->micro_batch < r->points[found].micro_batch) == larger)
			found = i;
	}
	return found;
}

static void say_neighbour(mural_tune_result *r, bool larger)
{
	const mural_tune_point *c = &r->points[r->chosen];
	size_t i = neighbour(r, larger);
	if (i == r->n_points) {
		if (larger)
			say(r, "micro-batch %" PRIu64 " is the largest there is to choose", c->micro_batch);
		return;
	}
	const mural_tune_point *p = &r->points[i];
	const char *how = p->state == MURAL_TUNE_MEASURED ? "measured" : "expected";
	double gain = 100 * (p->images_per_second / c->images_per_second - 1);
	if (p->state == MURAL_TUNE_TOO_LARGE)
		say(r, "micro-batch %" PRIu64 ": %" PRIu64 " does not fit (%s)", c->micro_batch, p->micro_batch,
		    p->why);
	else if (p->state == MURAL_TUNE_FAILED)
		say(r, "micro-batch %" PRIu64 ": a trial with %" PRIu64 " failed (%s)", c->micro_batch, p->micro_batch,
		    p->why);
	else if (gain >= 0 && larger)
		say(r, "micro-batch %" PRIu64 ": %" PRIu64 " fits too but brings %.1f %% (%s)", c->micro_batch,
		    p->micro_batch, gain, how);
	else if (gain < 0)
		say(r, "micro-batch %" PRIu64 ": %" PRIu64 " would cost %.1f %% (%s)", c->micro_batch, p->micro_batch,
		    -gain, how);
	else
		say(r, "micro-batch %" PRIu64 ": %" PRIu64 " may be as fast (%s %+.1f %%)", c->micro_batch,
		    p->micro_batch, how, gain);
}

/* The best of the other ranks and threads. */
static void say_other_arm(mural_tune_result *r)
{
	const mural_tune_point *c = &r->points[r->chosen];
	const mural_tune_point *other = NULL;
	char text[MURAL_TUNE_TEXT];
	for (size_t i = 0; i < r->n_points; i++) {
		const mural_tune_point *p = &r->points[i];
		if (!same_arm(p, c) && isfinite(p->images_per_second) &&
		    (!other || p->images_per_second > other->images_per_second))
			other = p;
	}
	if (!other)
		return;
	double gain = 100 * (1 - other->images_per_second / c->images_per_second);
	say(r, "the best of other ranks and threads: %s, %.1f images/s (%s), %.1f %% %s",
	    mural_tune_point_text(other, text), other->images_per_second,
	    other->state == MURAL_TUNE_MEASURED ? "measured" : "expected", fabs(gain), gain >= 0 ? "less" : "more");
}

/* Of a step of the chosen arm, over its trials. */
static double fixed_seconds(const mural_tune_result *r)
{
	double sum = 0;
	size_t n = 0;
	for (size_t i = 0; i < r->n_trials; i++)
		if (r->trials[i].measured && same_arm(&r->points[r->trials[i].point], &r->points[r->chosen])) {
			sum += r->trials[i].fixed_seconds;
			n++;
		}
	return n > 0 ? sum / (double)n : 0;
}

static void say_line(mural_tune_result *r, const mu_tune_model *model)
{
	const mural_tune_point *c = &r->points[r->chosen];
	double per_micro, per_image, fixed = fixed_seconds(r);
	double counted = mu_tune_model_fixed(model, c->ranks, c->threads); /* the rest of it is in the images */
	mu_tune_model_line(model, c->ranks, c->threads, &per_micro, &per_image);
	per_image = fmax(0, per_image - (fixed - counted) / (double)(c->micro_batch * c->accumulation));
	say(r,
	    "of a step, %.3g ms go to the optimizer and to waiting for other ranks; a micro-batch takes about %.3g ms "
	    "whatever its size and %.3g ms per image",
	    1e3 * fixed, 1e3 * per_micro, 1e3 * per_image);
}

static void say_left_out(mural_tune_result *r)
{
	size_t large = 0, failed = 0;
	for (size_t i = 0; i < r->n_points; i++) {
		large += r->points[i].state == MURAL_TUNE_TOO_LARGE;
		failed += r->points[i].state == MURAL_TUNE_FAILED;
	}
	if (large > 0)
		say(r, "%zu of %zu configurations do not fit into memory", large, r->n_points);
	if (failed > 0)
		say(r, "%zu configuration%s failed in trials and %s left out", failed, plural(failed),
		    failed == 1 ? "was" : "were");
}

void mu_tune_explain(mural_tune_result *r, const mu_tune_model *model, double tolerance)
{
	const mural_tune_point *c = &r->points[r->chosen];
	char text[MURAL_TUNE_TEXT];
	for (size_t i = 0; i < MURAL_TUNE_WHY; i++)
		r->why[i][0] = '\0';
	say(r, "%s: %.1f images/s%s, %.1f to %.1f with 95 %% certainty", mural_tune_point_text(c, text),
	    c->images_per_second, c->state == MURAL_TUNE_OPEN ? " expected from its measured neighbours" : "", c->low,
	    c->high);
	say_neighbour(r, true);
	say_neighbour(r, false);
	say_other_arm(r);
	say_line(r, model);
	say_left_out(r);
	if (r->settled)
		say(r, "no other configuration is likely to bring more than %.1f %%", 100 * tolerance);
	else
		say(r, "the search ended before that was sure: another configuration might bring up to %.1f %%",
		    100 * r->could_gain);
}
