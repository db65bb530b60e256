/* A study in words: how well it scales and why not better, which batch to take. SPDX-License-Identifier: MIT */
#include <string.h>

#include "study/report_inside.h"

#define ENOUGH 0.95 /* of the most images per second: a smaller batch that reaches this is preferred */

static bool measured(const mu_report_point *p)
{
	return p->rounds > 0 && p->images_per_second > 0;
}

const mu_report_point *mu_report_largest(const mu_report_study *s)
{
	const mu_report_point *best = NULL;
	for (size_t i = 0; i < s->n_points; i++) {
		const mu_report_point *p = &s->points[i];
		if (measured(p) && (!best || p->ranks > best->ranks ||
		                    (p->ranks == best->ranks && p->images_per_second > best->images_per_second)))
			best = p;
	}
	return best;
}

static bool alike(const mu_report_point *a, const mu_report_point *b)
{
	return a->batch == b->batch && a->accumulation == b->accumulation && strcmp(a->precision, b->precision) == 0 &&
	       strcmp(a->optimizer, b->optimizer) == 0;
}

/* The measured point like `p` with the fewest ranks above `above`; NULL: there is none. */
static const mu_report_point *fewest(const mu_report_study *s, const mu_report_point *p, double above)
{
	const mu_report_point *found = NULL;
	for (size_t i = 0; i < s->n_points; i++) {
		const mu_report_point *q = &s->points[i];
		if (measured(q) && alike(p, q) && q->ranks > above && (!found || q->ranks < found->ranks))
			found = q;
	}
	return found;
}

/* Amdahl's law needs a serial fraction; Karp and Flatt 1990 read it backwards: one that grows means communication. */
static void say_serial(FILE *out, const mu_report_study *s, const mu_report_point *p)
{
	const mu_report_point *base = fewest(s, p, 0), *next = base ? fewest(s, p, base->ranks) : NULL;
	if (!next || next == p || !isfinite(next->serial) || !isfinite(p->serial))
		return;
	double from = 100 * fmax(0, next->serial), to = 100 * fmax(0, p->serial);
	if (to > 1.5 * from + 1)
		fprintf(out,
		        "The part that does not get faster grows from %.1f %% with %.0f ranks to %.1f %% with %.0f: "
		        "that is communication, not work that every rank repeats. ",
		        from, next->ranks, to, p->ranks);
	else if (to > 2)
		fprintf(out,
		        "The part that does not get faster stays near %.1f %%: that is work that every rank repeats, "
		        "or a "
		        "resource that all share, such as memory. ",
		        to);
}

static void say_scaling(FILE *out, const mu_report_study *s, const mu_report_point *p)
{
	const mu_report_point *base = fewest(s, p, 0);
	char a[MU_SHORT_SIZE], b[MU_SHORT_SIZE];
	if (!base || base == p) {
		fprintf(out, "Only one number of ranks was measured, so nothing can be said about scaling. ");
		return;
	}
	fprintf(out, "%s train %s times as many images per second as %s: %.0f %% of what would be perfect. ",
	        mu_report_ranks(p->ranks, a), mu_report_short(p->speed_up.value, b),
	        base->ranks == 1 ? "one" : "the fewest", 100 * p->efficiency.value);
	say_serial(out, s, p);
}

/* The smallest batch that is nearly as fast as the fastest, with as many ranks as p. */
static void say_batch(FILE *out, const mu_report_study *s, const mu_report_point *p)
{
	const mu_report_point *enough = NULL, *first = NULL, *last = NULL, *accurate = NULL;
	char ranks[MU_SHORT_SIZE];
	for (size_t i = 0; i < s->n_points; i++) {
		const mu_report_point *q = &s->points[i];
		if (!measured(q) || q->ranks != p->ranks || strcmp(q->precision, p->precision) != 0)
			continue;
		if (!first || q->batch < first->batch)
			first = q;
		if (!last || q->batch > last->batch)
			last = q;
		if (q->images_per_second >= ENOUGH * p->images_per_second && (!enough || q->batch < enough->batch))
			enough = q;
		if (s->whole_epochs && isfinite(q->train_accuracy) &&
		    (!accurate || q->train_accuracy > accurate->train_accuracy))
			accurate = q;
	}
	if (!enough || !first)
		return;
	mu_report_ranks(p->ranks, ranks);
	if (first == last)
		fprintf(out, "Only one number of images per rank was measured on %s. ", ranks);
	else if (enough == first)
		fprintf(out, "On %s, %.0f images per rank are enough: more bring less than 5 %%. ", ranks,
		        first->batch);
	else
		fprintf(out,
		        "On %s take %.0f images per rank: %.0f %% more images per second than with %.0f, and waiting "
		        "goes from "
		        "%.0f %% to %.0f %% of a step. %s",
		        ranks, enough->batch, 100 * (enough->images_per_second / first->images_per_second - 1),
		        first->batch, 100 * first->times.phase[MU_PHASE_EXPOSED] / first->times.step,
		        100 * enough->times.phase[MU_PHASE_EXPOSED] / enough->times.step,
		        enough == last ? "That is the most that was measured: more may bring more. "
		                       : "More bring less than 5 %. ");
	if (accurate)
		fprintf(out, "Training accuracy is best with %.0f images per rank: %.1f %%. ", accurate->batch,
		        100 * accurate->train_accuracy);
}

static const char *changed(const mu_report_study *s, const mu_report_point *p, char text[64])
{
	if (s->kind == MURAL_STUDY_ACCUMULATION)
		snprintf(text, 64, "%.0f micro-batches per step", p->accumulation);
	else if (s->kind == MURAL_STUDY_PLACEMENT)
		snprintf(text, 64, "%s", p->many_nodes ? "a rank on each of many nodes" : "one node");
	else
		snprintf(text, 64, "%s", s->kind == MURAL_STUDY_PRECISION ? p->precision : p->optimizer);
	return text;
}

/* Of studies of something else: the fastest, over the one it is compared with. */
static void say_fastest(FILE *out, const mu_report_study *s, const mu_report_point *largest)
{
	char text[64], ranks[MU_SHORT_SIZE];
	const mu_report_point *fastest = largest;
	for (size_t i = 0; i < s->n_points; i++)
		if (measured(&s->points[i]) && s->points[i].ranks == largest->ranks &&
		    s->points[i].images_per_second > fastest->images_per_second)
			fastest = &s->points[i];
	mu_report_ranks(fastest->ranks, ranks);
	if (fastest->speed_up.value > 1.005)
		fprintf(out, "On %s, %s is fastest: %.2f times the first one. ", ranks, changed(s, fastest, text),
		        fastest->speed_up.value);
	else
		fprintf(out, "On %s nothing is faster than the first one, %s. ", ranks, changed(s, fastest, text));
}

void mu_report_say_study(FILE *out, const mu_report_study *s)
{
	const mu_report_point *p = mu_report_largest(s);
	if (!p) {
		fprintf(out, "No run of this study was measured yet. ");
		return;
	}
	mu_limit_facts facts = mu_report_facts_of_point(p);
	mu_report_say_limit(out, &facts);
	if (s->kind == MURAL_STUDY_BATCH)
		say_batch(out, s, p);
	else if (s->kind == MURAL_STUDY_STRONG || s->kind == MURAL_STUDY_WEAK)
		say_scaling(out, s, p);
	else
		say_fastest(out, s, p);
	mu_report_say_change(out, &facts);
}
