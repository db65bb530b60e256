/* Phase timers: an array of sums. SPDX-License-Identifier: MIT */
#include "monitor/timers.h"

#include <string.h>

#include "base/clock.h"

const char *mu_phase_text(mu_phase phase)
{
	switch (phase) {
#define MU_X(name, text) \
	case name: return text;
		MU_PHASE_LIST(MU_X)
#undef MU_X
	case MU_PHASE_COUNT: break;
	}
	return "unknown";
}

void mu_timers_add(mu_timers *timers, mu_phase phase, double seconds)
{
	if (seconds > 0)
		timers->step[phase] += seconds;
}

double mu_timers_lap(mu_timers *timers, mu_phase phase, double since)
{
	double now = mu_now();
	mu_timers_add(timers, phase, now - since);
	return now;
}

void mu_timers_communication(mu_timers *timers, double under_way, double waited)
{
	mu_timers_add(timers, MU_PHASE_EXPOSED, waited);
	mu_timers_add(timers, MU_PHASE_HIDDEN, under_way - (waited > 0 ? waited : 0));
}

void mu_timers_end_step(mu_timers *timers)
{
	for (int phase = 0; phase < MU_PHASE_COUNT; phase++)
		timers->total[phase] += timers->step[phase];
	memcpy(timers->last, timers->step, sizeof timers->last);
	memset(timers->step, 0, sizeof timers->step);
	timers->steps++;
}
