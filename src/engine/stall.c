/* Who is waited for. SPDX-License-Identifier: MIT */
#include "engine/stall.h"

#include <math.h>
#include <stdio.h>

#include "base/clock.h"

static const double OF_LIMIT = 0.25; /* of mural.hang_seconds, until words are said and between words */
static const double OF_STEP = 5; /* times a usual step */
static const double FADES = 0.9; /* the longest step of late, per step */
enum { FIRST_STEPS = 3 }; /* no measure of usual ones */

void mu_stall_init(mu_stall_watch *watch, double hang_seconds)
{
	*watch = (mu_stall_watch){.limit = hang_seconds, .now = {.rank = -1}};
	pthread_mutex_init(&watch->lock, NULL);
}

void mu_stall_release(mu_stall_watch *watch)
{
	pthread_mutex_destroy(&watch->lock);
}

void mu_stall_listen(mu_stall_watch *watch, mu_stall_listener *tell, void *listener)
{
	pthread_mutex_lock(&watch->lock);
	watch->tell = tell;
	watch->listener = listener;
	pthread_mutex_unlock(&watch->lock);
}

void mu_stall_step_begins(mu_stall_watch *watch)
{
	pthread_mutex_lock(&watch->lock);
	watch->begun = mu_now();
	pthread_mutex_unlock(&watch->lock);
}

/* A step in which a rank stalled is no measure of a usual one. */
void mu_stall_step_ends(mu_stall_watch *watch)
{
	pthread_mutex_lock(&watch->lock);
	if (!watch->lasts)
		watch->usual = fmax(mu_now() - watch->begun, FADES * watch->usual);
	watch->steps++;
	watch->begun = 0;
	pthread_mutex_unlock(&watch->lock);
}

/* How long the others have waited for it, if that is worth words; else 0. */
static double worth_telling(const mu_stall_watch *watch, const mu_comm_stall *stall)
{
	const double least = OF_LIMIT * watch->limit;
	switch (stall->kind) {
	case MU_STALL_SILENT:
	case MU_STALL_STUCK: return stall->seconds > least ? stall->seconds : 0;
	case MU_STALL_WORKS: break;
	case MU_STALL_NONE: return 0;
	}
	if (watch->begun == 0 || watch->steps < FIRST_STEPS)
		return 0;
	const double most = fmax(least, OF_STEP * watch->usual);
	const double seconds = fmin(mu_now() - watch->begun, stall->seconds);
	return seconds > most ? seconds : 0;
}

void mu_stall_name(const mu_comm_stall *stall, char *text, size_t bytes)
{
	snprintf(text, bytes, "rank %d (host %.63s%s%.64s)", stall->rank, stall->host[0] ? stall->host : "not known",
	         stall->device[0] ? ", " : "", stall->device);
}

static void put_words(mu_stall_report *report)
{
	const mu_comm_stall *s = report->stall;
	static const char *const how[] = {
	        [MU_STALL_SILENT] = "nothing is heard of it; ", [MU_STALL_WORKS] = "it computes; "};
	char name[192], work[128] = "none yet";
	mu_stall_name(s, name, sizeof name);
	if (s->doing[0])
		snprintf(work, sizeof work, "%.63s (%llu), step %llu", s->doing, (unsigned long long)s->number,
		         (unsigned long long)s->step);
	if (report->over)
		snprintf(report->words, sizeof report->words, "waited %.0f s for %s: it goes on", report->seconds,
		         name);
	else
		snprintf(report->words, sizeof report->words, "waiting %.0f s for %s: %slast operation: %s",
		         report->seconds, name, s->kind == MU_STALL_STUCK ? "" : how[s->kind], work);
}

static void tell(mu_stall_watch *watch, bool begins, bool over, double seconds)
{
	mu_stall_report report = {.stall = &watch->now, .begins = begins, .over = over, .seconds = seconds};
	watch->told = mu_now();
	put_words(&report);
	if (watch->tell)
		watch->tell(watch->listener, &report);
}

static void end(mu_stall_watch *watch, double now)
{
	const double seconds = now - watch->since;
	watch->lasts = false;
	watch->sum.seconds += seconds;
	if (seconds > watch->sum.longest) {
		watch->sum.longest = seconds;
		watch->sum.worst = watch->now;
	}
	tell(watch, false, true, seconds);
}

void mu_stall_hear(const mu_comm_stall *stall, void *argument)
{
	mu_stall_watch *watch = argument;
	pthread_mutex_lock(&watch->lock);
	const double now = mu_now(), seconds = worth_telling(watch, stall);
	if (watch->lasts && (seconds == 0 || stall->rank != watch->now.rank))
		end(watch, now);
	if (seconds > 0) {
		const bool begins = !watch->lasts;
		watch->now = *stall;
		watch->since = begins ? now - seconds : watch->since;
		watch->lasts = true;
		watch->sum.count += begins;
		if (begins || now - watch->told > fmax(1, OF_LIMIT * watch->limit))
			tell(watch, begins, false, now - watch->since);
	}
	pthread_mutex_unlock(&watch->lock);
}

void mu_stall_write(mu_stall_watch *watch, mu_json *json)
{
	char name[192];
	pthread_mutex_lock(&watch->lock);
	if (watch->sum.count > 0) {
		const mu_comm_stall *worst = watch->sum.longest > 0 ? &watch->sum.worst : &watch->now;
		mu_stall_name(worst, name, sizeof name);
		mu_json_object_begin(json, "stalls");
		mu_json_unsigned(json, "count", watch->sum.count);
		mu_json_number(json, "seconds", watch->sum.seconds);
		mu_json_number(json, "longest_seconds", watch->sum.longest);
		mu_json_string(json, "longest", name);
		mu_json_string(json, "operation", worst->doing);
		mu_json_unsigned(json, "step", worst->step);
		mu_json_object_end(json);
	}
	pthread_mutex_unlock(&watch->lock);
}
