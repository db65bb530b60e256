/* The points of a study. SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/nearest.h"
#include "study/study_inside.h"

static const char *const kind_names[MURAL_STUDY_KINDS] = {
#define MURAL_X(name, text, help) text,
        MURAL_STUDY_LIST(MURAL_X)
#undef MURAL_X
};

mural_status mural_study_find(mural_study_kind *kind, const char *name, mural_error *err)
{
	for (int k = 0; k < MURAL_STUDY_KINDS; k++)
		if (strcmp(kind_names[k], name) == 0) {
			*kind = (mural_study_kind)k;
			return MURAL_OK;
		}
	const char *near = mu_nearest(name, kind_names, MURAL_STUDY_KINDS);
	return mu_fail(err, MURAL_USAGE, NULL, "there is no study \"%.60s\"%s%s%s", name, near ? "; did you mean " : "",
	               near ? near : "", near ? "?" : "");
}

void mural_study_defaults(mural_study_settings *settings)
{
	*settings = (mural_study_settings){.rounds = 3, .steps = 10, .warm_up = 2};
}

static void fill_ranks(mural_study_settings *s)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	for (uint32_t n = 1; s->n_ranks < MURAL_STUDY_MOST && (long)n <= cores; n *= 2)
		s->ranks[s->n_ranks++] = n;
}

static size_t fill_numbers(uint32_t *list, size_t n, uint32_t first, uint32_t factor, size_t want)
{
	for (uint32_t value = first; n < want; value *= factor)
		list[n++] = value;
	return n;
}

/* What is left open gets the kind's own values. */
static void fill(mural_study_settings *s)
{
	static const char *const optimizers[] = {"AdamW", "SGD", "Lion", "Lamb"};
	if (s->n_ranks == 0)
		fill_ranks(s);
	if (s->n_batches == 0)
		s->n_batches = fill_numbers(s->batches, 0, 16, 2, s->kind == MURAL_STUDY_BATCH ? 5 : 1);
	if (s->n_accumulations == 0)
		s->n_accumulations =
		        fill_numbers(s->accumulations, 0, 1, 2, s->kind == MURAL_STUDY_ACCUMULATION ? 3 : 1);
	if (s->n_precisions == 0) {
		s->precisions[s->n_precisions++] = "fp32";
		if (s->kind == MURAL_STUDY_PRECISION)
			s->precisions[s->n_precisions++] = "bf16";
	}
	if (s->n_optimizers == 0 && s->kind == MURAL_STUDY_OPTIMIZER)
		for (; s->n_optimizers < sizeof optimizers / sizeof *optimizers; s->n_optimizers++)
			s->optimizers[s->n_optimizers] = optimizers[s->n_optimizers];
	if (s->n_optimizers == 0)
		s->optimizers[s->n_optimizers++] = NULL;
	if (s->fraction == 0)
		s->fraction = s->kind == MURAL_STUDY_WEAK ? 0.1 : 1;
}

mural_status mu_study_check(const mural_study_settings *s, mural_error *err)
{
	if (!s->program || !s->folder || s->rounds == 0)
		return mu_fail(err, MURAL_USAGE, NULL, "a study needs a program, a folder and at least one round");
	if (s->rounds > 1000 || s->steps > 1000000000 || s->warm_up > 1000000000)
		return mu_fail(err, MURAL_USAGE, NULL, "rounds, steps or warm-up steps are far too many");
	if (s->fraction < 0 || s->fraction > 1)
		return mu_fail(err, MURAL_USAGE, NULL,
		               "the fraction of the data set must be above 0 and at most 1, not %g", s->fraction);
	return MURAL_OK;
}

static void name_point(const mural_study_settings *s, mu_point *p)
{
	int n = snprintf(p->name, sizeof p->name, "%s-r%u-b%u", kind_names[s->kind], p->ranks, p->batch);
	if (p->accumulation > 1)
		n += snprintf(p->name + n, sizeof p->name - (size_t)n, "x%u", p->accumulation);
	n += snprintf(p->name + n, sizeof p->name - (size_t)n, "-%.8s", p->precision);
	if (p->optimizer)
		snprintf(p->name + n, sizeof p->name - (size_t)n, "-%.24s", p->optimizer);
}

/* The part of the data set that a point with this many ranks uses. */
static mural_status part_of(const mural_study_settings *s, mu_point *p, mural_error *err)
{
	p->fraction = s->fraction;
	if (s->kind == MURAL_STUDY_WEAK)
		p->fraction *= p->ranks;
	if (p->fraction > 1 + 1e-9)
		return mu_fail(
		        err, MURAL_USAGE, NULL,
		        "%u ranks with %g of the data set each need more than there is; the fraction can be %g at "
		        "most",
		        p->ranks, s->fraction, 1.0 / p->ranks);
	if (p->fraction > 1)
		p->fraction = 1;
	return MURAL_OK;
}

static size_t count_points(const mural_study_settings *s)
{
	return s->n_ranks * s->n_batches * s->n_accumulations * s->n_precisions * s->n_optimizers;
}

/* Point number i: ranks change fastest, so that neighbours are compared. */
static mu_point point_at(const mural_study_settings *s, size_t i)
{
	mu_point p = {.ranks = s->ranks[i % s->n_ranks]};
	i /= s->n_ranks;
	p.batch = s->batches[i % s->n_batches];
	i /= s->n_batches;
	p.accumulation = s->accumulations[i % s->n_accumulations];
	i /= s->n_accumulations;
	p.precision = s->precisions[i % s->n_precisions];
	p.optimizer = s->optimizers[i / s->n_precisions];
	return p;
}

mural_status mu_study_plan(mu_study *study, mural_error *err)
{
	mural_study_settings s = *study->settings;
	fill(&s);
	size_t n = count_points(&s);
	if (n == 0 || n > 10000)
		return mu_fail(err, MURAL_USAGE, NULL, "a study of %zu points makes no sense", n);
	study->points = calloc(n, sizeof *study->points);
	study->runs = calloc(n * s.rounds, sizeof *study->runs);
	if (!study->points || !study->runs)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for a study of %zu points", n);
	for (size_t i = 0; i < n; i++) {
		study->points[i] = point_at(&s, i);
		MU_TRY(part_of(&s, &study->points[i], err));
		name_point(&s, &study->points[i]);
	}
	study->n_points = n;
	return MURAL_OK;
}
