/* The points of a study: its kinds and axes, the values on them, and their combinations. SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/nearest.h"
#include "study/study_inside.h"

enum { MOST_NUMBER = 1000000000, MOST_POINTS = 10000, MOST_RANKS_UNASKED = 8 };

const char *const mu_study_kinds[MURAL_STUDY_KINDS] = {
#define MURAL_X(name, text, axis, values, help) text,
        MURAL_STUDY_LIST(MURAL_X)
#undef MURAL_X
};

const char *const mu_study_sets[MURAL_STUDY_AXES] = {
#define MURAL_X(name, option, sets, values, help) sets,
        MURAL_STUDY_AXIS_LIST(MURAL_X)
#undef MURAL_X
};

static const struct {
	mural_study_axis axis;
	const char *values;
} varied[MURAL_STUDY_KINDS] = {
#define MURAL_X(name, text, axis, values, help) {axis, values},
        MURAL_STUDY_LIST(MURAL_X)
#undef MURAL_X
};

static const struct {
	const char *option, *values;
} axes[MURAL_STUDY_AXES] = {
#define MURAL_X(name, option, sets, values, help) {option, values},
        MURAL_STUDY_AXIS_LIST(MURAL_X)
#undef MURAL_X
};

mural_study_axis mu_study_varies(mural_study_kind kind)
{
	return varied[kind].axis;
}

mural_status mural_study_find(mural_study_kind *kind, const char *name, mural_error *err)
{
	for (int k = 0; k < MURAL_STUDY_KINDS; k++)
		if (strcmp(mu_study_kinds[k], name) == 0) {
			*kind = (mural_study_kind)k;
			return MURAL_OK;
		}
	const char *near = mu_nearest(name, mu_study_kinds, MURAL_STUDY_KINDS);
	return mu_fail(err, MURAL_USAGE, NULL, "there is no study \"%.60s\"%s%s%s", name, near ? "; did you mean " : "",
	               near ? near : "", near ? "?" : "");
}

/* ---- values. ---- */

static bool read_number(const char *text, size_t length, uint32_t *number)
{
	char *end;
	errno = 0;
	unsigned long long value = *text >= '1' && *text <= '9' ? strtoull(text, &end, 10) : 0;
	if (value == 0 || errno || end != text + length || value > MOST_NUMBER)
		return false;
	*number = (uint32_t)value;
	return true;
}

/* Words become part of folders' names. */
static bool read_word(const char *text, size_t length, char word[MURAL_STUDY_WORD])
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+-";
	if (length == 0 || length >= MURAL_STUDY_WORD || strspn(text, allowed) < length)
		return false;
	memcpy(word, text, length);
	word[length] = '\0';
	return true;
}

mural_status mural_study_values_read(mural_study_values *values, mural_study_axis axis, const char *text,
                                     mural_error *err)
{
	bool words = *mu_study_sets[axis], good = text != NULL;
	values->n = 0;
	for (const char *at = text; good && at; values->n++) {
		size_t length = strcspn(at, ",");
		good = values->n < MURAL_STUDY_MOST && (words ? read_word(at, length, values->words[values->n])
		                                              : read_number(at, length, &values->numbers[values->n]));
		at = at[length] ? at + length + 1 : NULL;
	}
	if (good)
		return MURAL_OK;
	values->n = 0;
	return mu_fail(err, MURAL_USAGE, NULL, "argument %s: expected up to %d %s with commas between, got %s",
	               axes[axis].option, MURAL_STUDY_MOST, words ? "words" : "whole numbers above 0",
	               text && *text ? text : "nothing");
}

void mural_study_defaults(mural_study_settings *settings)
{
	*settings = (mural_study_settings){.rounds = 3, .steps = 10, .warm_up = MURAL_STUDY_WARM_UP};
}

static mural_status check(const mural_study_settings *s, mural_error *err)
{
	if (!s->program || !s->folder || s->rounds == 0)
		return mu_fail(err, MURAL_USAGE, NULL, "a study needs a program, a folder and at least one round");
	if (s->rounds > 1000 || s->steps > MOST_NUMBER ||
	    (s->warm_up > MOST_NUMBER && s->warm_up != MURAL_STUDY_WARM_UP))
		return mu_fail(err, MURAL_USAGE, NULL, "rounds, steps or warm-up steps are far too many");
	if (s->fraction < 0 || s->fraction > 1)
		return mu_fail(err, MURAL_USAGE, NULL,
		               "the fraction of the data set must be above 0 and at most 1, not %g", s->fraction);
	if (s->slurm && mu_study_names_hosts(&s->hosts))
		return mu_fail(err, MURAL_USAGE, NULL,
		               "Slurm chooses the hosts: a host file or a filter is one too many");
	return MURAL_OK;
}

