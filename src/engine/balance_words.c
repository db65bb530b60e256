/* Decisions in words. SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/balance_inside.h"

enum { LISTED = 8 }; /* ranks whose shares are told one by one */

MU_PRINTF(2, 3) static void add(mu_balance *b, const char *format, ...)
{
	char *reason = b->decision.reason;
	size_t used = strlen(reason), room = sizeof b->decision.reason - used;
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(reason + used, room, format, arguments);
	va_end(arguments);
}

static void add_shares(mu_balance *b, const int *shares)
{
	int least = shares[0], most = shares[0];
	for (int r = 0; r < b->ranks; r++) {
		least = shares[r] < least ? shares[r] : least;
		most = shares[r] > most ? shares[r] : most;
		if (b->ranks <= LISTED)
			add(b, "%s%d", r ? " " : "", shares[r]);
	}
	if (b->ranks > LISTED)
		add(b, "%d to %d", least, most);
}

/* The slowest and the fastest member by its seconds per image. */
static void find_extremes(const mu_balance *b, int *slowest, int *fastest)
{
	*slowest = *fastest = -1;
	for (int r = 0; r < b->ranks; r++) {
		if (!b->member[r] || b->model[r].b <= 0)
			continue;
		if (*slowest < 0 || b->model[r].b > b->model[*slowest].b)
			*slowest = r;
		if (*fastest < 0 || b->model[r].b < b->model[*fastest].b)
			*fastest = r;
	}
}

static void add_drift(mu_balance *b)
{
	const mu_balance_decision *d = &b->decision;
	if (d->drifted >= 0)
		add(b, "; rank %d takes %.2f times as long as before", d->drifted, d->drift);
}

static double percent_less(double before, double after)
{
	return before > 0 ? 100 * (1 - after / before) : 0;
}

void mu_balance_say_unknown(mu_balance *b, int rank)
{
	b->decision.reason[0] = 0;
	add(b, "shares stay: rank %d has not been measured yet", rank);
}

void mu_balance_say_kept(mu_balance *b)
{
	const mu_balance_decision *d = &b->decision;
	b->decision.reason[0] = 0;
	double gain = percent_less(d->before, b->better.step > 0 ? b->better.step : d->before);
	if (gain <= 0)
		add(b, "shares stay: none are better");
	else
		add(b,
		    "shares stay: the best ones would make a step %.1f %% shorter, and less than %.1f %% is not worth "
		    "a "
		    "change",
		    gain, 100 * d->worthwhile);
	add_drift(b);
}

void mu_balance_say_changed(mu_balance *b, const int *shares)
{
	const mu_balance_decision *d = &b->decision;
	int slowest, fastest;
	find_extremes(b, &slowest, &fastest);
	b->decision.reason[0] = 0;
	add(b, "shares ");
	add_shares(b, b->shares);
	add(b, " become ");
	add_shares(b, shares);
	add(b, ": a step of %.4g s instead of %.4g is expected (%.1f %% less)", b->better.step, d->before,
	    percent_less(d->before, b->better.step));
	if (slowest != fastest)
		add(b, "; an image takes rank %d %.4g ms and rank %d %.4g ms", fastest, 1e3 * b->model[fastest].b,
		    slowest, 1e3 * b->model[slowest].b);
	add_drift(b);
}

static void add_leaving(mu_balance *b, const bool *member)
{
	int left = 0, all = 0;
	for (int r = 0; r < b->ranks; r++)
		all += b->member[r] && !member[r];
	add(b, "rank%s", all == 1 ? "" : "s");
	for (int r = 0; r < b->ranks; r++)
		if (b->member[r] && !member[r] && left++ < LISTED)
			add(b, "%s%d", left == 1 ? " " : ", ", r);
	if (left > LISTED)
		add(b, " and %d more", left - LISTED);
}

/* "a step of 0.87 s instead of 3.31": with whom, and what the reduction has to do with it. */
static void add_without(mu_balance *b)
{
	double with = b->better.step > 0 ? b->better.step : b->decision.before;
	double reduction = b->better.step > 0 ? b->better.reduction : 0;
	add(b, " a step of %.4g s is expected instead of %.4g (%.1f %% less)", b->best.step, with,
	    percent_less(with, b->best.step));
	if (reduction > 0)
		add(b, ", since the reduction takes %.4g s instead of %.4g", b->best.reduction, reduction);
}

void mu_balance_say_removed(mu_balance *b, const bool *member)
{
	b->decision.reason[0] = 0;
	add_leaving(b, member);
	add(b, " left out:");
	add_without(b);
	add(b, "; shares become ");
	add_shares(b, b->best.shares);
}

void mu_balance_say_might_remove(mu_balance *b)
{
	add(b, "; without ");
	add_leaving(b, b->leaving);
	add_without(b);
}