mural_status mu_study_fill(mu_study *study, const mural_study_settings *settings, mural_error *err)
{
	mural_study_settings *s = &study->settings;
	MU_TRY(check(settings, err));
	*s = *settings;
	for (mural_study_axis a = 0; a < MURAL_STUDY_AXES; a++) {
		const char *own = a == varied[s->kind].axis ? varied[s->kind].values : "";
		const char *values = *own ? own : axes[a].values;
		if (s->values[a].n == 0 && *values)
			MU_TRY(mural_study_values_read(&s->values[a], a, values, err));
	}
	if (s->warm_up == MURAL_STUDY_WARM_UP)
		s->warm_up = s->kind == MURAL_STUDY_HETEROGENEITY ? 40 : 2;
	if (s->fraction == 0)
		s->fraction = s->kind == MURAL_STUDY_WEAK ? 0.1 : 1;
	return MURAL_OK;
}

/* ---- points. ---- */

static void fill_ranks(mu_study *study)
{
	mural_study_values *ranks = &study->settings.values[MURAL_AXIS_RANKS];
	long most = mu_study_where_most(&study->where);
	if (most == 0)
		most = sysconf(_SC_NPROCESSORS_ONLN);
	else if (most > MOST_RANKS_UNASKED)
		most = MOST_RANKS_UNASKED;
	for (uint32_t n = 1; ranks->n == 0 || (ranks->n < MURAL_STUDY_MOST && (long)n <= most); n *= 2)
		ranks->numbers[ranks->n++] = n;
}

/* "strong-r2-b16x4-fp32-SGD" */
static void name_point(const mural_study_settings *s, mu_point *p)
{
	int n = snprintf(p->name, sizeof p->name, "%s-r%u-b%u", mu_study_kinds[s->kind], p->ranks, p->batch);
	if (p->accumulation > 1)
		n += snprintf(p->name + n, sizeof p->name - (size_t)n, "x%u", p->accumulation);
	for (mural_study_axis a = 0; a < MURAL_STUDY_AXES; a++)
		if (p->words[a])
			n += snprintf(p->name + n, sizeof p->name - (size_t)n, "-%.24s", p->words[a]);
}

/* An axis without values has one point on it: as configured. */
static size_t length_of(const mural_study_settings *s, mural_study_axis a)
{
	return s->values[a].n > 0 ? s->values[a].n : 1;
}

static uint32_t number_at(const mural_study_settings *s, const mu_point *p, mural_study_axis a)
{
	return s->values[a].n > 0 ? s->values[a].numbers[p->at[a]] : 1;
}

mu_point mu_study_point(const mural_study_settings *s, size_t i)
{
	mu_point p = {.fraction = s->fraction};
	for (mural_study_axis a = 0; a < MURAL_STUDY_AXES; a++) {
		p.at[a] = i % length_of(s, a);
		i /= length_of(s, a);
		if (*mu_study_sets[a] && s->values[a].n > 0)
			p.words[a] = s->values[a].words[p.at[a]];
	}
	p.ranks = number_at(s, &p, MURAL_AXIS_RANKS);
	p.batch = number_at(s, &p, MURAL_AXIS_BATCH);
	p.accumulation = number_at(s, &p, MURAL_AXIS_ACCUMULATION);
	name_point(s, &p);
	return p;
}

/* The part of the data set that a point with this many ranks uses. */
static mural_status part_of(const mural_study_settings *s, mu_point *p, mural_error *err)
{
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

static mural_status check_place(const mu_study *study, const mu_point *p, mural_error *err)
{
	uint32_t most = mu_study_where_most(&study->where);
	if (most > 0 && p->ranks > most)
		return mu_fail(err, MURAL_USAGE, NULL, "a point with %u ranks: the %s only %u", p->ranks,
		               study->where.hosts ? "hosts have slots for" : "emulated cluster has devices for", most);
	if (p->words[MURAL_AXIS_PLACEMENT] && most == 0 && !study->settings.slurm)
		return mu_fail(err, MURAL_USAGE, NULL,
		               "ranks can be placed on several nodes only: give --cluster FILE, --hostfile FILE or "
		               "--slurm OPTIONS");
	return MURAL_OK;
}

mural_status mu_study_plan(mu_study *study, mural_error *err)
{
	size_t n = 1;
	if (study->settings.values[MURAL_AXIS_RANKS].n == 0)
		fill_ranks(study);
	for (mural_study_axis a = 0; a < MURAL_STUDY_AXES; a++)
		if ((n *= length_of(&study->settings, a)) > MOST_POINTS)
			return mu_fail(err, MURAL_USAGE, NULL, "a study of more than %d points makes no sense",
			               MOST_POINTS);
	study->points = calloc(n, sizeof *study->points);
	study->runs = calloc(n * study->settings.rounds, sizeof *study->runs);
	if (!study->points || !study->runs)
		return mu_fail(err, MURAL_OUT_OF_MEMORY, NULL, "no memory for a study of %zu points", n);
	for (size_t i = 0; i < n; i++) {
		study->points[i] = mu_study_point(&study->settings, i);
		MU_TRY(part_of(&study->settings, &study->points[i], err));
		MU_TRY(check_place(study, &study->points[i], err));
	}
	study->n_points = n;
	return MURAL_OK;
}
